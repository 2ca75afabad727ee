// SPDX-License-Identifier: Apache-2.0
#include "host/paths/tempered_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/paths/tail_recorder.hpp"
#include "kernels/tempering.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

constexpr double kLittleTail = 0.01;                // of the target, that draws of the base leave to chains
constexpr double kLeastRoundTrips = 5;              // of each chain, before its standard errors stop a run
constexpr std::uint32_t kBaseStarts = 0x5FFFFFFFu;  // an iteration number of its own, below the pilot's

/// Control coordinates u at which beta takes these values, one for each chain.
std::vector<double> controls(const StreamKey& key, Control control, const std::vector<double>& beta) {
  std::vector<double> u(beta.size());
  for (std::size_t c = 0; c < beta.size(); ++c) {
    const double b = std::clamp(beta[c], 1e-6, 1 - 1e-6);
    if (control == Control::logistic) {
      u[c] = std::log(b / (1 - b));
      continue;
    }
    const Draw<double> draw{key, 0, std::uint32_t(c), 0};
    const double v = draw.uniform(Purpose::start);
    double low = 0, high = 1;  // the step from 1 to 0, by bisection
    for (int k = 0; k < 40; ++k) {
      const double t = 0.5 * (low + high);
      (1 - t * t * (3 - 2 * t) > b ? low : high) = t;
    }
    u[c] = beta[c] >= 1 ? v - 0.5 : beta[c] <= 0 ? v + 1.5 : 0.5 + low;
  }
  return u;
}

/// beta given x, uniform on [0, 1] a priori.
std::vector<double> redrawn(const StreamKey& key, Engine& engine) {
  const auto cache = engine.cache();
  const int n = engine.chains();
  std::vector<double> beta(n);
  for (int c = 0; c < n; ++c) {
    const Draw<double> draw{key, 0, std::uint32_t(c), 0};
    beta[c] = truncated_exponential(cache[n + c], draw.uniform(Purpose::temper, 1));
  }
  return beta;
}

/// Stepping stones over the ladder.
class StoneRecorder {
 public:
  StoneRecorder(SteppingStones stones, int groups, int threads)
      : stones_(std::move(stones)), groups_(groups), threads_(threads) {}
  void record(Launched& launched) {
    if (!launched.spec.record) return;
    const auto& trace = launched.trace();
    const std::size_t padded = launched.engine.padded_chains();
    const int per = launched.chains() / groups_, length = int(launched.spec.end - launched.spec.begin);
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int g = 0; g < groups_; ++g) {  // one thread's: the same bits for any number of them
      std::vector<double> beta, delta;
      for (int i = 0; i < length; ++i) {
        const auto row = trace.begin() + std::ptrdiff_t(2 * i * padded) + g * per,
                   next = row + std::ptrdiff_t(padded);
        beta.insert(beta.end(), row, row + per);
        delta.insert(delta.end(), next, next + per);
      }
      stones_.add(g, beta, delta);
    }
  }
  const SteppingStones& stones() const { return stones_; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("stones", stones_);
  }

 private:
  SteppingStones stones_;
  int groups_, threads_;
};

/// log Z with beta integrated out, of all that is recorded and of the halves that drift is judged by: of the
/// whole run, or, where it may stop before, of what there is, with a middle that moves up whenever as much
/// again has been recorded.
class EndRecorder {
 public:
  /// `log_zeta`, `log_prior`: of EndpointEvidence::value.
  EndRecorder(const RunLength& length, int groups, double log_zeta, double log_prior)
      : length_(length), log_zeta_(log_zeta), log_prior_(log_prior), all_(groups), half_(groups) {}
  /// The run may stop at any time: as many middles as leave `least` iterations to the first half.
  void may_stop(std::int64_t least) {
    while (halvings_ < 6 && after(halvings_ + 1) >= length_.discarded + least) ++halvings_;
  }
  /// The present middle, and the next iteration after t at which launches must end.
  std::int64_t middle() const { return after(halvings_); }
  std::int64_t boundary(std::int64_t t) const {
    return t < length_.discarded ? length_.discarded : t < middle() ? middle() : after(halvings_ - 1);
  }
  void record(Launched& launched) {
    const std::int64_t t = launched.spec.end;
    if (launched.spec.record) {
      const auto &m = launched.moments(), &s = launched.stats();
      const int n = launched.chains(), per = n / all_.blocks();
      for (int c = 0; c < n; ++c)
        for (EndpointEvidence* e : {&all_, &half_})
          e->add(c / per, m[std::size_t(MomentLayout::count) * n + c],
                 s[std::size_t(stat_base_weight) * n + c]);
    }
    if (t == after(halvings_ - 1) && t < length_.total) --halvings_;
    if (t == middle()) {
      first_half_ = value();
      half_ = EndpointEvidence(all_.blocks());
    }
  }
  Jackknife value() const { return all_.value(log_zeta_, log_prior_); }
  LogZ drift(std::int64_t t) const {
    return t > middle() ? split_half_drift(first_half_, half_.value(log_zeta_, log_prior_)) : LogZ{NAN, NAN};
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("halvings", halvings_);
    archive("all", all_);
    archive("half", half_);
    archive("first_half", first_half_);
  }

