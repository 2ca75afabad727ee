// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an engine holds, and all that it does but for the launches of its model: the same code for every
// density and model, compiled once for each back end and precision (engine_cpu.cpp, engine_cuda.cu).
#include <algorithm>
#include <cassert>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "targets/base_data.hpp"
#include "targets/engine_shape.hpp"
#include "targets/transition_data.hpp"

namespace lockstep {

template <MemoryBackend Backend, class R, class E>
class EngineMemory : public Engine {
 public:
  EngineMemory(const EngineShape& shape, const EngineSpec& spec)
      : Engine(static_cast<int>(spec.chain.size())),
        backend_(spec),
        shape_(shape),
        transitions_(transitions_of(spec)),
        size_(data_before(transitions_, transitions_.size(), shape.rows)),
        moments_{shape.dim, shape.quantities, spec.covariance},
        tiles_((chains_ + kTile - 1) / kTile),
        threads_(spec.threads),
        block_threads_(spec.block_threads) {
    auto rows = [&](int count) { return std::size_t(count) * tiles_ * kTile; };
    position_.resize(rows(shape_.rows));
    gradient_.resize(rows(shape_.rows));
    cache_.resize(rows(shape_.cache_rows));
    parameters_.resize(rows(shape_.layout.rows()));
    stats_.resize(rows(kStatRows));
    accumulators_.resize(rows(moments_.rows()));
    fields_.resize(rows(size_.field));
    counters_.resize(rows(size_.counter));
    lists_.resize(size_.list);
    remembered_.resize(rows(kChainRows));
    std::vector<int> holder(chains_);
    std::iota(holder.begin(), holder.end(), 0);
    Backend::from_host(holder_, holder);
    trace_.resize(rows(2 * spec.trace));
    work_energy_.resize(shape_.work_rows ? rows(shape_.rows + shape_.cache_rows) : 0);
    draw_capacity_ = std::uint32_t(spec.draws);
    overview_capacity_ = std::uint32_t(spec.overview);
    overview_.resize(rows(spec.overview * (shape_.dim + kOverviewExtraRows)));
    std::vector<int> slot(rows(spec.draws > 0 ? 1 : 0), -1);
    if (spec.stored_chains.empty()) std::iota(slot.begin(), slot.end(), 0);
    for (std::size_t k = 0; k < spec.stored_chains.size() && !slot.empty(); ++k)
      slot[spec.stored_chains[k]] = int(k);
    stored_chains_ = int(spec.stored_chains.empty() ? slot.size() : spec.stored_chains.size());
    Backend::from_host(draw_slot_, slot);
    draws_.resize(std::size_t(spec.draws) * (shape_.dim + kDrawExtraRows) * stored_chains_);
    // Padding chains copy the last chain's key: they run, and are never read.
    std::vector<std::uint32_t> chain = spec.chain, unit = spec.unit;
    chain.resize(rows(1), chain.back());
    unit.resize(rows(1), unit.back());
    chain_.assign(chain.begin(), chain.end());
    unit_.assign(unit.begin(), unit.end());
    for (std::size_t k = 0; k < transitions_.size(); ++k) part_of(spec, k, shape.rows);  // or throws
    if (!lists_.empty()) set_shared(0, {});
    if (shape_.layout.base != 0) set_base({});
  }

  int dim() const override { return shape_.dim; }
  int samples() const override { return shape_.samples; }
  int rows() const override { return shape_.rows; }
  int cache_rows() const override { return shape_.cache_rows; }
  ParameterLayout layout() const override { return shape_.layout; }
  MomentLayout moment_layout() const override { return moments_; }

