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

using Json = nlohmann::ordered_json;

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

/// Base, pilot and method, with all that they spent and what the report says of them.
Found run_on_path(const RunContext& context, const EvidenceJob& job) {
  const EvidenceConfig& c = job.config;
  const RunOptions& run = job.run;
  Stages& stages = *context.stages;
  const GaussianBase& base = stages.once<GaussianBase>("base", [&] { return path_base(context, c, run); });
  const auto known = known_modes(*context.target, read_starts(run.init, base.dim()));
  PilotOptions p = pilot_options(c);
  double spent = base.gradients, each = 1;
  const auto particles = [&](double gradients) {
    return c.groups * int(std::clamp(gradients / (each * c.groups), 4.0, 1e6));
  };
  if (c.is(EvidenceKind::particles)) {
    // The whole budget is the pilot's: a small one first says how many levels there are.
    PilotOptions small = p;
    small.particles = small.seeds = 32 * c.groups;
    const Pilot& trial = stages.once<Pilot>("trial", [&] { return run_pilot(context, base, small); });
    spent += trial.gradients;
    each = trial.gradients / small.particles;  // trajectories are as long for any number of them
    p.particles = particles(first_round(c.gradients - spent, run.se));
  }
  auto clock = Clock::now();
  Pilot pilot = stages.once<Pilot>("pilot", [&] { return run_pilot(context, base, p); });
  spent += pilot.gradients;
  Found f = run_method(context, base, pilot, job, c.gradients - spent);
  for (int round = 1; c.is(EvidenceKind::particles); ++round) {
    const double budget = next_round(pilot.gradients, c.gradients - spent, f.log_z, run.se);
    if (budget == 0) break;
    p.particles = particles(budget);
    clock = Clock::now();
    pilot = stages.once<Pilot>(fmt::format("pilot {}", round), [&] { return run_pilot(context, base, p); });
    spent += pilot.gradients;
    f = run_method(context, base, pilot, job, c.gradients - spent);
  }
  f.preparation = spent;
  if (c.is(EvidenceKind::particles)) {  // the last pilot is the run itself
    f.gradients = pilot.gradients;
    f.preparation -= pilot.gradients;
    f.iterations = double(pilot.ladder.size());
    f.seconds = seconds_since(clock);
  }
  const LogZ by_pilot = (pilot.log_z_of_groups() + base.taken_out()).value();
  if (!c.is(EvidenceKind::particles) && contradicts(f.log_z, by_pilot)) {
    f.failed.push_back("pilot");
    f.warnings.push_back(fmt::format(
        "log Z is {:.3g} by the pilot's particles: run longer, or from another base", by_pilot.estimate));
  }
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
  Json d = {{"base", base.how}, {"base_log_zeta", base.log_zeta}, {"base_gradients", base.gradients}};
  if (base.starts > 0) d["base_starts"] = base.starts;
  d["base_mean"] = std::vector<double>(base.mean.begin(), base.mean.end());
  if (job.covariance) {
    const Eigen::MatrixXd m = base.covariance();
    d["base_covariance"] = matrix_json({m.data(), m.data() + m.size()}, base.dim());
  }
  d["barrier"] = pilot.barrier;
  d["pilot_particles"] = p.particles;
  d["pilot_log_z"] = {{"estimate", by_pilot.estimate}, {"se", by_pilot.se}};
  d["schedule"] = pilot.ladder;
  d.update(f.diagnostics);
  f.diagnostics = d;
  return f;
}

Json with_bounds(const Found& f) {
  Json z = log_z_json(f.log_z);
  z["lower"] = f.lower.estimate;
  z["upper"] = f.upper.estimate;
  z["gap"] = f.upper.estimate - f.lower.estimate;
  return z;
}

}  // namespace