 private:
  std::int64_t after(int halvings) const {
    return length_.discarded + ((length_.total - length_.discarded) >> halvings);
  }
  RunLength length_;
  double log_zeta_, log_prior_;
  int halvings_ = 1;
  EndpointEvidence all_, half_;  // half: since the middle, once it is passed
  Jackknife first_half_{NAN, {}};
};

/// The chains on their engine, and where they begin: at the pilot's seeds, or at draws of the base.
class TemperedChains {
 public:
  TemperedChains(const RunContext& context, const PathBase& fitted, const Pilot& pilot,
                 const TemperedOptions& options)
      : context_(context),
        pilot_(pilot),
        options_(options),
        by_levels_(options.tempering == Tempering::levels),
        base_(fitted),
        log_weight_(options.log_weight) {
    // Without weights of its own, beta has both ends equally likely where log zeta is the pilot's log Z.
    if (!by_levels_) base_.log_zeta += pilot.log_z.back();
    const int n = options.chains, levels = int(pilot.ladder.size());
    std::vector<std::uint32_t> units(options.groups);
    std::iota(units.begin(), units.end(), 0u);
    engine_ = base_.path_engine(context, units, n / options.groups, options.covariance, traced_iterations(n),
                                options.moves);
    // An eighth of the time at either end, between which chains travel: it is there that estimates are made.
    const double end = by_levels_ && log_weight_.empty() ? std::max(1.0, (levels - 2) / 6.0) : 1;
    level_ = options.start_at_base ? std::vector<int>(n, 0) : pilot.draw_levels(context.key, n, end);
    if (log_weight_.empty())
      for (double z : pilot.log_z) log_weight_.push_back(-z);
    log_weight_.front() += std::log(end);
    log_weight_.back() += std::log(end);
    ladder_ = engine_->set_ladder(pilot.ladder, log_weight_, pilot.step_size);
  }

  void begin() {
    const int n = options_.chains;
    // Continuous beta has one step size: that of the level where steps are shortest.
    const double shortest = *std::min_element(pilot_.step_size.begin(), pilot_.step_size.end());
    std::vector<double> beta(n), step(n);
    for (int c = 0; c < n; ++c) {
      beta[c] = ladder_[level_[c]];
      step[c] = by_levels_ ? pilot_.step_size[level_[c]] : shortest;
    }
    engine_->set_parameters(ParameterLayout::beta, beta);
    engine_->set_parameters(ParameterLayout::step_size, step);
    std::vector<int> seed(n);
    std::iota(seed.begin(), seed.end(), 0);
    const auto x = options_.start_at_base ? base_.draws(context_.key, kBaseStarts, n, n)
                                          : pilot_.positions(level_, seed);
    place(x, beta);
    if (options_.moves.control == Control::logistic) place(x, redrawn(context_.key, *engine_));
  }
  /// What it costs.
  double initial_gradients() const {
    return options_.moves.control == Control::logistic ? 2.0 * options_.chains : options_.chains;
  }

  Engine& engine() { return *engine_; }
  const std::vector<double>& ladder() const { return ladder_; }
  const std::vector<double>& log_weight() const { return log_weight_; }
  double log_zeta() const { return base_.taken_out(); }
  double log_prior() const { return by_levels_ ? log_weight_.front() - log_weight_.back() : 0; }

 private:
  /// Chains at x; joint tempering has a control coordinate besides.
  void place(std::vector<double> x, const std::vector<double>& beta) {
    if (options_.tempering == Tempering::joint) {
      const auto u = controls(context_.key, options_.moves.control, beta);
      x.insert(x.end(), u.begin(), u.end());
    }
    engine_->set_position(x);
    engine_->initialize();
  }

  const RunContext& context_;
  const Pilot& pilot_;
  const TemperedOptions& options_;
  const bool by_levels_;
  PathBase base_;
  std::vector<double> log_weight_, ladder_;  // of the levels; level 0 is the base
  std::vector<int> level_;                   // [chain]: where it begins
  std::unique_ptr<Engine> engine_;
};

}  // namespace

bool needs_short_steps(const StatSums& stats, double transitions) {
  return stats[stat_divergences] > 1e-6 * transitions;
}

LogZ by_stones(const LogZ& stepping, const LogZ& ends) {
  const double apart = std::abs(stepping.estimate - ends.estimate);
  return std::isfinite(apart) ? stepping.widened(apart) : stepping;
}

