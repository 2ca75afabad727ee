// SPDX-License-Identifier: Apache-2.0
#include "host/paths/parallel_tempering.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "targets/registry.hpp"

namespace lockstep {
namespace {

/// The copies' chains on one engine: chain u * levels + k of copy u begins at level k. In the iterations that
/// are not recorded the ladder adapts, after rounds of doubling length.
class Copies {
 public:
  Copies(const RunContext& context, const PathBase& base, const Pilot& pilot,
         const ParallelTemperingOptions& o)
      : options_(o),
        threads_(context.threads),
        pilot_(pilot),
        barrier_(pilot.barriers()),
        levels_(int(o.ladder.size())),
        chains_(o.copies * levels_),
        each_(context.with_jump(o.num_leapfrog)),
        length_(o, double(chains_) * each_, 64, 1),
        rejected_(levels_ - 1, 0.0),
        delta_(std::size_t(o.groups) * levels_) {
    std::vector<std::uint32_t> units(o.copies);
    std::iota(units.begin(), units.end(), 0u);
    RunContext swaps = context;
    swaps.whole_units = true;
    engine_ = base.path_engine(swaps, units, levels_, o.covariance, traced_iterations(chains_));
    set_ladder(o.ladder);
    stride_ = std::max<std::int64_t>(
        1, std::int64_t(std::ceil(double(length_.total - length_.discarded) * chains_ / kMostLadderSamples)));
    next_look_ = 2 * (length_.discarded + 64);
  }

  /// Of a run that was taken up the ladder alone is set: the rest is the engine's state.
  void begin(bool taken_up) {
    if (taken_up) {
      engine_->set_ladder(ladder_, std::vector<double>(levels_, 0.0), step_size_);
      return;
    }
    std::vector<int> seed(chains_), held(chains_);
    for (int c = 0; c < chains_; ++c) {
      held[c] = c % levels_;
      seed[c] = c / levels_;
    }
    place(held);
    engine_->set_position(pilot_.on_ladder(options_.ladder).positions(held, seed));
    engine_->initialize();
    next_round(0);
  }
  /// Where a launch from t on ends.
  std::int64_t boundary(std::int64_t t) const {
    return std::min(t + traced_iterations(chains_), t < length_.discarded ? round_end_ : length_.total);
  }
  /// At the end of a round, levels move to equal rejection, and every chain stays at its level. True then.
  bool respace(std::int64_t t) {
    if (t > length_.discarded || t != round_end_) return false;
    const auto beta = engine_->beta();
    std::vector<int> held(chains_);
    for (int c = 0; c < chains_; ++c) held[c] = level_of(beta[c]);
    const CommunicationBarrier barrier(ladder_, take_rejection());
    if (options_.respace) set_ladder(barrier.equal_ladder(levels_ - 1));
    place(held);
    round_ *= 2;
    next_round(t);
    return true;
  }

  void record(Launched& launched) {
    const auto& trace = launched.trace();
    const std::int64_t first = launched.spec.begin, last = launched.spec.end;
    const std::size_t padded = engine_->padded_chains();
    const int per = options_.copies / options_.groups;
    std::vector<double> delta(levels_);
    for (std::int64_t t = first; t < last; ++t)
      for (int u = 0; u < options_.copies; ++u) {
        for (int k = 0; k < levels_; ++k) {
          const std::size_t at = 2 * (t - first) * padded + std::size_t(u) * levels_ + k;
          delta[level_of(trace[at])] = trace[at + padded];
        }
        for (int k = 0; k + 1 < levels_; ++k) {
          const double r = (ladder_[k] - ladder_[k + 1]) * (delta[k] - delta[k + 1]);
          rejected_[k] += r >= 0 ? 0 : r < 0 ? -std::expm1(r) : 1;  // a NaN is never accepted
        }
        if (!launched.spec.record || t % stride_ != 0) continue;
        for (int k = 0; k < levels_; ++k) delta_[std::size_t(u / per) * levels_ + k].push_back(delta[k]);
      }
    counted_ += double(last - first) * options_.copies;
  }

  /// Rejection rates since the last call.
  std::vector<double> take_rejection() {
    auto rates = rejected_;
    for (double& r : rates) r /= counted_;
    rejected_.assign(rates.size(), 0.0);
    counted_ = 0;
    return rates;
  }
  LadderSamples samples() const {
    LadderSamples s;
    s.ladder = ladder_;
    s.copies = options_.groups;
    s.draws = int(delta_[0].size());
    for (const auto& d : delta_) s.delta.insert(s.delta.end(), d.begin(), d.end());
    return s;
  }

