// SPDX-License-Identifier: Apache-2.0
#include "host/paths/evidence_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "host/estimators/estimates.hpp"
#include "host/paths/annealed_evidence.hpp"
#include "host/paths/annealing.hpp"
#include "host/paths/base_fit.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"

namespace lockstep {
namespace {

constexpr double kLadderTrips = 5;      // round trips a chain of parallel tempering, whose copies are few
constexpr double kLeastParticles = 20;  // of each group of sequential Monte Carlo
constexpr double kMbarSamples = 2e5;    // of Delta: each costs the square of the levels, several times

/// Half of the interval that holds 99.7 %: of few groups more than three standard errors.
double three_errors(const LogZ& z) { return z.interval(0.997)[1] - z.estimate; }
/// Two estimates of one number are further apart than the worse of them allows.
bool differ(const LogZ& a, const LogZ& b) {
  return !(std::abs(a.estimate - b.estimate) <=
           std::max(three_errors(a), three_errors(b)) + kRounding * (1 + std::abs(a.estimate)));
}
/// A difference that is not zero by its own error.
bool significant(const LogZ& difference) {
  return !(std::abs(difference.estimate) <= three_errors(difference) + kRounding);
}

PathRunOptions path_run(const EvidenceJob& job, int dim, double gradients) {
  const EvidenceConfig& c = job.config;
  const RunOptions& run = job.run;
  return {.groups = c.groups,
          .num_leapfrog = c.num_leapfrog,
          .gradients = gradients,
          .iterations = c.iterations,
          .discard = c.discard,
          .se = run.se,
          .least = 0.8 * std::min(c.gradients, 1e7),
          .covariance = job.covariance,
          .draw_limit = run.draws == kAllDraws || run.weighted_draws
                            ? 0
                            : std::max<std::int64_t>(16, kWeightedNumbers / (dim * std::max(c.chains, 1)))};
}

/// What chains that must travel between beta = 0 and 1 report alike; `least_trips`: round trips of each, below
/// which they are too short for what they estimate.
void report_chains(MethodResult& f, const PathRunResult& r, double least_trips) {
  f.draws = r.draws;
  f.moments = r.moments;
  f.diagnostics.acceptance = r.acceptance;
  f.diagnostics.divergences = r.divergences;
  f.gradients = r.gradients;
  f.iterations = double(r.iterations);
  f.seconds = r.seconds;
  f.interrupted = r.interrupted;
  const double each = r.gradients / f.chains, trips = r.round_trips / f.chains;
  f.diagnostics.gradients_per_chain = each;
  f.diagnostics.add("discarded", r.discarded);
  f.diagnostics.add("round_trips", r.round_trips);
  f.diagnostics.add("least_round_trips", least_trips);  // of each chain: what the gate asks for
  if (!(trips >= least_trips)) {
    f.failed.push_back("round_trips");
    f.warnings.push_back(
        fmt::format("chains are short: {:.0f} gradients and {:.2g} round trips each", each, trips));
  }
}

MethodResult tempered(const RunContext& context, const PathBase& base, const Pilot& pilot,
                      const EvidenceJob& job, double gradients) {
  const EvidenceConfig& c = job.config;
  // Of `auto` alone, where draws are at hand and there is enough to make them worth it: a twentieth of the
  // budget.
  const double check =
      c.of->checks_both_ways && c.exact_draws && context.target->can_draw() && c.gradients >= 1e5
          ? 0.05 * std::min(gradients, 1e7)
          : 0;
  TemperedOptions o{path_run(job, base.dim(), gradients - check)};
  o.tempering = c.of->tempering;
  o.moves = {c.of->control, c.transition, c.transition_settings};
  o.chains = c.chains;
  o.start_at_base = c.start_at_base;
  o.log_weight = c.weights;
  const auto barrier = pilot.barriers();
  const std::optional<Pilot> own =
      c.own_ladder() ? std::optional(pilot.on_ladder(c.ladder(barrier))) : std::nullopt;
  const Pilot& on = own ? *own : pilot;
  Stage<TemperedResult> chains(*context.stages, "chains");
  const TemperedResult r = chains.done() ? chains.result() : chains.keep(run_tempered(context, base, on, o));
  MethodResult f;
  f.chains = c.chains;
  // Bounded terms where levels have learned weights or are counted.
  f.log_z = c.of->by_stones ? r.stepping : r.ends;
  report_chains(f, r, 1);
  for (std::size_t k = 0; k < r.counters.size(); ++k)
    f.diagnostics.counters.emplace_back(c.transition->counters[k], r.counters[k]);
  f.diagnostics.add("integrated", r.ends);
  f.diagnostics.add("stepping_stones", r.stepping);
  f.diagnostics.add("drift", r.drift);
  f.diagnostics.schedule = on.ladder;
  double widest = 0;
  for (std::size_t k = 1; k < on.ladder.size(); ++k)
    widest = std::max(widest, barrier.cumulative(on.ladder[k]) - barrier.cumulative(on.ladder[k - 1]));
  if (c.own_ladder() && widest > 0.25)
    f.warnings.push_back("levels are far apart: the stepping stones between them are not relied on");
  else if (differ(r.ends, r.stepping))
    f.disagree("all levels together", r.ends.estimate, "stepping stones", r.stepping.estimate);
  if (significant(r.drift)) f.failed.push_back("drift");
  if (check > 0 && !r.interrupted) check_both_ways(f, context, base, pilot, c.groups, check);
  return f;
}

/// Parallel tempering, and thermodynamic integration over its levels.
MethodResult laddered(const RunContext& context, const PathBase& base, const Pilot& pilot,
                      const EvidenceJob& job, double gradients) {
  const EvidenceConfig& c = job.config;
  ParallelTemperingOptions o{path_run(job, base.dim(), gradients), 0, {}, true};
  o.ladder = c.ladder(pilot.barriers());
  o.respace = c.schedule == "barrier";
  // Copies that are too short are worth less than fewer.
  const double longest = gradients / (double(o.ladder.size()) * context.with_jump(c.num_leapfrog) * 500);
  o.copies = c.copies > 0 ? c.copies
                          : c.groups * int(std::clamp(longest / c.groups, 1.0, double(c.seeds / c.groups)));
  const ParallelTemperingResult r = run_parallel_tempering(context, base, pilot, o);
  const double zeta = base.taken_out();
  const LadderSamples& s = r.samples;
  const int threads = context.threads;
  const Jackknife bridge = bridge_stepping_stones(s, zeta, threads),
                  forward = forward_stepping_stones(s, zeta), backward = backward_stepping_stones(s, zeta);
  const auto integration = thermodynamic_integration(s, zeta);
  const LogZ of_groups = integration.log_z.value();
  const auto with_discretisation = [&](double se) { return std::hypot(se, integration.discretisation); };
  const LogZ integrated = {of_groups.estimate, with_discretisation(of_groups.se),
                           with_discretisation(of_groups.unscaled_se), of_groups.df};
  const bool integrates = c.of->integrates;
  MethodResult f;
  f.chains = o.copies * s.levels();
  f.log_z = integrates ? integrated : bridge.value();
  report_chains(f, r, kLadderTrips);
  for (int k = 0; k < s.copies; ++k) {
    const LadderSamples one = s.copy(k);
    f.copies.push_back(integrates ? thermodynamic_integration(one, zeta).log_z.estimate
                                  : bridge_stepping_stones(one, zeta, threads).estimate);
  }
  const LogZ drift = split_half_drift(bridge_stepping_stones(s.slice(0, s.draws / 2), zeta, threads),
                                      bridge_stepping_stones(s.slice(s.draws / 2, s.draws), zeta, threads));
  const int stride = std::max(1, int(double(s.delta.size()) / kMbarSamples));
  const LogZ combined = mbar(s.thinned(stride), zeta, threads).value();
  f.diagnostics.add("bridge", bridge.value());
  f.diagnostics.add("forward", forward.value());
  f.diagnostics.add("backward", backward.value());
  f.diagnostics.add("mbar", combined);
  f.diagnostics.add("thermodynamic_integration", integrated);
  f.diagnostics.add("discretisation", integration.discretisation);
  f.diagnostics.add("drift", drift);
  f.diagnostics.add("copies", o.copies);
  f.diagnostics.add("rejection", r.rejection);
  f.diagnostics.barrier = r.barrier;
  f.diagnostics.schedule = s.ladder;
  if (significant(drift)) f.failed.push_back("drift");
  // The one-sided estimates may have infinite variance: they are shown, and judge nothing.
  const LogZ& second = integrates ? integrated : combined;
  if (differ(second, bridge.value()))
    f.disagree(integrates ? "thermodynamic integration" : "MBAR", second.estimate,
               "Bennett's ratio between neighbours", bridge.value().estimate);
  return f;
}

MethodResult sequential(const Pilot& pilot, const PathBase& base, const EvidenceJob& job,
                        const TargetInstance& target) {
  const EvidenceConfig& c = job.config;
  MethodResult f;
  f.log_z = (pilot.log_z_of_groups() + base.taken_out()).value();
  const auto weight = pooled_weights(pilot);
  f.moments = moments_of_states(target, pilot.last, weight, c.groups, job.covariance);
  f.diagnostics.acceptance = pilot.acceptance;
  f.diagnostics.divergences = pilot.divergences;
  f.chains = int(weight.size());
  f.draws.dim = target.dim();
  std::vector<double> log_weight;
  for (double w : weight) log_weight.push_back(std::log(w));
  f.draws.add(pilot.last, log_weight);
  // Few particles that count, or many copies of few, or a group or two that hold most of Z: what the others
  // missed, all may have missed.
  const int ancestors = *std::min_element(pilot.group_ancestors.begin(), pilot.group_ancestors.end());
  const double particles = *std::min_element(pilot.group_ess.begin(), pilot.group_ess.end());
  double square = 0;
  LogSum total;
  for (double z : pilot.group_log_z) total.add(z);
  for (double z : pilot.group_log_z) square += std::exp(2 * (z - total.log()));
  f.diagnostics.add("least_ancestors", ancestors);
  f.diagnostics.add("least_particles", particles);
  f.diagnostics.add("effective_groups", 1 / square);
  if (!(ancestors >= kLeastParticles)) f.failed.push_back("ancestors");
  if (!(particles >= kLeastParticles)) f.failed.push_back("weight_ess");
  if (!(1 / square >= 0.5 * c.groups)) f.failed.push_back("groups");
  return f;
}

}  // namespace

MethodResult run_method(const RunContext& context, const PathBase& base, const Pilot& pilot,
                        const EvidenceJob& job, double gradients) {
  const EvidenceConfig& c = job.config;
  const RunOptions& run = job.run;
  MethodResult f = c.is(EvidenceKind::particles)   ? sequential(pilot, base, job, *context.target)
                   : c.is(EvidenceKind::annealing) ? annealed(context, base, pilot, job, gradients)
                   : c.is(EvidenceKind::ladder)    ? laddered(context, base, pilot, job, gradients)
                                                   : tempered(context, base, pilot, job, gradients);
  if (run.se > 0 && !(f.log_z.se <= run.se)) f.failed.push_back("se");
  f.diagnostics.num_leapfrog = c.num_leapfrog;
  f.diagnostics.step_size = pilot.step_size.back();
  return f;
}

MethodResult run_pseudo_extended(const RunContext& context, const EvidenceJob& job) {
  const EvidenceConfig& c = job.config;
  const RunOptions& run = job.run;
  ChainRunOptions o{run, {0}};
  o.gradients = c.iterations > 0 ? 0 : c.gradients;
  o.whole_budget = true;
  o.se = 0;
  o.log_z_se = run.se;
  o.covariance = job.covariance;
  if (!run.out.empty() && run.draws == 0) o.draws = kUsualDraws;  // for the pictures
  o.searches = true;
  o.planned = planned_gradients(c, run);
  o.overview = overview_iterations(*context.target, run.chains);
  ChainRunResult r = run_chains(context, c.pseudo_extended, o);
  Estimates e = estimate(r.units[0]);
  judge_ranks(e, draw_figures(*context.target, r, run.thin, context.threads));
  MethodResult f;
  if (!r.log_z.empty()) f.log_z = r.log_z[0];
  f.moments = e;
  f.diagnostics.acceptance = e.acceptance;
  f.diagnostics.divergences = r.units[0].stats[stat_divergences];
  f.gradients = e.gradients;
  f.preparation = r.frozen.preparation(0);
  f.search = r.frozen.search_gradients[0];
  f.iterations = double(r.units[0].iterations);
  f.seconds = r.sampling_seconds;
  f.chains = run.chains;
  f.diagnostics.step_size = r.frozen.step_size[0];
  f.diagnostics.num_leapfrog =
      int(std::lround(-double(r.followers) +
                      e.gradients / (f.iterations * f.chains * c.pseudo_extended.model.pseudo_samples)));
  f.interrupted = r.interrupted;
  f.failed = failed_gates(e, r, 0, c.pseudo_extended);
  f.warnings = advice_of(r.units[0], *c.pseudo_extended.transition);
  f.judge_modes(lockstep::judge_modes(r, e, context.threads));
  if (const std::string apart = judge_single_chains(f.failed, e); !apart.empty()) f.warnings.push_back(apart);
  f.diagnostics.counters = counters_of(r.units[0], *c.pseudo_extended.transition);
  f.diagnostics.gradients_per_chain = e.gradients / f.chains;
  report_rhat(f.diagnostics, e);
  f.diagnostics.base_log_zeta = r.frozen.log_zeta[0];
  if (run.se > 0 && !(f.log_z.se <= run.se)) f.failed.push_back("se");
  f.chain_run = std::move(r);
  return f;
}

}  // namespace lockstep
