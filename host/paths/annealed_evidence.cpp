// SPDX-License-Identifier: Apache-2.0
#include "host/paths/annealed_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/estimators/annealed_weights.hpp"
#include "host/paths/annealing.hpp"
#include "host/paths/base_fit.hpp"
#include "host/paths/particle_drift.hpp"

namespace lockstep {
namespace {

// Joint standard errors between annealing forward and back, whose tails are heavy.
constexpr double kApart = 5;
constexpr double kLingering = 0.1;  // of a run's steps, at beta = 1 after the last level, or a trajectory

AnnealingOptions annealing(const RunContext& context, const Pilot& pilot, std::vector<double> ladder,
                           int num_leapfrog, double gradients, bool lingers) {
  constexpr int kPack = 8;  // runs come by so many, two at least
  AnnealingOptions o;
  o.ladder = std::move(ladder);
  const auto barrier = pilot.barriers();
  for (double beta : o.ladder) o.step_size.push_back(pilot.step_size_at(beta, barrier));
  const double run = double(o.ladder.size() - 1) * context.with_jump(num_leapfrog);
  o.linger = lingers ? std::max(1, int(std::lround(kLingering * run / kLingerLeapfrog))) : 0;
  o.runs = kPack * std::max(2, int(gradients / (kPack * (run + o.linger * kLingerLeapfrog))));
  o.num_leapfrog = num_leapfrog;
  return o;
}

LogZ shifted(const PathBase& base, const LogZ& z) { return z.shifted(base.taken_out()); }

/// As a stage of its own.
AnnealingResult anneal_stage(const RunContext& context, const std::string& name, const PathBase& base,
                             const AnnealingOptions& o) {
  Stage<AnnealingResult> stage(*context.stages, name);
  return stage.done() ? stage.result() : stage.keep(anneal(context, base, o));
}

/// Bennett's ratio between annealing forward and back, and how many joint standard errors these are apart.
struct BothWays {
  LogZ bennett;
  double apart;
};

/// The reverse runs that belong to `forward`, and the bounds from both.
BothWays add_reverse(MethodResult& f, const RunContext& context, const std::string& stage,
                     const PathBase& base, AnnealingOptions o, const AnnealingResult& forward) {
  o.reverse = true;
  const AnnealingResult back = anneal_stage(context, stage, base, o);
  const Bidirectional b = bidirectional(forward.log_weight, back.log_weight);
  f.gradients += back.gradients;
  f.diagnostics.divergences += back.divergences;
  f.back += double(o.ladder.size() - 1) * o.runs;
  f.seconds += back.seconds;
  f.lower = shifted(base, b.lower);
  f.upper = shifted(base, b.upper);
  const LogZ bennett = shifted(base, with_larger_error(b.bennett, b.bennett_bootstrap_se, o.runs));
  f.diagnostics.add("bennett", bennett);
  f.diagnostics.add("forward", shifted(base, b.forward));
  f.diagnostics.add("reverse", shifted(base, b.reverse));
  f.diagnostics.add("reverse_ess", b.reverse_ess);
  if (f.lower.estimate - f.upper.estimate > 3 * std::hypot(f.lower.se, f.upper.se))
    f.failed.push_back("bounds_cross");
  const double apart =
      std::abs(b.forward.estimate - b.reverse.estimate) / std::hypot(b.forward.se, b.reverse.se);
  f.diagnostics.add("forward_reverse_z", apart);
  if (!(apart <= kApart))
    f.warnings.push_back(fmt::format(
        "annealing forward and back are {:.0f} standard errors apart: look at the bounds, or anneal longer",
        apart));
  return {bennett, apart};
}

MethodResult anneal_once(const RunContext& context, const PathBase& base, const Pilot& pilot,
                         const EvidenceJob& job, double gradients, int round) {
  const EvidenceConfig& c = job.config;
  const bool both = c.of->both_ways;
  AnnealingOptions o = annealing(context, pilot, c.ladder(pilot.barriers()), c.num_leapfrog,
                                 both ? 0.5 * gradients : gradients, true);
  o.covariance = job.covariance;
  const AnnealingResult forward = anneal_stage(context, fmt::format("forward {}", round), base, o);
  MethodResult f;
  f.moments = forward.moments;
  f.diagnostics.acceptance = forward.acceptance;
  f.diagnostics.divergences = forward.divergences;
  f.gradients = forward.gradients;
  f.iterations = double(int(o.ladder.size()) - 1 + o.linger);
  f.seconds = forward.seconds;
  f.chains = o.runs;
  f.draws.dim = base.dim();
  f.draws.add(forward.position, forward.log_weight);
  const WeightSummary s = summarise_weights(forward.log_weight);
  f.log_z = shifted(base, s.log_mean);
  f.lower = shifted(base, s.mean_log);
  f.diagnostics.add("annealing_ess", s.ess);
  f.diagnostics.schedule = o.ladder.size() <= 1001 ? o.ladder : pilot.ladder;
  if (!(s.ess >= 20)) f.failed.push_back("weight_ess");
  judge_drift(f, forward.drift, *context.target, false);
  if (!both) return f;
  const BothWays reversed = add_reverse(f, context, fmt::format("back {}", round), base, o, forward);
  const LogZ by_forward = std::exchange(f.log_z, reversed.bennett);
  if (!(reversed.apart <= kApart))
    f.disagree("annealing forward", by_forward.estimate, "annealing forward and back", f.log_z.estimate);
  return f;
}

}  // namespace

void check_both_ways(MethodResult& f, const RunContext& context, const PathBase& base, const Pilot& pilot,
                     double gradients) {
  const RunContext own = with_own_numbers(context, "both ways");
  const AnnealingOptions o =
      annealing(context, pilot, pilot.barriers().equal_ladder(200), 1, 0.5 * gradients, false);
  const AnnealingResult forward = anneal_stage(own, "check forward", base, o);
  f.gradients += forward.gradients;
  f.seconds += forward.seconds;
  const LogZ bennett = add_reverse(f, own, "check back", base, o, forward).bennett;
  const double distance = std::abs(bennett.estimate - f.log_z.estimate);
  if (!(distance <= 3 * std::hypot(bennett.se, f.log_z.se) + kRounding))
    f.disagree("the chains", f.log_z.estimate, "annealing both ways from exact draws", bennett.estimate);
}

double first_round(double gradients, double se) { return se > 0 ? std::min(gradients, 1e6) : gradients; }

double next_round(double budget, double left, const LogZ& found, double se) {
  const double ratio = found.se / se;
  if (!(se > 0) || ratio <= 1 || left < 1.5 * budget) return 0;
  return std::min(left, budget * std::max(1.5, 1.2 * ratio * ratio));
}

MethodResult annealed(const RunContext& context, const PathBase& base, const Pilot& pilot,
                      const EvidenceJob& job, double gradients) {
  const double se = job.run.se;
  double budget = first_round(gradients, se), spent = 0;
  for (int round = 0;; ++round) {
    MethodResult f = anneal_once(context, base, pilot, job, budget, round);
    f.gradients += spent;
    spent = f.gradients;
    budget = next_round(budget, gradients - spent, f.log_z, se);
    if (budget == 0) return f;
  }
}

}  // namespace lockstep