  /// Whether log Z is known as well as is asked for; looks ever more seldom.
  bool enough(std::int64_t t) {
    if (!(options_.se > 0) || t < next_look_ || double(t) * chains_ * each_ < options_.least) return false;
    next_look_ = t + t / 4;
    return bridge_stepping_stones(samples(), 0, threads_).se() < 0.7 * options_.se;
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("ladder", ladder_);
    archive("step_size", step_size_);
    archive("round", round_);
    archive("round_end", round_end_);
    archive("rejected", rejected_);
    archive("counted", counted_);
    archive("delta", delta_);
    archive("next_look", next_look_);
  }

  Engine& engine() { return *engine_; }
  int chains() const { return chains_; }
  const RunLength& length() const { return length_; }

 private:
  int level_of(double beta) const {  // ladders are held to the precision of beta: equality is exact
    return int(std::lower_bound(ladder_.begin(), ladder_.end(), beta) - ladder_.begin());
  }
  void set_ladder(std::vector<double> ladder) {
    step_size_.clear();
    for (double b : ladder) step_size_.push_back(pilot_.step_size_at(b, barrier_));
    ladder_ = engine_->set_ladder(std::move(ladder), std::vector<double>(levels_, 0.0), step_size_);
  }
  void place(const std::vector<int>& held) {
    std::vector<double> beta(chains_), step(chains_);
    for (int c = 0; c < chains_; ++c) {
      beta[c] = ladder_[held[c]];
      step[c] = step_size_[held[c]];
    }
    engine_->set_beta(beta);
    engine_->set_parameters(ParameterLayout::step_size, step);
  }
  /// The last round takes what would not be two.
  void next_round(std::int64_t t) {
    round_end_ = t + 3 * round_ > length_.discarded ? length_.discarded : t + round_;
  }

  const ParallelTemperingOptions& options_;
  const int threads_;
  const Pilot& pilot_;
  const CommunicationBarrier barrier_;
  int levels_, chains_;
  double each_;  // gradients of a transition and its jump
  RunLength length_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> ladder_, step_size_;
  std::int64_t round_ = 8, round_end_ = 0, stride_ = 1, next_look_ = 0;
  std::vector<double> rejected_;  // [step of the ladder], summed over `counted_` copies and iterations
  double counted_ = 0;
  std::vector<std::vector<double>> delta_;  // [group and level]: every stride-th recorded iteration's
};

}  // namespace

ParallelTemperingResult run_parallel_tempering(const RunContext& context, const PathBase& base,
                                               const Pilot& pilot, const ParallelTemperingOptions& o) {
  Copies copies(context, base, pilot, o);
  const int n = copies.chains();
  const RunLength& length = copies.length();
  ParallelTemperingResult out;
  out.discarded = length.discarded;
  out.draws.limit = o.draw_limit;
  StatSums stats;
  StateRecorder states{out.draws, Control::none};
  GroupMoments moments(o.groups, copies.engine().moment_layout());
  RunLoop loop{.context = context, .engine = copies.engine(), .name = "sampling", .end = length.total};
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = o.num_leapfrog;
  loop.launch.tempering = Tempering::swap;
  copies.begin(loop.take_up(stats, copies, states, moments));
  while (loop.next()) {
    loop.launch.end = std::uint32_t(copies.boundary(loop.t));
    loop.launch.record = loop.t >= length.discarded;
    loop.stage = loop.launch.record ? "sampling" : "adapting the ladder";
    Launched launched = loop.advance();
    stats.record(launched);
    copies.record(launched);
    states.record(launched);
    moments.record(launched);
    if (copies.respace(loop.t))
      loop.launch.short_steps = needs_short_steps(stats, double(n) * double(loop.t));
    if (copies.enough(loop.t)) break;
    loop.save(stats, copies, states, moments);
    loop.tell({stats[stat_gradients], stats[stat_divergences]});
  }
  out.iterations = loop.t;
  out.interrupted = loop.interrupted;
  out.seconds = loop.seconds();
  out.samples = copies.samples();
  out.rejection = copies.take_rejection();
  out.barrier = std::accumulate(out.rejection.begin(), out.rejection.end(), 0.0);
  out.moments = moments.value();
  out.report(stats, n, n);
  return out;
}

}  // namespace lockstep
