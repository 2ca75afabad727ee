// SPDX-License-Identifier: Apache-2.0
// Base, pilot and method, one after the other.
#include "host/paths/evidence_methods.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/engines/points_file.hpp"
#include "host/modes/given_points.hpp"
#include "host/modes/mode_base.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/modes/modes_met.hpp"
#include "host/paths/base_fit.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/known_modes.hpp"
#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/interrupt.hpp"

namespace lockstep {
namespace {

// Transitions of sequential Monte Carlo at the last level, for each level; but at least so many for moments: from a base near
// the target there are few levels, and in as few transitions little is seen of where these drift.
constexpr double kLinger = 0.2;
constexpr int kLeastLinger = 10;
constexpr double kTrialShare = 0.1;  // of the gradients, for each pilot that is only tried
// Where more of the first pilot's transitions diverge the target has parts that the usual step does not enter, tails that
// bend or narrow: chains get there by way of the base, if that reaches so far.
constexpr double kDiverging = 0.015;

PilotOptions pilot_options(const EvidenceConfig& c) {
  PilotOptions p;
  p.groups = c.groups;
  p.particles = c.particles;
  p.seeds = c.seeds;
  p.num_leapfrog = c.pilot_leapfrog;
  p.target_acceptance = c.target_acceptance;
  p.rate = c.rate;
  return p;
}
/// The same for what is tried beforehand, with so many particles, for a tenth of the gradients at most: but for 60 levels.
PilotOptions trial_options(const EvidenceConfig& c, int particles, int seeds) {
  PilotOptions p = pilot_options(c);
  p.particles = particles;
  p.seeds = seeds;
  const double level = double(particles) * p.moves * p.num_leapfrog;
  p.most_levels = int(std::clamp(kTrialShare * c.gradients / level, 60.0, double(p.most_levels)));
  return p;
}
/// The same from its last base. Of modes few levels would do, by what particles can see: too few to find out otherwise.
PilotOptions pilot_options(const EvidenceConfig& c, const PathBase& base) {
  PilotOptions p = pilot_options(c);
  if (base.of_modes) p.longest = 0.25;
  return p;
}

/// The mixture of the modes in the scout's place. Particles from there say what log Z looks like from both.
PathBase base_of_modes(const RunContext& context, const EvidenceConfig& c, const PathBase& scouted,
                       const ModeLibrary& modes) {
  const double share = kTrialShare / (c.is(EvidenceKind::particles) ? 1 : c.pilot_share);
  const PilotOptions half =
      trial_options(c, c.groups * std::max(4, int(share * c.particles / c.groups)), c.groups);
  const Pilot& other = pilot_stage(with_own_numbers(context, "other base"), "other base", scouted, half);
  PathBase base = scouted;
  base.density =
      mode_base(modes, scouted.density.mean(),
                scouted.density.covariance() / (c.base_inflation * c.base_inflation), wants_tied_base(modes));
  if (int(other.ladder.size()) < half.most_levels)  // else its last step was forced, and says nothing of Z
    base.other = (other.log_z_of_groups() + scouted.taken_out()).value();
  base.normals = mode_normals(modes);
  if (int(base.normals.size()) < modes.parts()) base.normals.clear();  // draws are to have all that is known
  base.log_zeta = modes.log_total();
  base.gradients += other.gradients;
  base.of_modes = true;
  base.rough = false;
  base.how = fmt::format("modes: {} components, one of the scout's moments{}", base.density.components.size(),
                         base.density.tied ? ", the others of one covariance times a number" : "");
  return base;
}

/// The base with its metric, refitted where that is worth it.
PathBase path_base(const RunContext& context, const EvidenceConfig& c, const RunOptions& run,
                   const SearchResult& modes) {
  Stage<PathBase> fit(*context.stages, "fit");
  PathBase base = fit.done()
                      ? fit.result()
                      : fit.keep(fit_base(context, c, run, modes.full() ? ModeLibrary() : modes.library));
  // A small pilot first: it says how the scales within a mode differ from those of the base.
  const int few = c.groups * std::clamp(c.particles / (8 * c.groups), 4, 64);
  const PilotOptions small = trial_options(c, few, few);
  const Pilot& first = pilot_stage(with_own_numbers(context, "metric"), "metric", base, small);
  base.gradients += first.gradients;
  base.fit_metric(first.curvature);
  const bool may = c.mode_jumps && base.rough && c.bootstrap <= 0;  // the scout's is nobody's wish
  if (begins_at_modes(c.base, may, modes, base.log_zeta))
    return base_of_modes(context, c, base, modes.library);
  const bool bends = base.rough && first.divergences > kDiverging * first.gradients / c.pilot_leapfrog;
  if (bends) base.widen();
  for (int round = 0; round < c.bootstrap; ++round) {
    const std::string name = fmt::format("bootstrap {}", round);
    const Pilot& pilot = pilot_stage(with_own_numbers(context, name), name, base, pilot_options(c));
    base = refit_base(base, pilot, c.base_inflation);
    if (bends) base.widen();
  }
  return base;
}

/// A method on the path, with its last pilot.
struct PathResult {
  MethodResult f;
  Pilot pilot;
};

/// Sequential Monte Carlo: the pilot is the run itself, and the whole budget its own.
PathResult run_particles(RunContext context, const EvidenceJob& job, const PathBase& base) {
  const EvidenceConfig& c = job.config;
  PilotOptions p = pilot_options(c, base);
  p.particles = p.seeds = 32 * c.groups;  // a small one first says how many levels there are
  const Pilot& trial = pilot_stage(context, "trial", base, p);
  if (!base.of_modes && trial.jump_acceptance < kIdleJumps) context.jumps.reset();
  double spent = base.gradients + trial.gradients;
  const double levels = double(trial.ladder.size());
  p.linger_of_delta = int(std::ceil(kLinger * levels));
  p.linger = std::max(kLeastLinger, p.linger_of_delta);
  // Trajectories are as long for any number of particles.
  const double each =
      trial.gradients / p.particles * (1 + p.linger / (levels * p.moves + PilotOptions::kSettling));
  p.seeds = c.seeds;
  double budget = first_round(c.gradients - spent, job.run.se);
  for (int round = 0;; ++round) {
    p.particles = c.groups * int(std::clamp(budget / (each * c.groups), 4.0, 1e6));
    const auto clock = Clock::now();
    const Pilot& pilot = pilot_stage(context, fmt::format("pilot {}", round), base, p);
    spent += pilot.gradients;
    MethodResult f = run_method(context, base, pilot, job, c.gradients - spent);
    budget = next_round(pilot.gradients, c.gradients - spent, f.log_z, job.run.se);
    if (budget > 0) continue;
    f.preparation = spent - pilot.gradients;
    f.gradients = pilot.gradients;
    f.iterations = double(pilot.ladder.size());
    f.seconds = seconds_since(clock);
    PathResult out{std::move(f), pilot};
    if (!context.jumps) out.pilot.jump_acceptance = trial.jump_acceptance;  // for which they were dropped
    return out;
  }
}

/// A scout's base, made of draws that the pilot's particles are this many times as wide as along some axis, is refitted from
/// those, and the pilot made again from there: else the gate of bases fails where they are kNarrow times as wide.
constexpr double kWorthRefit = 1.2;

/// The pilot from the base, or from its refit: it has its share of what the base has left of `planned` gradients.
const Pilot& run_pilots(const RunContext& context, const EvidenceConfig& c, double planned, PathBase& base) {
  constexpr double kLeast = 0.25;
  PilotOptions options = pilot_options(c, base);
  const double left = std::max(kLeast, 1 - base.gradients / planned);
  options.particles = std::max(c.seeds, c.groups * int(left * options.particles / c.groups));
  const Pilot& pilot = pilot_stage(context, "pilot", base, options);
  if (c.bootstrap >= 0 || !base.rough) return pilot;
  PathBase again = refit_base(base, pilot, c.base_inflation);
  const std::vector<double> before = base.density.sd(), after = again.density.sd();
  bool narrow = false;
  for (std::size_t i = 0; i < after.size(); ++i) narrow |= after[i] * base.widened > kWorthRefit * before[i];
  if (!narrow) return pilot;
  if (base.widened > 1) again.widen();
  base = std::move(again);
  return pilot_stage(with_own_numbers(context, "refitted"), "refitted", base, options);
}

PathResult run_after_pilot(RunContext context, const EvidenceJob& job, PathBase& base) {
  const EvidenceConfig& c = job.config;
  const Pilot& pilot = run_pilots(context, c, planned_gradients(c, job.run), base);
  if (!base.of_modes && pilot.jump_acceptance < kIdleJumps) context.jumps.reset();
  const double spent = base.gradients + pilot.gradients;
  MethodResult f = run_method(context, base, pilot, job, c.gradients - spent);
  f.preparation = spent;
  const LogZ by_pilot = (pilot.log_z_of_groups() + base.taken_out()).value();
  if (contradicts(f.log_z, by_pilot)) {
    f.failed.push_back("pilot");
    f.warnings.push_back(fmt::format(
        "log Z is {:.3g} by the pilot's particles: run longer, or from another base", by_pilot.estimate));
  }
  return {std::move(f), pilot};
}

/// Chains that come from too narrow a base agree with one another long before they know the target's tails.
void judge_base(MethodResult& f, const EvidenceConfig& c, const PathBase& base, const SearchResult& modes) {
  if (base.partial) f.failed.push_back("base");
  // A base of draws that have met the target is as wide as it; a variational or given one may be narrower and do, but not
  // where chains come to more modes from there than the library could tell of.
  const bool of_draws =
      c.base == "scout" || c.base == "modes" || c.base == "warmup" || (c.base == "auto" && base.starts == 0);
  std::vector<double> sd = base.of_modes ? width_of(base.density) : base.density.sd();
  for (double& v : sd) v /= base.of_modes || !of_draws ? 1 : c.base_inflation * base.widened;
  const double widest = times_as_wide(f.moments, sd);
  const double most = of_draws ? kNarrow : modes.full() ? kFarNarrower : INFINITY;
  if (widest > most) {
    f.failed.push_back("base");
    f.warnings.push_back(fmt::format(
        "along an axis the target is {:.2g} times as wide as {}", widest,
        c.base == "gaussian"
            ? "the base: a wider sampler.base_sd, or none (sampler.base=auto)"
            : fmt::format("what its base was made of: more {}",
                          base.starts > 0 ? "base_starts or gradients" : "scout_particles or gradients")));
  }
}

}  // namespace

MethodResult run_on_path(const RunContext& plain, const EvidenceJob& whole) {
  const RunOptions& run = whole.run;
  Stage<SearchResult> search(*plain.stages, "modes");
  const SearchPlan plan = search_plan(run.init_scale, planned_gradients(whole.config, run));
  const SearchResult& modes =
      search.done() ? search.result() : search.keep(find_modes(plain, 0, run.init, run.modes, plan));
  RunContext context = whole.config.mode_jumps ? with_jumps(plain, modes.library) : plain;
  EvidenceConfig c = whole.config;
  double searched = modes.gradients;
  const auto known = known_modes(*context.target, read_starts(run.init, context.target->dim()), searched);
  c.gradients = std::max(1.0, c.gradients - searched);
  const EvidenceJob job{c, run, whole.covariance};
  Stage<PathBase> stage(*context.stages, "base");
  PathBase base = stage.done() ? stage.result() : stage.keep(path_base(context, c, run, modes));
  // From a base of one mode there is nowhere to jump, but to draws of it.
  if (c.mode_jumps && base.of_modes) context = with_jumps(plain, modes.library, &base.density);
  auto [f, pilot] =
      c.is(EvidenceKind::particles) ? run_particles(context, job, base) : run_after_pilot(context, job, base);
  const SeenDraws draws{f.draws.x, f.draws.log_weight, std::size_t(std::max(1, f.draws.chains))};
  SearchResult met = modes;
  if (!f.interrupted) try {
      met = with_modes_met(plain, 0, plan, modes, draws);
    } catch (const Interrupted&) {  // the run is there
      f.interrupted = true;
    }
  searched += met.gradients - modes.gradients;
  f.preparation += searched;
  f.search = searched;
  f.judge_modes(judge_modes(met, draws, f.log_z, {}, context.threads, f.moments.second_se));
  f.warn(judge_given(*context.target, run.init, run.modes, modes));
  const auto missing = unvisited_modes(known, f.log_z.estimate, f.draws, base.density.sd());
  if (!missing.empty()) {
    const Eigen::VectorXd& x = known[missing[0]].x;
    f.failed.push_back("starts");
    f.warnings.push_back(
        fmt::format("{} of the {} modes that --init leads to hold over 1 % by Laplace's approximation and "
                    "were not visited; "
                    "the first at x[0] = {:.4g}",
                    missing.size(), known.size(), x[0]));
  }
  if (misses_what_others_see(f.log_z, base.other)) {
    f.failed.push_back("bases");
    f.warnings.push_back(fmt::format(
        "log Z is {:.4g} from the base of modes and {:.4g} from the scout's: the lower one leaves "
        "something out. Give --set sampler.base=scout, or --modes",
        f.log_z.estimate, base.other.estimate));
  }
  if (!base.warning.empty()) f.warnings.push_back(base.warning);
  judge_base(f, c, base, modes);
  EvidenceDiagnostics& d = f.diagnostics;
  d.base = base.how;
  if (base.widened > 1) d.base += "; a tenth of it three times as wide";
  d.base_log_zeta = base.log_zeta;
  d.other_base_log_z = {base.other.estimate, base.other.se};
  d.modes.jump_acceptance = pilot.jump_acceptance;
  d.modes.base = base.of_modes;
  d.base_gradients = base.gradients;
  if (base.starts > 0) d.base_starts = base.starts;
  const Eigen::VectorXd mean = base.density.mean();
  d.base_mean.assign(mean.begin(), mean.end());
  if (job.covariance) {
    const Eigen::MatrixXd m = base.density.covariance();
    d.base_covariance.assign(m.data(), m.data() + m.size());
  }
  if (std::isnan(d.barrier)) d.barrier = pilot.barrier;  // chains at fixed levels measure it again
  d.pilot_particles = int(pilot.last_weight.size());
  const LogZ by_pilot = (pilot.log_z_of_groups() + base.taken_out()).value();
  d.pilot_log_z = {by_pilot.estimate, by_pilot.se};
  if (d.schedule.empty()) d.schedule = pilot.ladder;
  return f;
}

}  // namespace lockstep