  void set_parameters(int first, std::span<const double> rows) override {
    put_rows(parameters_, shape_.layout.rows(), first, int(rows.size() / std::size_t(chains_)), rows);
  }
  void set_position(std::span<const double> rows) override {
    put_rows(position_, shape_.rows, 0, shape_.rows, rows);
    Backend::fill(remembered_, 0);
    if (!fields_are_zero_) Backend::fill(fields_, 0.0);  // gigabytes of an energy ring's
    fields_are_zero_ = true;
  }
  std::vector<double> position() override { return get_rows(position_, shape_.rows); }
  std::vector<double> gradient() override { return get_rows(gradient_, shape_.rows); }
  std::vector<double> cache() override { return get_rows(cache_, shape_.cache_rows); }
  std::vector<double> state() override {
    std::vector<double> out(std::size_t(state_rows()) * chains_);
    double* to = out.data();
    each_state([&](auto& rows, int total, int first, int count) {
      copy_rows(rows, total, first, count, to);
      to += std::size_t(count) * chains_;
    });
    // Seen from each chain's own place: a slice of a batch says the same of its chains as the whole.
    const auto holder = Backend::to_host(holder_);
    for (int c = 0; c < chains_; ++c) to[c] = holder[c] - c;
    return out;
  }
  void set_state(std::span<const double> rows) override {
    if (rows.size() != std::size_t(state_rows()) * chains_)
      throw std::invalid_argument("a state of other chains");
    fields_are_zero_ = false;
    each_state([&](auto& to, int total, int first, int count) {
      put_rows(to, total, first, count, rows);
      rows = rows.subspan(std::size_t(count) * chains_);
    });
    std::vector<int> holder(rows.begin(), rows.end());
    for (int c = 0; c < chains_; ++c) holder[c] += c;
    Backend::from_host(holder_, holder);
  }

  std::vector<double> fields() override { return get_rows(fields_, size_.field); }
  void set_shared(int list, const UnitList& of_unit) override {
    lists_.at(list) = of_unit;
    const PlacedLists placed = place_lists(lists_, Backend::to_host(unit_));
    Backend::from_host(shared_, placed.values);
    Backend::from_host(shared_place_, placed.places);
  }
  void set_base(const UnitList& of_unit) override {
    const PlacedBase placed = place_base(of_unit, Backend::to_host(unit_), shape_.dim, shape_.layout.base);
    Backend::from_host(base_, std::vector<R>(placed.values.begin(), placed.values.end()));
    Backend::from_host(base_energy_, std::vector<E>(placed.values.begin(), placed.values.end()));
    Backend::from_host(base_place_, placed.places);
  }

  void initialize() override { start(view()); }
  void set_beta(std::span<const double> per_chain) override {
    // The numbers that count are those that the parameters can hold.
    const auto before = beta();
    set_parameters(ParameterLayout::beta, per_chain);
    const auto now = beta();
    auto cached = cache();
    for (int c = 0; c < chains_; ++c) cached[c] += (before[c] - now[c]) * cached[chains_ + c];
    put_rows(cache_, shape_.cache_rows, 0, 1, std::span<const double>(cached).first(chains_));
  }
  std::vector<double> beta() override {
    return get_rows(parameters_, shape_.layout.rows(), ParameterLayout::beta, 1);
  }
  std::vector<double> set_ladder(std::vector<double> beta, std::vector<double> log_weight,
                                 std::vector<double> step_size) override {
    for (double& b : beta) b = static_cast<double>(static_cast<R>(b));
    auto held = beta;
    levels_ = int(beta.size());
    Backend::from_host(ladder_, beta);
    Backend::from_host(level_weight_, log_weight);
    Backend::from_host(level_step_, step_size);
    return held;
  }
  void advance(const LaunchSpec& spec) override {
    LaunchSpec s = spec;
    s.covariance = moments_.covariance;
    s.chees = s.chees && transitions_.front()->trajectory;  // another may leave no momentum to take it from
    assert(draws_.empty() || kept(s, s.store_from, s.thin) <= draw_capacity_);
    assert(overview_.empty() || kept(s, s.overview_from, s.overview_thin) <= overview_capacity_);
    if (shape_.tempered && s.tempering == Tempering::swap) return advance_swapping(s);
    launch(view(), s);
  }
  std::vector<double> stats(bool reset) override {
    auto all = read(stats_, kStatRows, reset);
    const auto counters = read(counters_, size_.counter, reset);
    all.insert(all.end(), counters.begin(), counters.end());
    return all;
  }
  std::vector<double> moments(bool reset) override { return read(accumulators_, moments_.rows(), reset); }
  std::vector<double> trace() override { return Backend::to_host(trace_); }
  std::span<const float> draws(int count) override {
    return Backend::seen(draws_, std::size_t(count) * (shape_.dim + kDrawExtraRows) * stored_chains_, seen_);
  }
  std::vector<float> overview() override { return Backend::to_host(overview_); }
  std::size_t bytes() const override {
    const auto sum = []<class... V>(const V&... v) {
      return (... + (v.size() * sizeof(typename V::value_type)));
    };
    return sum(position_, gradient_, parameters_, cache_, work_energy_, stats_, accumulators_, remembered_,
               holder_, ladder_, level_weight_, level_step_, trace_, chain_, unit_, draws_, draw_slot_,
               overview_, fields_, counters_, shared_, shared_place_, base_, base_energy_, base_place_);
  }

