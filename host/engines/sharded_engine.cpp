// SPDX-License-Identifier: Apache-2.0
#include "host/engines/sharded_engine.hpp"

#include <algorithm>
#include <exception>
#include <semaphore>
#include <thread>
#include <utility>

#include "host/util/processes.hpp"
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {

std::vector<int> cut_chains(const std::vector<std::uint32_t>& unit, int shards, bool whole_units) {
  const int n = int(unit.size());
  std::vector<int> places = {0};  // where a cut may be
  for (int c = 1; c < n; ++c)
    if (whole_units ? unit[c] != unit[c - 1] : n < shards * kTile || c % kTile == 0) places.push_back(c);
  const std::int64_t pieces = std::int64_t(places.size());
  places.push_back(n);
  std::vector<int> bounds;
  for (int s = 0; s <= shards; ++s) bounds.push_back(places[std::size_t(pieces * s / shards)]);
  return bounds;
}

/// Runs one piece of work at a time: a GPU is bound to the thread that has chosen it.
class ShardedEngine::Thread {
 public:
  Thread() : thread_([this] { loop(); }) {}
  ~Thread() { start({}); }
  void start(std::function<void()> work) {
    work_ = std::move(work);
    begin_.release();
  }
  void wait() { done_.acquire(); }

 private:
  void loop() {
    while (begin_.acquire(), work_) {
      work_();
      done_.release();
    }
  }
  std::function<void()> work_;
  std::binary_semaphore begin_{0}, done_{0};
  std::jthread thread_;
};

EngineSpec ShardedEngine::slice(const EngineSpec& whole, const Shard& shard, int shards) {
  EngineSpec spec = whole;
  const auto of_shard = [&](const std::vector<std::uint32_t>& all) {
    const auto begin = all.begin() + (shard.chains > 0 ? shard.first : 0);
    return std::vector<std::uint32_t>(begin, begin + std::max(shard.chains, 1));
  };
  spec.chain = of_shard(whole.chain);
  spec.unit = of_shard(whole.unit);
  spec.threads = std::max(1, whole.threads / shards);
  spec.stored_chains.clear();
  for (const int c : whole.stored_chains)
    if (c >= shard.first && c < shard.first + shard.chains) spec.stored_chains.push_back(c - shard.first);
  if (shard.stored == 0) spec.draws = 0;
  if (shard.chains == 0) spec.trace = spec.overview = 0;
  return spec;
}

ShardedEngine::ShardedEngine(const EngineSpec& whole, int shards, bool whole_units, const Make& make)
    : Engine(static_cast<int>(whole.chain.size())),
      shards_(shards),
      trace_rows_(2 * std::size_t(whole.trace)),
      all_stored_(whole.stored_chains.empty()) {
  const Processes& processes = Processes::all();
  std::vector<int> of_process;
  for (const double count : Processes::all().share(shards)) of_process.push_back(int(count));
  const auto bounds =
      cut_chains(whole.unit, std::accumulate(of_process.begin(), of_process.end(), 0), whole_units);
  const auto stored_before = [&](int chain) {
    const auto& stored = whole.stored_chains;
    return all_stored_ ? chain : int(std::lower_bound(stored.begin(), stored.end(), chain) - stored.begin());
  };
  auto bound = bounds.begin();
  for (int p = 0; p < processes.size(); ++p) {
    for (int k = 0; k < of_process[p] && p == processes.rank(); ++k) {
      Shard& shard = shards_[k];
      shard.first = bound[k];
      shard.chains = bound[k + 1] - bound[k];
      shard.stored = stored_before(bound[k + 1]) - stored_before(bound[k]);
      if (shards > 1) shard.thread = std::make_unique<Thread>();
    }
    const int first = *bound, end = *(bound += of_process[p]);
    columns_.push_back(end - first);
    stored_.push_back(stored_before(end) - stored_before(first));
  }
  each([&](Shard& shard) { shard.engine = make(slice(whole, shard, shards), int(&shard - shards_.data())); });
  overview_rows_ = std::size_t(whole.overview) * (ShardedEngine::dim() + kOverviewExtraRows);
}

ShardedEngine::~ShardedEngine() {
  each([](Shard& shard) { shard.engine.reset(); });
}

void ShardedEngine::each(const std::function<void(Shard&)>& f) {
  if (shards_.size() == 1) return f(shards_.front());
  std::vector<std::exception_ptr> thrown(shards_.size());
  for (std::size_t k = 0; k < shards_.size(); ++k)
    shards_[k].thread->start([&, k] {
      try {
        f(shards_[k]);
      } catch (...) {
        thrown[k] = std::current_exception();
      }
    });
  for (const Shard& shard : shards_) shard.thread->wait();
  for (const auto& error : thrown)
    if (error) std::rethrow_exception(error);
}

template <class F>
void ShardedEngine::give(std::span<const double> rows, F&& f) {
  const std::size_t count = rows.size() / std::size_t(chains_);
  each([&](Shard& shard) {
    if (shard.chains == 0) return;
    std::vector<double> own;
    own.reserve(count * shard.chains);
    for (std::size_t r = 0; r < count; ++r) {
      const auto row = rows.begin() + std::ptrdiff_t(r) * chains_ + shard.first;
      own.insert(own.end(), row, row + shard.chains);
    }
    f(*shard.engine, own);
  });
}

template <class T, class Read>
std::vector<T> ShardedEngine::gather(const Table& table, const Read& read) {
  std::vector<std::vector<T>> parts(shards_.size());
  each([&](Shard& shard) {
    if (table.rows == 0 || shard.*table.width > 0) parts[&shard - shards_.data()] = read(*shard.engine);
  });
  const std::size_t rows = table.rows > 0 ? table.rows : parts[0].size() / any().chains(),
                    own = table.columns[Processes::all().rank()];
  std::vector<T> mine(shards_.size() == 1 ? 0 : rows * own), whole(rows * table.stride);
  std::size_t column = 0;
  for (std::size_t k = 0; k < shards_.size(); ++k) {
    const std::size_t width = shards_[k].*table.width,
                      stride = parts[k].size() / std::max<std::size_t>(rows, 1);
    if (shards_.size() == 1 && width == stride) {
      mine = std::move(parts[k]);
      break;
    }
    mine.resize(rows * own);
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(parts[k].begin() + r * stride, width, mine.begin() + r * own + column);
    column += width;
  }
  Processes::all().gather_rows(mine, table.columns, std::size_t(table.stride), whole);
  return whole;
}

template <class Read>
std::vector<double> ShardedEngine::of_chains(const Read& read) {
  return gather<double>({&Shard::chains, columns_, chains_}, read);
}

void ShardedEngine::set_parameters(int first, std::span<const double> rows) {
  give(rows, [&](Engine& e, const std::vector<double>& own) { e.set_parameters(first, own); });
}
void ShardedEngine::set_position(std::span<const double> rows) {
  give(rows, [](Engine& e, const std::vector<double>& own) { e.set_position(own); });
}
void ShardedEngine::set_state(std::span<const double> rows) {
  if (rows.size() % std::size_t(chains_) != 0) throw std::invalid_argument("a state of other chains");
  give(rows, [](Engine& e, const std::vector<double>& own) { e.set_state(own); });
}
void ShardedEngine::set_beta(std::span<const double> per_chain) {
  give(per_chain, [](Engine& e, const std::vector<double>& own) { e.set_beta(own); });
}
std::vector<double> ShardedEngine::set_ladder(std::vector<double> beta, std::vector<double> log_weight,
                                              std::vector<double> step_size) {
  std::vector<double> held;
  each([&](Shard& shard) {
    const auto own = shard.engine->set_ladder(beta, log_weight, step_size);
    if (&shard == &shards_.front()) held = own;
  });
  return held;
}
void ShardedEngine::initialize() {
  each([](Shard& shard) {
    if (shard.chains > 0) shard.engine->initialize();
  });
}
void ShardedEngine::advance(const LaunchSpec& spec) {
  each([&](Shard& shard) {
    if (shard.chains > 0) shard.engine->advance(spec);
  });
}

std::vector<double> ShardedEngine::position() {
  return of_chains([](Engine& e) { return e.position(); });
}
std::vector<double> ShardedEngine::gradient() {
  return of_chains([](Engine& e) { return e.gradient(); });
}
std::vector<double> ShardedEngine::cache() {
  return of_chains([](Engine& e) { return e.cache(); });
}
std::vector<double> ShardedEngine::fields() {
  return of_chains([](Engine& e) { return e.fields(); });
}
void ShardedEngine::set_shared(int list, const UnitList& of_unit) {
  each([&](Shard& s) { s.engine->set_shared(list, of_unit); });
}
void ShardedEngine::set_base(const UnitList& of_unit) {
  each([&](Shard& s) { s.engine->set_base(of_unit); });
}

std::vector<double> ShardedEngine::state() {
  return of_chains([](Engine& e) { return e.state(); });
}
std::vector<double> ShardedEngine::beta() {
  return of_chains([](Engine& e) { return e.beta(); });
}
std::vector<double> ShardedEngine::stats(bool reset) {
  return of_chains([&](Engine& e) { return e.stats(reset); });
}
std::vector<double> ShardedEngine::moments(bool reset) {
  return of_chains([&](Engine& e) { return e.moments(reset); });
}
std::vector<double> ShardedEngine::trace() {
  if (trace_rows_ == 0) return {};
  return gather<double>({&Shard::chains, columns_, padded_chains(), trace_rows_},
                        [](Engine& e) { return e.trace(); });
}
std::span<const float> ShardedEngine::draws(int count) {
  const int stride = all_stored_ ? padded_chains() : std::accumulate(stored_.begin(), stored_.end(), 0);
  const std::size_t rows = std::size_t(count) * (dim() + kDrawExtraRows);
  seen_ = gather<float>({&Shard::stored, stored_, stride, rows}, [&](Engine& e) {
    const auto own = e.draws(count);
    return std::vector<float>(own.begin(), own.end());
  });
  return seen_;
}
std::vector<float> ShardedEngine::overview() {
  if (overview_rows_ == 0) return {};
  return gather<float>({&Shard::chains, columns_, padded_chains(), overview_rows_},
                       [](Engine& e) { return e.overview(); });
}
std::size_t ShardedEngine::bytes() const {
  std::size_t sum = 0;
  for (const Shard& shard : shards_) sum += shard.engine->bytes();
  return sum;
}

namespace {

std::unique_ptr<Engine> make_plain_engine(const RunContext& context, const EngineSpec& spec) {
  const int shards = std::max(1, int(context.devices.size()));
  if (Processes::all().size() == 1 && shards == 1) return context.target->engine(spec);
  return std::make_unique<ShardedEngine>(spec, shards, context.whole_units,
                                         [&](const EngineSpec& slice, [[maybe_unused]] int shard) {
#ifdef LOCKSTEP_CUDA
                                           if (shards > 1) use_cuda_device(context.devices[shard]);
#endif
                                           return context.target->engine(slice);
                                         });
}

}  // namespace

void set_lists(Engine& engine, const RunContext& context, const TransitionInfo& first,
               const std::vector<std::uint32_t>& units) {
  int list = 0;
  for (const std::string& name : first.shared) {
    if (const auto known = context.lists.find(name); known != context.lists.end())
      engine.set_shared(list, known->second->of(units));
    ++list;
  }
  for (const auto& of : {context.jumps, context.regeneration})
    if (of != nullptr) engine.set_shared(list++, of->of(units));
}

std::unique_ptr<Engine> make_engine(const RunContext& context, const EngineSpec& spec) {
  EngineSpec all = spec;
  const auto follow = [&](const char* name, const std::shared_ptr<const SharedNumbers>& list) {
    if (list == nullptr) return;
    all.then.push_back(find_transition(name));
    all.settings.resize(std::max<std::size_t>(all.settings.size(), 1));
  };
  follow(context.jumps_by, context.jumps);
  follow("regeneration", context.regeneration);
  auto engine = make_plain_engine(context, all);
  set_lists(*engine, context, transition_of(spec), spec.unit);
  return engine;
}

}  // namespace lockstep
