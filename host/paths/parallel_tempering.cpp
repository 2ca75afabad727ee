// SPDX-License-Identifier: Apache-2.0
#include "host/paths/parallel_tempering.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/util/clock.hpp"
#include "host/util/interrupt.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

/// The copies' chains on one engine: chain u * levels + k of copy u begins at level k.
class Copies {
 public:
  Copies(const RunContext& context, const GaussianBase& base, const Pilot& pilot,
         const ParallelTemperingOptions& o)
      : options_(o),
        pilot_(pilot),
        barrier_(pilot.barriers()),
        levels_(int(o.ladder.size())),
        chains_(o.copies * levels_) {
    std::vector<std::uint32_t> units(o.copies);
    std::iota(units.begin(), units.end(), 0u);
    chunk_ = traced_iterations(chains_);
    engine_ = base.path_engine(context, units, levels_, o.covariance, chunk_);
    std::vector<int> seed(chains_), held(chains_);
    set_ladder(o.ladder);
    for (int c = 0; c < chains_; ++c) {
      held[c] = c % levels_;
      seed[c] = c / levels_;
    }
    place(held);
    engine_->set_position(pilot.on_ladder(o.ladder).positions(held, seed));
    engine_->initialize();
    launch_.key = context.key;
    launch_.num_leapfrog = o.num_leapfrog;
    launch_.tempering = Tempering::swap;
    stats_.assign(kStatRows, 0.0);
    rejected_.assign(levels_ - 1, 0.0);
  }

  /// So many iterations, at most a chunk; `visit(iteration, copy, level, Delta)` sees every state.
  template <class Visit>
  void advance(int iterations, bool record, Visit&& visit) {
    launch_.begin = launch_.end;
    launch_.end += std::uint32_t(iterations);
    launch_.record = record;
    engine_->advance(launch_);
    const auto s = engine_->take_stats();
    for (int r = 0; r < kStatRows; ++r)
      for (int c = 0; c < chains_; ++c) stats_[r] += s[std::size_t(r) * chains_ + c];
    const auto trace = engine_->trace();
    const std::size_t padded = engine_->padded_chains();
    std::vector<double> delta(levels_);
    for (int i = 0; i < iterations; ++i)
      for (int u = 0; u < options_.copies; ++u) {
        for (int k = 0; k < levels_; ++k) {
          const std::size_t at = 2 * i * padded + std::size_t(u) * levels_ + k;
          delta[level_of(trace[at])] = trace[at + padded];
        }
        for (int k = 0; k + 1 < levels_; ++k) {
          const double r = (ladder_[k] - ladder_[k + 1]) * (delta[k] - delta[k + 1]);
          rejected_[k] += r >= 0 ? 0 : r < 0 ? -std::expm1(r) : 1;  // a NaN is never accepted
        }
        for (int k = 0; k < levels_; ++k) visit(i, u, k, delta[k]);
      }
    counted_ += double(iterations) * options_.copies;
  }

  /// Rejection rates since the last call.
  std::vector<double> take_rejection() {
    auto rates = rejected_;
    for (double& r : rates) r /= counted_;
    rejected_.assign(rates.size(), 0.0);
    counted_ = 0;
    return rates;
  }
  /// Levels move to equal rejection; every chain stays at its level.
  void respace() {
    const auto beta = engine_->beta();
    std::vector<int> held(chains_);
    for (int c = 0; c < chains_; ++c) held[c] = level_of(beta[c]);
    const CommunicationBarrier barrier(ladder_, take_rejection());
    if (options_.respace) set_ladder(barrier.equal_ladder(levels_ - 1));
    place(held);
    launch_.short_steps = needs_short_steps(stats_, double(chains_) * launch_.end);
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("ladder", ladder_);
    archive("step_size", step_size_);
    archive("stats", stats_);
    archive("rejected", rejected_);
    archive("counted", counted_);
    archive("iterations", launch_.end);
    archive("short_steps", launch_.short_steps);
    archive("state", state_);
  }
  /// Before fields() are saved, and after they were loaded.
  void hold() { state_ = engine_->state(); }
  void restore() {
    engine_->set_ladder(ladder_, std::vector<double>(levels_, 0.0), step_size_);
    engine_->set_state(state_);
  }

  Engine& engine() { return *engine_; }
  const std::vector<double>& ladder() const { return ladder_; }
  const std::vector<double>& stats() const { return stats_; }
  int chains() const { return chains_; }
  int chunk() const { return chunk_; }

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

