// SPDX-License-Identifier: Apache-2.0
#include "host/paths/evidence_methods.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "host/paths/annealed_evidence.hpp"
#include "host/paths/annealing.hpp"
#include "host/paths/base_draws.hpp"
#include "host/paths/base_fit.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/paths/particle_drift.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {
namespace {

constexpr double kLadderTrips = 5;      // round trips a chain of parallel tempering, whose copies are few
constexpr double kLeastParticles = 20;  // of each group of sequential Monte Carlo
constexpr double kMbarSamples = 2e5;    // of Delta: each costs the square of the levels, several times

/// A way to get log Z of what a run found. `name`: of its diagnostic, and in a method's row; `spoken`: in warnings.
template <class Found>
struct Estimator {
  const char *name, *spoken;
  LogZ (*of)(const Found& found);
};
template <class Found, std::size_t n>
std::size_t place(const Estimator<Found> (&all)[n], const std::string& name) {
  for (std::size_t k = 0; k < n; ++k)
    if (all[k].name == name) return k;
  throw std::logic_error("no estimator of log Z is named " + name);
}

const Estimator<TemperedResult> kOfChains[] = {
    // Of bounded terms, where levels have learned weights or are counted.
    {"integrated", "all levels together", [](const TemperedResult& r) { return r.ends; }},
    // Where beta is flat a priori, and takes long to settle.
    {"stepping_stones", "stepping stones", [](const TemperedResult& r) { return r.stepping; }}};

/// Of parallel tempering.
struct LadderFound {
  const LadderSamples& samples;
  double zeta;
  int threads;
};
LogZ by_mbar(const LadderFound& f) {
  const int stride = std::max(1, int(double(f.samples.delta.size()) / kMbarSamples));
  return mbar(f.samples.thinned(stride), f.zeta, f.threads).value();
}
LogZ by_integration(const LadderFound& f) {
  const auto [jackknife, discretisation] = thermodynamic_integration(f.samples, f.zeta);
  const LogZ z = jackknife.value();
  return {z.estimate, std::hypot(z.se, discretisation), std::hypot(z.unscaled_se, discretisation), z.df};
}
// By the first the others are judged.
const Estimator<LadderFound> kOfLadders[] = {
    {"bridge", "Bennett's ratio between neighbours",
     [](const LadderFound& f) { return bridge_stepping_stones(f.samples, f.zeta, f.threads).value(); }},
    {"forward", "stepping stones forward",
     [](const LadderFound& f) { return forward_stepping_stones(f.samples, f.zeta).value(); }},
    {"backward", "stepping stones backward",
     [](const LadderFound& f) { return backward_stepping_stones(f.samples, f.zeta).value(); }},
    {"mbar", "MBAR", by_mbar},
    {"thermodynamic_integration", "thermodynamic integration", by_integration}};

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

/// Draws of the base for half of what there is, or where an error is asked for until theirs is half of it, but half of what
/// such runs take at least; what is left is the chains'.
BaseDraws base_draws(const RunContext& context, const PathBase& base, const EvidenceJob& job,
                     TemperedOptions& chains) {
  constexpr double kShare = 0.5;
  Stage<BaseDraws> stage(*context.stages, "base draws");
  if (!stage.done()) {
    const double iteration = chains.chains * context.with_jump(chains.num_leapfrog);
    const double by_length = double(chains.iterations) / (1 - chains.discard) * iteration;
    // Chains are to be as long as they must be to say anything, and a half more, for the last launch.
    const double spared = chains.gradients - 1.5 * double(kLeastIterations) * iteration;
    stage.keep(run_base_draws(
        context, base,
        {.groups = chains.groups,
         .gradients = chains.iterations > 0 ? by_length : std::min(kShare * chains.gradients, spared),
         .se = kShare * job.run.se,
         .least = kShare * chains.least,
         .covariance = job.covariance}));
  }
  const BaseDraws& draws = stage.result();
  chains.gradients -= draws.number;
  chains.least -= draws.number;
  if (draws.taken()) chains.tail = base.taken_out() - draws.log_limit;
  chains.draws_suffice =
      draws.taken() && std::hypot(draws.log_z().se, Combined::unmet(draws)) <= kShare * chains.se;
  return draws;
}

/// What draws and chains say together, in place of the chains' own.
void take_in(MethodResult& f, const BaseDraws& draws, const TemperedResult& chains, const EvidenceJob& job,
             const TargetInstance& target) {
  f.gradients += draws.number;
  f.seconds += draws.seconds;
  f.diagnostics.add("base_draws", draws.number);
  f.diagnostics.add("base_draws_effective", draws.effective);
  const auto both = combined(target, job.covariance, draws, chains);
  f.diagnostics.add("base_draws_beyond", both ? both->beyond : NAN);
  if (!both) return;
  const WeightedMoments of_chains = std::exchange(f.moments, both->moments);
  f.log_z = both->log_z;
  if (differ(f.log_z, chains.ends))
    f.disagree("draws of the base", f.log_z.estimate, kOfChains[0].spoken, chains.ends.estimate);
  const int i = first_mean_that_differs(f.moments, of_chains);
  if (i < 0) return;
  f.failed.push_back("estimators_disagree");
  f.warnings.push_back(fmt::format(
      "the mean of {} is {:.6g} by draws of the base and {:.6g} by chains: one of them does not see all; "
      "more gradients, or another base",
      target.names()[i], f.moments.mean[i], of_chains.mean[i]));
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
  o.stones = place(kOfChains, c.of->estimator) == 1;
  o.moves = {c.of->control, c.transition, c.transition_settings};
  o.chains = c.chains;
  o.start_at_base = c.start_at_base;
  o.log_weight = c.weights;
  const auto barrier = pilot.barriers();
  const std::optional<Pilot> own =
      c.own_ladder() ? std::optional(pilot.on_ladder(c.ladder(barrier))) : std::nullopt;
  const Pilot& on = own ? *own : pilot;
  const BaseDraws draws = c.base_draws ? base_draws(context, base, job, o) : BaseDraws();
  Stage<TemperedResult> chains(*context.stages, "chains");
  const TemperedResult r = chains.done() ? chains.result() : chains.keep(run_tempered(context, base, on, o));
  MethodResult f;
  f.chains = c.chains;
  f.log_z = o.stones ? by_stones(r.stepping, r.ends) : r.ends;
  report_chains(f, r, 1);
  if (c.base_draws) take_in(f, draws, r, job, *context.target);
  for (std::size_t k = 0; k < r.counters.size(); ++k)
    f.diagnostics.counters.emplace_back(c.transition->counters[k], r.counters[k]);
  for (const auto& e : kOfChains) f.diagnostics.add(e.name, e.of(r));
  f.diagnostics.add("drift", r.drift);
  f.diagnostics.schedule = on.ladder;
  double widest = 0;
  for (std::size_t k = 1; k < on.ladder.size(); ++k)
    widest = std::max(widest, barrier.cumulative(on.ladder[k]) - barrier.cumulative(on.ladder[k - 1]));
  if (c.own_ladder() && widest > 0.25)
    f.warnings.push_back("levels are far apart: the stepping stones between them are not relied on");
  else if (differ(r.ends, r.stepping))
    f.disagree(kOfChains[0].spoken, r.ends.estimate, kOfChains[1].spoken, r.stepping.estimate);
  if (significant(r.drift)) f.failed.push_back("drift");
  if (check > 0 && !r.interrupted) check_both_ways(f, context, base, pilot, check);
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
  const int most = c.seeds / c.groups;
  o.copies = c.copies > 0 ? c.copies : c.groups * int(std::clamp(longest / c.groups, 1.0, double(most)));
  const ParallelTemperingResult r = run_parallel_tempering(context, base, pilot, o);
  const LadderSamples& s = r.samples;
  const double zeta = base.taken_out();
  const int threads = context.threads;
  const std::size_t own = place(kOfLadders, c.of->estimator);
  MethodResult f;
  f.chains = o.copies * s.levels();
  report_chains(f, r, kLadderTrips);
  std::vector<LogZ> found;
  for (const auto& e : kOfLadders) {
    found.push_back(e.of({s, zeta, threads}));
    f.diagnostics.add(e.name, found.back());
  }
  f.log_z = found[own];
  for (int k = 0; k < s.copies; ++k)
    f.copies.push_back(kOfLadders[own].of({s.copy(k), zeta, threads}).estimate);
  const LogZ drift = split_half_drift(bridge_stepping_stones(s.slice(0, s.draws / 2), zeta, threads),
                                      bridge_stepping_stones(s.slice(s.draws / 2, s.draws), zeta, threads));
  f.diagnostics.add("discretisation", thermodynamic_integration(s, zeta).discretisation);
  f.diagnostics.add("drift", drift);
  f.diagnostics.add("copies", o.copies);
  f.diagnostics.add("rejection", r.rejection);
  f.diagnostics.barrier = r.barrier;
  f.diagnostics.schedule = s.ladder;
  if (significant(drift)) f.failed.push_back("drift");
  // The one-sided estimates may have infinite variance: they are shown, and judge nothing.
  const std::size_t second = own > 0 ? own : place(kOfLadders, "mbar");
  if (differ(found[second], found[0]))
    f.disagree(kOfLadders[second].spoken, found[second].estimate, kOfLadders[0].spoken, found[0].estimate);
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
  log_weight.reserve(weight.size());
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
  f.diagnostics.add("of_groups", f.log_z);
  judge_drift(f, pilot.drift, target, true);
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

}  // namespace lockstep