 protected:
  /// The launches of the model.
  virtual void start(const BatchView<R, E>& view) = 0;
  virtual void launch(const BatchView<R, E>& view, const LaunchSpec& spec) = 0;
  Backend backend_;

 private:
  template <class T>
  using Vector = typename Backend::template vector<T>;
  static constexpr int kManyTiles = 256;  // worth several threads to copy

  static std::uint32_t kept(const LaunchSpec& s, int from, int thin) {
    const int length = int(s.end - s.begin) - from;
    return std::uint32_t(std::max(0, (length + thin - 1) / thin));
  }

  /// A launch for each iteration, and between them the swaps, which need all levels of a unit.
  void advance_swapping(const LaunchSpec& spec) {
    assert(draws_.empty() && overview_.empty() && levels_ > 0 && chains_ % levels_ == 0);
    LaunchSpec one = spec;
    for (std::uint32_t t = spec.begin; t < spec.end; ++t) {
      one.begin = t;
      one.end = t + 1;
      auto v = view();
      if (v.trace != nullptr) v.trace += std::ptrdiff_t(2) * tiles_ * kTile * (t - spec.begin);
      launch(v, one);
      backend_.swap(v, shape_.layout, shape_.cache_rows, one.key, t, chains_ / levels_);
    }
  }

  BatchView<R, E> view() {
    BatchView<R, E> v;
    v.chains = chains_;
    v.tiles = tiles_;
    v.block_threads = block_threads_;
    v.position = Backend::data(position_);
    v.gradient = Backend::data(gradient_);
    v.cache = Backend::data(cache_);
    v.parameters = Backend::data(parameters_);
    v.stats = Backend::data(stats_);
    v.moments = Backend::data(accumulators_);
    v.remembered = Backend::data(remembered_);
    v.ladder = Backend::data(ladder_);
    v.level_weight = Backend::data(level_weight_);
    v.level_step = Backend::data(level_step_);
    v.levels = levels_;
    v.holder = Backend::data(holder_);
    v.trace = trace_.empty() ? nullptr : Backend::data(trace_);
    v.chain = Backend::data(chain_);
    v.unit = Backend::data(unit_);
    v.work_energy = Backend::data(work_energy_);
    v.draws = draws_.empty() ? nullptr : Backend::data(draws_);
    v.draw_slot = Backend::data(draw_slot_);
    v.stored_chains = stored_chains_;
    v.overview = overview_.empty() ? nullptr : Backend::data(overview_);
    v.fields = Backend::data(fields_);
    fields_are_zero_ = false;
    v.field_rows = size_.field;
    v.counters = Backend::data(counters_);
    v.counter_rows = size_.counter;
    v.base = Backend::data(base_);
    v.base_energy = Backend::data(base_energy_);
    v.base_place = base_place_.empty() ? nullptr : Backend::data(base_place_);
    v.shared = Backend::data(shared_);
    v.shared_place = Backend::data(shared_place_);
    return v;
  }