  const ParallelTemperingOptions& options_;
  const Pilot& pilot_;
  const CommunicationBarrier barrier_;
  int levels_, chains_, chunk_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> ladder_, step_size_, stats_, rejected_, state_;
  double counted_ = 0;
  LaunchSpec launch_;
};

}  // namespace

ParallelTemperingResult run_parallel_tempering(const RunContext& context, const GaussianBase& base,
                                               const Pilot& pilot, const ParallelTemperingOptions& o) {
  const auto clock = Clock::now();
  Copies copies(context, base, pilot, o);
  const int levels = int(o.ladder.size()), n = copies.chains(), per = o.copies / o.groups,
            chunk = copies.chunk();
  const RunLength length(o, double(n) * o.num_leapfrog, 64, 1);
  const std::int64_t total = length.total;
  const Tally tally(context, [&] {
    return RunHealth::Counts{copies.stats()[stat_gradients], copies.stats()[stat_divergences]};
  });
  ParallelTemperingResult out;
  out.discarded = length.discarded;
  out.draws.limit = o.draw_limit;

  CheckpointPlan plan = o.checkpoint;
  std::int64_t t = plan.resume ? out.discarded : 0;  // none is saved while the ladder adapts
  for (std::int64_t round = 8; t < out.discarded; round *= 2) {
    const std::int64_t end = t + 3 * round > out.discarded ? out.discarded : t + round;
    while (t < end) {
      const int step = int(std::min<std::int64_t>(chunk, end - t));
      copies.advance(step, false, [](int, int, int, double) {});
      t += step;
      context.progress("adapting the ladder", double(t) / double(total));
    }
    copies.respace();
  }

  const auto stride =
      std::max<std::int64_t>(1, std::int64_t(std::ceil(double(total - t) * n / kMostLadderSamples)));
  std::vector<std::vector<double>> delta(std::size_t(o.groups) * levels);
  const auto samples = [&] {
    LadderSamples s;
    s.ladder = copies.ladder();
    s.copies = o.groups;
    s.draws = int(delta[0].size());
    for (const auto& d : delta) s.delta.insert(s.delta.end(), d.begin(), d.end());
    return s;
  };
  std::vector<std::vector<double>> sums(o.groups,
                                        std::vector<double>(copies.engine().moment_layout().rows(), 0.0));
  std::int64_t check = 2 * (t + 64);
  double seconds_before = 0;
  const auto fields = [&](Checkpoint& c) {
    c("iteration", t);
    c("check", check);
    c("copies", copies);
    c("delta", delta);
    c("sums", sums);
    c("draws", out.draws);
    c("seconds", out.seconds);
  };
  if (plan.resume) {
    plan.load(fields);
    copies.restore();
    seconds_before = out.seconds;
  }
  while (t < total) {
    const int step = int(std::min<std::int64_t>(chunk, total - t));
    copies.advance(step, true, [&](int i, int copy, int level, double d) {
      if ((t + i) % stride == 0) delta[std::size_t(copy / per) * levels + level].push_back(d);
    });
    if (o.draws) out.draws.add(copies.engine(), Control::none);
    const auto m = copies.engine().take_moments();
    for (std::size_t r = 0; r < sums[0].size(); ++r)
      for (int c = 0; c < n; ++c) sums[c / levels / per][r] += m[r * n + c];
    t += step;
    context.progress("sampling", double(t) / double(total));
    out.interrupted = t < total && interrupted();
    if (t < total && plan.due(out.interrupted)) {
      out.seconds = seconds_before + seconds_since(clock);
      copies.hold();
      plan.save(fields);
    }
    if (out.interrupted) break;
    if (o.se > 0 && t >= check && double(t) * n * o.num_leapfrog >= o.least) {
      if (bridge_stepping_stones(samples(), 0).se() < 0.7 * o.se) break;
      check = t + t / 4;
    }
  }
  out.iterations = t;
  out.samples = samples();
  out.rejection = copies.take_rejection();
  out.barrier = std::accumulate(out.rejection.begin(), out.rejection.end(), 0.0);
  out.moments = weighted_moments(copies.engine().moment_layout(), sums);
  out.report(copies.stats(), n, n);
  out.seconds = seconds_before + seconds_since(clock);
  return out;
}

}  // namespace lockstep
