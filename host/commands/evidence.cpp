// SPDX-License-Identifier: Apache-2.0
#include "host/commands/evidence.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/commands/item_evidence.hpp"
#include "host/commands/run_files.hpp"
#include "host/commands/sample.hpp"
#include "host/commands/summary.hpp"
#include "host/options/config.hpp"
#include "host/options/target_input.hpp"
#include "host/paths/base_fit.hpp"
#include "host/paths/evidence_methods.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/draw_plan.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/known_modes.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/run_draws.hpp"
#include "host/runs/starts.hpp"
#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/processes.hpp"

namespace lockstep {
namespace {

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

/// The base with its metric, refitted where that is worth it.
GaussianBase path_base(const RunContext& context, const EvidenceConfig& c, const RunOptions& run) {
  Stages& stages = *context.stages;
  GaussianBase base = stages.once<GaussianBase>("fit", [&] { return fit_base(context, c, run); });
  // A small pilot first: it says how the scales within a mode differ from those of the base.
  PilotOptions small = pilot_options(c);
  small.particles = small.seeds = c.groups * std::clamp(c.particles / (8 * c.groups), 4, 64);
  const Pilot& first = stages.once<Pilot>(
      "metric", [&] { return run_pilot(with_own_numbers(context, "metric"), base, small); });
  base.gradients += first.gradients;
  base.fit_metric(first.curvature);
  const bool refit = base.rough && c.gradients >= 5e6 && !c.is(EvidenceKind::particles);
  const int rounds = c.bootstrap >= 0 ? c.bootstrap : refit;
  for (int round = 0; round < rounds; ++round) {
    const std::string name = fmt::format("bootstrap {}", round);
    const Pilot& pilot = stages.once<Pilot>(
        name, [&] { return run_pilot(with_own_numbers(context, name), base, pilot_options(c)); });
    base = refit_base(base, pilot, c.base_inflation);
  }
  return base;
}

/// A method on the path, with its last pilot.
struct PathResult {
  MethodResult f;
  Pilot pilot;
};

/// Sequential Monte Carlo: the pilot is the run itself, and the whole budget its own.
PathResult run_particles(const RunContext& context, const EvidenceJob& job, const GaussianBase& base) {
  const EvidenceConfig& c = job.config;
  PilotOptions p = pilot_options(c);
  p.particles = p.seeds = 32 * c.groups;  // a small one first says how many levels there are
  const Pilot& trial = context.stages->once<Pilot>("trial", [&] { return run_pilot(context, base, p); });
  double spent = base.gradients + trial.gradients;
  const double each = trial.gradients / p.particles;  // trajectories are as long for any number of them
  p.seeds = c.seeds;
  double budget = first_round(c.gradients - spent, job.run.se);
  for (int round = 0;; ++round) {
    p.particles = c.groups * int(std::clamp(budget / (each * c.groups), 4.0, 1e6));
    const auto clock = Clock::now();
    const Pilot& pilot = context.stages->once<Pilot>(fmt::format("pilot {}", round),
                                                     [&] { return run_pilot(context, base, p); });
    spent += pilot.gradients;
    MethodResult f = run_method(context, base, pilot, job, c.gradients - spent);
    budget = next_round(pilot.gradients, c.gradients - spent, f.log_z, job.run.se);
    if (budget > 0) continue;
    f.preparation = spent - pilot.gradients;
    f.gradients = pilot.gradients;
    f.iterations = double(pilot.ladder.size());
    f.seconds = seconds_since(clock);
    return {std::move(f), pilot};
  }
}

PathResult run_after_pilot(const RunContext& context, const EvidenceJob& job, const GaussianBase& base) {
  const EvidenceConfig& c = job.config;
  const Pilot& pilot =
      context.stages->once<Pilot>("pilot", [&] { return run_pilot(context, base, pilot_options(c)); });
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

/// Base, pilot and method, with all that they spent and what the report says of them.
MethodResult run_on_path(const RunContext& context, const EvidenceJob& job) {
  const EvidenceConfig& c = job.config;
  const RunOptions& run = job.run;
  const GaussianBase& base =
      context.stages->once<GaussianBase>("base", [&] { return path_base(context, c, run); });
  const auto known = known_modes(*context.target, read_starts(run.init, base.dim()));
  auto [f, pilot] =
      c.is(EvidenceKind::particles) ? run_particles(context, job, base) : run_after_pilot(context, job, base);
  const auto missing = unvisited_modes(known, f.log_z.estimate, f.draws, base.sd());
  if (!missing.empty()) {
    const Eigen::VectorXd& x = known[missing[0]].x;
    f.failed.push_back("starts");
    f.warnings.push_back(
        fmt::format("{} of the {} modes that --init leads to hold over 1 % by Laplace's approximation and "
                    "were not visited; "
                    "the first at x[0] = {:.4g}",
                    missing.size(), known.size(), x[0]));
  }
  if (!base.warning.empty()) f.warnings.push_back(base.warning);
  if (base.partial) f.failed.push_back("base");
  // Chains that come from too narrow a base agree with one another long before they know the target's tails.
  // A base of draws that have met the target is as wide as it; a variational one may be narrower and do.
  const bool of_draws = c.base == "scout" || c.base == "warmup" || (c.base == "auto" && base.starts == 0);
  std::vector<double> sd = base.sd();
  for (double& v : sd) v /= c.base_inflation;
  const double widest = of_draws ? times_as_wide(f.moments, sd) : 0;
  if (widest > kNarrow) {
    f.failed.push_back("base");
    f.warnings.push_back(
        fmt::format("along an axis the target is {:.2g} times as wide as what its base was made of: more {}",
                    widest, base.starts > 0 ? "base_starts or gradients" : "scout_particles or gradients"));
  }
  EvidenceDiagnostics& d = f.diagnostics;
  d.base = base.how;
  d.base_log_zeta = base.log_zeta;
  d.base_gradients = base.gradients;
  if (base.starts > 0) d.base_starts = base.starts;
  d.base_mean.assign(base.mean.begin(), base.mean.end());
  if (job.covariance) {
    const Eigen::MatrixXd m = base.covariance();
    d.base_covariance.assign(m.data(), m.data() + m.size());
  }
  if (std::isnan(d.barrier)) d.barrier = pilot.barrier;  // chains at fixed levels measure it again
  d.pilot_particles = int(pilot.last_weight.size());
  const LogZ by_pilot = (pilot.log_z_of_groups() + base.taken_out()).value();
  d.pilot_log_z = {by_pilot.estimate, by_pilot.se};
  if (d.schedule.empty()) d.schedule = pilot.ladder;
  return f;
}

MemoryPlan memory_of(const RunContext& context, const EvidenceConfig& c, const RunOptions& run) {
  const TargetInstance& target = *context.target;
  const bool on_path = !c.is(EvidenceKind::pseudo_extended);
  ModelSpec model = c.pseudo_extended.model;
  RunSize size;
  size.dim = target.dim();
  // What goes once from base to target has as many as the whole budget may come to pay for.
  const double rounds = run.se > 0 && !c.runs_on() ? std::max(1.0, c.gradients / 1e7) : 1;
  size.chains = std::int64_t(std::max(c.chains, c.particles) * rounds);
  size.particles = c.scout_particles;
  size.transition = c.pseudo_extended.transition;
  size.covariance = target.dim() <= 64;
  size.saved = !run.out.empty();
  if (on_path) {
    model.kind = ModelKind::path;
    model.dense_base = size.covariance;  // or less
    size.iterations = 0;                 // sums are kept by group
    size.covariance &= c.runs_on();
    size.trace = c.runs_on() ? traced_iterations(int(size.chains)) : 0;
  } else {
    const double each = c.gradients / (double(run.chains) * model.pseudo_samples * run.thin) + 1;
    const DrawPlan plan = plan_draws(run.draws, run.chains, std::int64_t(std::min(each, 1e18)), run.thin);
    size.stored_draws = double(plan.window) * double(plan.chains.size());
    size.weighted_draws = run.weighted_draws;
    size.overview = double(overview_iterations(target, run.chains));
  }
  MemoryPlan memory = planned_memory(context, model, size);
  memory.host += 4.0 * target.dim() * c.seeds * (size.saved ? 4 : 2) * 25;  // seeds at every level
  if (c.is(EvidenceKind::ladder)) memory.host += 3 * 8 * kMostLadderSamples;
  return memory;
}

/// Gates of every method, and what a reader should know before the numbers. `chains`: as many as asked for.
void judge_method(MethodResult& f, const EvidenceConfig& c, int chains) {
  const double gradients = f.gradients + f.preparation, divergences = f.diagnostics.divergences;
  if (gradients > 1.2 * c.gradients)
    f.warnings.push_back(
        fmt::format("base, pilot and the shortest run took {:.2g} gradients, beyond the budget", gradients));
  if (c.runs_on() ? !(f.iterations >= kLeastIterations) : !(c.gradients >= kLeastOfOnePass))
    f.failed.push_back("length");
  if (!(f.diagnostics.acceptance >= 0.2)) f.failed.push_back("acceptance");
  // Those of sequential Monte Carlo are of moves whose step sizes still adapt.
  if (!c.is(EvidenceKind::particles) && !(divergences < 0.01 * std::max(1.0, f.transitions())))
    f.failed.push_back("divergences");
  if (!std::isfinite(f.log_z.estimate) || !std::isfinite(f.log_z.se)) f.failed.push_back("log_z");
  std::sort(f.failed.begin(), f.failed.end());
  f.failed.erase(std::unique(f.failed.begin(), f.failed.end()), f.failed.end());
  if (f.interrupted) f.warnings.push_back("interrupted");
  if (divergences > 0)
    f.warnings.push_back(fmt::format("{:.0f} divergent transitions: look at the target there", divergences));
  if (chains > 0 && c.runs_on() && f.chains != chains)
    f.warnings.push_back(
        fmt::format("{} chains instead of {}: equal groups, of four or more", f.chains, chains));
}

void compare_with_truth(MethodResult& f, const Truth& truth) {
  const auto warn = [&](std::string warning) {
    if (warning.empty()) return false;
    f.warnings.push_back(std::move(warning));
    return true;
  };
  warn(far_from_truth("log_z", f.log_z, truth.log_z, 5, "another base, or a longer run"));
  const auto look = [&](const char* name, const auto& value, const auto& se, const auto& known) {
    for (std::size_t i = 0; i < value.size(); ++i)
      if (!never_varied(value[i], se[i]) &&
          warn(far_from_truth(fmt::format("{}[{}]", name, i), {value[i], se[i]}, known(int(i)), 6,
                              "a mode may be missed, or chains be too short")))
        return;  // one is enough
  };
  const WeightedMoments& m = f.moments;
  look("mean", m.mean, m.mean_se, [&](int i) { return truth.mean[i]; });
  look("second_moment", m.second, m.second_se, [&](int i) { return truth.second_moment(i); });
}

/// All that the run came to, but for how long it took.
EvidenceResult result_of(const RunOptions& run, const RunContext& context, const EvidenceConfig& c,
                         const MethodResult& f) {
  EvidenceResult s;
  describe(s, run, *context.target, context, "evidence");
  judge(s, f.failed);
  s.warnings = f.warnings;
  s.interrupted = f.interrupted;
  s.sampler = {c.method(), c.effective};
  s.chains = f.chains;
  s.iterations = std::int64_t(f.iterations);
  s.cost.gradients = f.gradients + f.preparation;
  s.cost.warmup_gradients = f.preparation;
  s.cost.sampling = f.seconds;
  s.cost.gradients_per_s = f.gradients / f.seconds;
  s.estimates = estimates_of(f.moments, *context.target, s.warnings);
  s.log_z = log_z_of(f.log_z);
  s.log_z.lower = f.lower.estimate;
  s.log_z.upper = f.upper.estimate;
  s.log_z.gap = f.upper.estimate - f.lower.estimate;
  warn_unless_finite(s.warnings, "estimates.mean", f.moments.mean);
  warn_unless_finite(s.warnings, "log_z.estimate", {f.log_z.estimate});
  warn_unless_finite(s.warnings, "log_z.se", {f.log_z.se});
  for (double z : f.copies)
    if (std::isfinite(z)) s.items.emplace_back().log_z.estimate = z;
  s.truth = truth_of(*context.target);
  s.diagnostics = f.diagnostics;
  s.diagnostics.weight_ess = f.moments.weight_ess;
  return s;
}

}  // namespace

std::variant<EvidenceResult, ItemResult> evidence(const RunOptions& asked, const std::string& label,
                                                  const TargetInstance* built) {
  const auto start = Clock::now();
  RunOptions run = asked;
  const std::unique_ptr<TargetInstance> own = built == nullptr ? build_target(run) : nullptr;
  const TargetInstance* target = built == nullptr ? own.get() : built;
  if (target->items() != nullptr) return item_evidence(run, *target, label);
  const EvidenceConfig c = evidence_config(run, target->dim(), target->tails());
  const bool on_path = !c.is(EvidenceKind::pseudo_extended);
  if (on_path) check_base(*target, c, run);
  if (!on_path) run.chains = c.chains;
  read_starts(run.init, target->dim());
  RunContext context = make_context(run, *target, label);
  context.progress = interruptible(progress_printer(run.quiet, run.target, context.health));
  const MemoryPlan memory = memory_of(context, c, run);
  check_memory(memory, true);
  const RunFiles files = open_run(run, *target, c.effective);
  if (files.finished) return from_json<EvidenceResult>(*files.finished);
  say_device(run, context);
  check_memory(memory, run.quiet);

  context.stages = std::make_shared<Stages>(files.checkpoint);
  const EvidenceJob job{c, run, target->dim() <= 64};
  MethodResult f = on_path ? run_on_path(context, job) : run_pseudo_extended(context, job);
  if (label.empty() && !Processes::all().first()) throw FirstSpeaks();  // in a study all go on
  judge_method(f, c, asked.chains);
  compare_with_truth(f, target->truth());
  EvidenceResult s = result_of(run, context, c, f);
  s.cost.wall = seconds_since(start);
  s = settled(s);
  const auto write_draws_to = [&](const std::filesystem::path& file) {
    if (f.chain_run) return write_run_draws(file, *f.chain_run, run, *target, c.pseudo_extended);
    write_weighted_draws(file, f.draws, *target, c.groups, context.key,
                         run.draws == 0 ? kUsualDraws : run.draws, run.weighted_draws,
                         {{"inference_library_version", LOCKSTEP_VERSION},
                          {"target", run.target},
                          {"method", c.method()},
                          {"seed", std::to_string(run.seed)}});
  };
  std::vector<RunFiles::Other> others;
  if (run.draws != 0) others.push_back({"draws.nc", write_draws_to});
  files.finish(s, others);
  if (run.draws == 0 && s.lost.empty()) write_picture_draws(run, write_draws_to);
  return s;
}

}  // namespace lockstep