  /// f(rows, how many there are, the first that counts, how many do) for all of state() but the holders.
  template <class F>
  void each_state(F&& f) {
    f(position_, shape_.rows, 0, shape_.rows);
    f(gradient_, shape_.rows, 0, shape_.rows);
    f(cache_, shape_.cache_rows, 0, shape_.cache_rows);
    for (int row : {int(ParameterLayout::beta), int(ParameterLayout::step_size)})
      f(parameters_, shape_.layout.rows(), row, 1);
    f(remembered_, kChainRows, 0, kChainRows);
    f(stats_, kStatRows, 0, kStatRows);
    f(counters_, size_.counter, 0, size_.counter);
    int first = 0;
    for (const TransitionInfo* transition : transitions_)
      for (const TransitionField& field : transition->fields) {
        const int rows = field.rows(shape_.rows);
        if (field.saved) f(fields_, size_.field, first, rows);
        first += rows;
      }
  }

  int state_rows() {
    int rows = 1;  // the holders
    each_state([&](auto&, int, int, int count) { rows += count; });
    return rows;
  }

  template <class T>
  void put_rows(Vector<T>& to, int rows, int first, int count, std::span<const double> from) {
    if (count == 0) return;
    Backend::write_rows(to, tiles_, rows, first, count, [&](T* host, std::size_t tile_stride) {
#pragma omp parallel for num_threads(threads_) if (tiles_ > kManyTiles)
      for (int t = 0; t < tiles_; ++t)
        for (int r = 0; r < count; ++r)
          for (int i = 0; i < kTile; ++i) {
            const int c = std::min(t * kTile + i, chains_ - 1);
            host[t * tile_stride + r * kTile + i] = static_cast<T>(from[std::size_t(r) * chains_ + c]);
          }
    });
  }
  template <class T>
  std::vector<double> get_rows(const Vector<T>& from, int rows) const {
    return get_rows(from, rows, 0, rows);
  }
  template <class T>
  std::vector<double> get_rows(const Vector<T>& from, int rows, int first, int count) const {
    std::vector<double> out(std::size_t(count) * chains_);
    copy_rows(from, rows, first, count, out.data());
    return out;
  }
  template <class T>
  void copy_rows(const Vector<T>& from, int rows, int first, int count, double* out) const {
    if (count == 0) return;
    Backend::read_rows(from, tiles_, rows, first, count, [&](const T* host, std::size_t tile_stride) {
#pragma omp parallel for num_threads(threads_) if (tiles_ > kManyTiles)
      for (int t = 0; t < tiles_; ++t)
        for (int r = 0; r < count; ++r)
          for (int i = 0, c = t * kTile; i < kTile && c < chains_; ++i, ++c)
            out[std::size_t(r) * chains_ + c] = host[t * tile_stride + r * kTile + i];
    });
  }
  std::vector<double> read(Vector<double>& v, int rows, bool reset) {
    auto out = get_rows<double>(v, rows);
    if (reset) Backend::fill(v, 0.0);
    return out;
  }

  EngineShape shape_;
  std::vector<const TransitionInfo*> transitions_;
  TransitionPart size_;  // of the data of all of them
  MomentLayout moments_;
  int tiles_, threads_, block_threads_;
  Vector<R> position_, gradient_, parameters_, base_;
  Vector<E> cache_, base_energy_, work_energy_;
  Vector<double> stats_, accumulators_;
  Vector<int> remembered_, holder_, base_place_;
  Vector<double> ladder_, level_weight_, level_step_, trace_;
  int levels_ = 0;
  Vector<std::uint32_t> chain_, unit_;
  Vector<float> draws_, overview_;
  std::vector<float> seen_;  // draws on the host, where they are not there already
  Vector<int> draw_slot_;
  Vector<double> fields_, counters_, shared_;
  bool fields_are_zero_ = true;  // as they are made
  Vector<std::int32_t> shared_place_;
  std::vector<UnitList> lists_;
  int stored_chains_ = 0;
  std::uint32_t draw_capacity_ = 0, overview_capacity_ = 0;
};

}  // namespace lockstep