Json evidence(const RunOptions& asked, bool& was_interrupted, const std::string& label,
              const TargetInstance* built) {
  const auto start = Clock::now();
  RunOptions run = asked;
  const std::unique_ptr<TargetInstance> own = built == nullptr ? build_target(run) : nullptr;
  const TargetInstance* target = built == nullptr ? own.get() : built;
  if (target->items() != nullptr) return item_evidence(run, *target, was_interrupted, label);
  if (Processes::all().size() > 1)
    throw UserError("target " + run.target +
                    " is one density, which one process samples (each would do the same, and write the same "
                    "files). Start it without mpirun or srun, or with one process");
  const int d = target->dim();
  const EvidenceConfig c = evidence_config(run, d, target->tails());
  const bool on_path = !c.is(EvidenceKind::pseudo_extended), covariance = d <= 64;
  if (on_path) check_base(*target, c, run);
  if (!on_path) run.chains = c.chains;
  read_starts(run.init, d);
  RunContext context = make_context(run, *target, label);
  context.progress = interruptible(progress_printer(run.quiet, run.target, context.health));
  ModelSpec model = c.pseudo_extended.model;
  if (on_path) model.kind = ModelKind::path;
  RunSize size;
  size.dim = d;
  // What goes once from base to target has as many as the whole budget may come to pay for.
  const double rounds = run.se > 0 && !c.runs_on() ? std::max(1.0, c.gradients / 1e7) : 1;
  size.chains = std::int64_t(std::max(c.chains, c.particles) * rounds);
  size.particles = c.scout_particles;
  size.covariance = covariance;
  size.saved = !run.out.empty();
  if (on_path) {
    size.iterations = 0;  // sums are kept by group
    size.covariance = covariance && c.runs_on();
    size.trace = c.runs_on() ? traced_iterations(int(size.chains)) : 0;
    model.dense_base = d <= 64;  // or less
  }
  if (!on_path) {
    const double each = c.gradients / (double(run.chains) * model.pseudo_samples * run.thin) + 1;
    const DrawPlan plan = plan_draws(run.draws, run.chains, std::int64_t(std::min(each, 1e18)), run.thin);
    size.stored_draws = double(plan.window) * double(plan.chains.size());
    size.weighted_draws = run.weighted_draws;
    size.overview = double(overview_iterations(*target, run.chains));
  }
  MemoryPlan memory = planned_memory(context, model, size);
  memory.host += 4.0 * d * c.seeds * (size.saved ? 4 : 2) * 25;  // seeds at every level
  if (c.is(EvidenceKind::ladder)) memory.host += 3 * 8 * kMostLadderSamples;
  check_memory(memory, true);
  const RunFiles files = open_run(run, *target, c.effective);
  if (files.finished) return *files.finished;
  say_device(run, context);
  check_memory(memory, run.quiet);

  context.stages = std::make_shared<Stages>(files.checkpoint);
  const EvidenceJob job{c, run, covariance};
  Found f = on_path ? run_on_path(context, job) : run_pseudo_extended(context, job);
  was_interrupted = f.interrupted;
  const double gradients = f.gradients + f.preparation;
  if (gradients > 1.2 * c.gradients)
    f.warnings.push_back(
        fmt::format("base, pilot and the shortest run took {:.2g} gradients, beyond the budget", gradients));
  if (c.runs_on() ? !(f.iterations >= kLeastIterations) : !(c.gradients >= kLeastOfOnePass))
    f.failed.push_back("length");
  if (!(f.acceptance >= 0.2)) f.failed.push_back("acceptance");
  // Those of sequential Monte Carlo are of moves whose step sizes still adapt.
  if (!c.is(EvidenceKind::particles) && !(f.divergences < 0.01 * std::max(1.0, f.transitions())))
    f.failed.push_back("divergences");
  if (!std::isfinite(f.log_z.estimate) || !std::isfinite(f.log_z.se)) f.failed.push_back("log_z");
  std::sort(f.failed.begin(), f.failed.end());
  f.failed.erase(std::unique(f.failed.begin(), f.failed.end()), f.failed.end());
  if (f.interrupted) f.warnings.push_back("interrupted");
  if (f.divergences > 0)
    f.warnings.push_back(
        fmt::format("{:.0f} divergent transitions: look at the target there", f.divergences));
  if (asked.chains > 0 && c.runs_on() && f.chains != asked.chains)
    f.warnings.push_back(
        fmt::format("{} chains instead of {}: equal groups, of four or more", f.chains, asked.chains));
  const Truth& truth = target->truth();
  if (std::abs(f.log_z.estimate - truth.log_z) > 5 * f.log_z.se)
    f.warnings.push_back(
        fmt::format("log_z is {:.1f} standard errors from the truth: another base, or a "
                    "longer run",
                    std::abs(f.log_z.estimate - truth.log_z) / f.log_z.se));
  const auto look = [&](const char* name, const auto& value, const auto& se, const auto& known) {
    for (std::size_t i = 0; i < value.size(); ++i)
      if (const double far = std::abs(value[i] - known(int(i))) / se[i];
          !never_varied(value[i], se[i]) && far > 6) {
        f.warnings.push_back(
            fmt::format("{}[{}] is {:.1f} standard errors from the truth: a mode may be missed, or "
                        "chains be too short",
                        name, i, far));
        return;  // one is enough
      }
  };
  look("mean", f.moments.mean, f.moments.mean_se, [&](int i) { return truth.mean[i]; });
  look("second_moment", f.moments.second, f.moments.second_se, [&](int i) { return truth.second_moment(i); });

  Json s = summary_head(run, *target, context, "evidence");
  s["verdict"] = verdict_of(f.failed);
  s["failed_gates"] = f.failed;
  s["sampler"] = {{"name", c.method}, {"settings", c.effective}};
  s["chains"] = f.chains;
  s["iterations"] = std::int64_t(f.iterations);
  s["cost"] = {{"gradients", gradients},
               {"warmup_gradients", f.preparation},
               {"wall_s", seconds_since(start)},
               {"sampling_s", f.seconds},
               {"gradients_per_s", f.gradients / f.seconds}};
  s["estimates"] = estimates_json(f.moments, *target, f.warnings);
  s["warnings"] = f.warnings;
  s["log_z"] = with_bounds(f);
  for (double z : f.copies)
    if (std::isfinite(z)) s["items"].push_back({{"log_z", {{"estimate", z}}}});
  s["truth"] = truth_json(*target);
  Json diagnostics = {{"acceptance", f.acceptance},
                      {"step_size", f.step_size},
                      {"num_leapfrog", f.num_leapfrog},
                      {"divergences", std::int64_t(f.divergences)},
                      {"weight_ess", f.moments.weight_ess}};
  diagnostics.update(f.diagnostics);
  s["diagnostics"] = diagnostics;
  s = finish_summary(std::move(s));
  const auto write_draws_to = [&](const std::filesystem::path& file) {
    if (f.chain_run) return write_run_draws(file, *f.chain_run, run, *target, c.pseudo_extended);
    write_weighted_draws(file, f.draws, *target, c.groups, context.key,
                         run.draws == 0 ? kUsualDraws : run.draws, run.weighted_draws,
                         {{"inference_library_version", LOCKSTEP_VERSION},
                          {"target", run.target},
                          {"method", c.method},
                          {"seed", std::to_string(run.seed)}});
  };
  std::vector<RunFiles::Other> others;
  if (run.draws != 0) others.push_back({"draws.nc", write_draws_to});
  files.finish(s, f.interrupted, others);
  if (run.draws == 0) write_picture_draws(run, write_draws_to);
  return s;
}

}  // namespace lockstep