RunLength::RunLength(const PathRunOptions& o, double per_iteration, std::int64_t least, std::int64_t chunk)
    : total(o.iterations > 0 ? std::int64_t(double(o.iterations) / (1 - o.discard))
                             : std::max(least, std::int64_t(o.gradients / per_iteration))),
      discarded(std::int64_t(o.discard * double(total)) / chunk * chunk) {
  if (o.iterations > 0) total = discarded + o.iterations;
}

void PathRunResult::report(const StatSums& stats, int chains, double initial_gradients) {
  acceptance = stats[stat_acceptance] / (double(chains) * double(iterations));
  divergences = stats[stat_divergences];
  gradients = initial_gradients + stats[stat_gradients];
  round_trips = stats[stat_round_trips];
}

TemperedResult run_tempered(const RunContext& context, const PathBase& base, const Pilot& pilot,
                            const TemperedOptions& options) {
  TemperedChains chains(context, base, pilot, options);
  const int n = options.chains, groups = options.groups, chunk = traced_iterations(n);
  const double per_iteration = double(n) * context.with_jump(options.num_leapfrog);
  const RunLength length(options, per_iteration, 2 * chunk, chunk);
  TemperedResult out;
  out.discarded = length.discarded;
  out.draws.limit = options.draw_limit;

  const TransitionInfo* transition = options.moves.transition;
  const std::size_t counters = transition == nullptr ? 0 : transition->counters.size();
  StatSums stats(counters);
  const bool upwards = base.of_modes && options.tempering == Tempering::levels;
  StoneRecorder stones(SteppingStones(chains.ladder(), groups, upwards), groups, context.threads);
  StateRecorder states{out.draws, options.moves.control};
  GroupMoments moments(groups, chains.engine().moment_layout());
  TailRecorder tail(options.tail, chains.ladder(), chains.log_weight(), *context.target,
                    chains.engine().moment_layout(), groups);
  constexpr std::int64_t kTailEvery = 2;  // iterations
  const std::int64_t every = tail.wanted() ? std::min<std::int64_t>(kTailEvery, chunk) : chunk;
  EndRecorder ends(length, groups, chains.log_zeta(), chains.log_prior());
  if (options.se > 0) ends.may_stop(chunk);
  const double initial = chains.initial_gradients();
  RunLoop loop{.context = context, .engine = chains.engine(), .name = "sampling", .end = length.total};
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = options.num_leapfrog;
  loop.launch.tempering = options.tempering;
  const auto known_to = [&] {  // the error of what will be reported
    const LogZ all = ends.value().value();
    return (options.stones ? by_stones(stones.stones().value(chains.log_zeta()).value(), all) : all).se;
  };
  const auto enough = [&](std::int64_t t) {
    const std::int64_t second = t - ends.middle();  // is to be at least a quarter of the first half
    return second > 0 && 4 * second >= ends.middle() - length.discarded && second % (8 * chunk) == 0 &&
           double(t) * per_iteration >= options.least && stats[stat_round_trips] >= kLeastRoundTrips * n &&
           ((options.draws_suffice && tail.total() <= kLittleTail * moments.total()) ||
            known_to() < 0.9 * options.se);
  };
  if (!loop.take_up(stats, stones, states, moments, tail, ends)) chains.begin();
  while (loop.next()) {
    const std::int64_t end = std::min<std::int64_t>(loop.t + chunk, ends.boundary(loop.t));
    loop.launch.record = loop.t >= length.discarded;
    loop.stage = loop.launch.record ? "sampling" : "settling";
    while (loop.t < end) {
      loop.launch.begin = std::uint32_t(loop.t);
      loop.launch.end = std::uint32_t(std::min(loop.t + every, end));
      Launched launched = loop.advance();
      stats.record(launched);
      stones.record(launched);
      if (loop.t == end) states.record(launched);
      moments.record(launched);
      tail.record(launched);
      ends.record(launched);
    }
    if (loop.t == length.discarded)
      loop.launch.short_steps = needs_short_steps(stats, double(n) * double(loop.t));
    if (options.se > 0 && enough(loop.t)) break;
    loop.save(stats, stones, states, moments, tail, ends);
    loop.tell({initial + stats[stat_gradients], stats[stat_divergences]});
  }
  out.iterations = loop.t;
  out.interrupted = loop.interrupted;
  out.seconds = loop.seconds();
  out.drift = ends.drift(loop.t);
  out.ends = ends.value().value();
  out.stepping = stones.stones().value(chains.log_zeta()).value();
  out.moments = moments.value();
  out.top = moments.weights();
  out.tail = tail.sums();
  out.tail_moments = tail.moments();
  for (std::size_t k = 0; k < counters; ++k) out.counters.push_back(stats.counter(k));
  out.report(stats, n, initial);
  return out;
}

}  // namespace lockstep
