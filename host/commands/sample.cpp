// SPDX-License-Identifier: Apache-2.0
#include "host/commands/sample.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/commands/run_files.hpp"
#include "host/commands/summary.hpp"
#include "host/modes/given_points.hpp"
#include "host/modes/search_result.hpp"
#include "host/options/config.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/recycling.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/run_draws.hpp"
#include "host/util/clock.hpp"
#include "host/util/files.hpp"
#include "host/util/processes.hpp"
#include "kernels/base.hpp"

namespace lockstep {
namespace {

double mean_of(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x / double(v.size());
  return s;
}

/// What a reader should know before the numbers: why they may be wrong though no gate says so.
std::vector<std::string> warnings_of(const Estimates& e, const ChainRunResult& r, const RunOptions& run,
                                     const SamplerConfig& config, const TargetInstance& target) {
  std::vector<std::string> all;
  const auto add = [&]<class... A>(fmt::format_string<A...> text, A&&... a) {
    all.push_back(fmt::format(text, std::forward<A>(a)...));
  };
  const bool fixed = run.sampler_settings.contains("step_size"), scouted = !r.frozen.scout_log_z.empty();
  all = advice_of(r.units[0], *config.transition);
  if (r.interrupted) add("interrupted after {} iterations", r.units[0].iterations);
  const double divergences = r.units[0].stats[stat_divergences];
  if (divergences > 0)
    add("{} divergent transitions: a tail may not be entered; {}", divergences,
        fixed ? "lower sampler.step_size" : "raise sampler.target_acceptance");
  if (!(e.acceptance <= 0.99) && config.transition->gradients)
    add("acceptance {:.3f}: longer steps would cost less ({})", e.acceptance,
        fixed ? "raise sampler.step_size" : "lower sampler.target_acceptance");
  if (config.regeneration && !r.interrupted && (r.tours.empty() || r.tours[0].number < kFewTours))
    add("{} tours: where few chains begin anew, the errors of means over tours say little (a longer run, "
        "another "
        "sampler.spread)",
        r.tours.empty() ? 0 : r.tours[0].number);
  else if (config.regeneration && !r.interrupted && r.tours[0].closed_share < kLeastClosed)
    add("closed tours hold {:.0f} % of the iterations: what the others saw, where chains seldom begin anew, "
        "is not in "
        "the means over tours (a longer run, or another sampler.spread or sampler.level)",
        100 * r.tours[0].closed_share);
  if (config.recycle && !r.interrupted && (r.recycled.empty() || !r.recycled[0].moments))
    add("sampler.recycle brought nothing: {}",
        r.modes.empty() || r.modes[0].library.size() == 0 ? "no mode is known"
        : r.recycled[0].states == 0                       ? "the budget pays for no draws"
                                                          : "the chains' own means are known better");
  if (std::isinf(e.rhat_max))
    add("R-hat is infinite: something is the same in all draws of a chain, and another in other chains");
  double worst = 0;
  for (std::size_t i = 0; i < e.mean.size(); ++i)
    worst = std::max(worst, e.mean_se[i] / std::sqrt(e.variance(int(i))));
  if (run.se > 0 && !(worst < run.se) && !r.interrupted)
    add("--se {} was not reached: the largest standard error is {:.2g} standard deviations", run.se, worst);
  const std::string advice =
      std::isfinite(config.model.box)
          ? "that is of the target without sampler.box; or a mode is missed or chains are too short"
          : fmt::format("a mode may be missed (give those you know, --modes FILE{}) or chains are too short",
                        scouted ? ", or a larger --init-scale" : "");
  const auto far = moments_far_from_truth(e, target, 5, advice, false);
  all.insert(all.end(), far.begin(), far.end());
  if (!r.log_z.empty()) {
    const LogZ z{r.log_z[0].estimate, r.log_z[0].se};
    const std::string of_log_z =
        never_varied(z.estimate, z.se) ? "" : far_from_truth("log_z", z, target.truth().log_z, 5, advice);
    if (!of_log_z.empty()) all.push_back(of_log_z);
  }
  if (all.size() > 6) {
    add("and {} more such", all.size() - 5);
    all.erase(all.begin() + 5, all.end() - 1);
  }
  return all;
}

SampleDiagnostics diagnostics(const Estimates& e, const ChainRunResult& r, const DrawFigures& f,
                              const SamplerConfig& config, const RunOptions& run,
                              const TargetInstance& target) {
  SampleDiagnostics d;
  d.acceptance = e.acceptance;
  d.step_size = mean_of(r.frozen.step_size);
  const double n = config.model.pseudo_samples;
  const double each = r.units[0].stats[stat_gradients] / (double(r.units[0].iterations) * run.chains * n);
  if (each > 0) d.num_leapfrog = each - r.followers;
  d.trajectory_time = config.transition->trajectory ? mean_of(r.frozen.trajectory_time) : NAN;
  d.divergences = r.units[0].stats[stat_divergences];
  report_rhat(d, e);
  if (f.draws >= 4) {
    d.ess_bulk_min = d.ess_tail_min = INFINITY;
    for (int i = 0; i < target.dim(); ++i) {
      d.ess_bulk_min = std::min(d.ess_bulk_min, f.of[i].ess_bulk);
      d.ess_tail_min = std::min(d.ess_tail_min, f.of[i].ess_tail);
    }
  }
  d.ess_min = e.ess_min;
  d.weight_ess = e.weight_ess;
  d.beta_mean = e.beta_mean;
  d.beta_spread = e.beta_spread;
  if (target.names_modes()) d.mode_switches = e.switches;
  d.counters = counters_of(r.units[0], *config.transition);
  if (!r.recycled.empty() && r.recycled[0].moments)
    d.counters.emplace_back(kRecycledStates, r.recycled[0].states);
  if (!r.tours.empty()) d.tours = r.tours[0];
  if (!r.frozen.scout_log_z.empty()) d.scout_log_z = {r.frozen.scout_log_z[0], r.frozen.scout_log_z_se[0]};
  return d;
}

/// What is kept and where it stops: as asked for, and as pictures and summary need it.
ChainRunOptions options_of(const RunOptions& run, const TargetInstance& target) {
  ChainRunOptions options{run, {0}};
  options.searches = true;
  options.covariance = target.dim() <= 64;
  options.overview = overview_iterations(target, run.chains);
  if (!run.out.empty() && run.draws == 0) options.draws = kUsualDraws;  // for the pictures
  return options;
}

MemoryPlan memory_of(const RunContext& context, const RunOptions& run, const SamplerConfig& config,
                     const ChainRunOptions& options) {
  RunSize size = run_size(run, config, context.target->dim(), 1, false);
  size.covariance = options.covariance;
  // Beyond so many dimensions there are no modes but the user's.
  size.searches = options.searches && (size.dim <= kMostSearchedDim || !run.modes.empty());
  size.overview = double(options.overview);
  ModelSpec model = config.model;
  if (config.base_covariance == "full") model.base = base_number<NormalMixture>();
  return planned_memory(context, model, size);
}

/// All that the run came to, but for how long it took.
SampleResult result_of(const RunOptions& run, const RunContext& context, const SamplerConfig& config,
                       const ChainRunResult& r) {
  const TargetInstance& target = *context.target;
  Estimates e = estimate_unit(r, 0);
  const DrawFigures figures = draw_figures(target, r, config, run.thin, context.threads, e.nested);
  judge_ranks(e, figures);
  SampleResult s;
  describe(s, run, target, context, "sample");
  auto failed = failed_gates(e, r, 0, config);
  const auto wider = wider_scout(e, r, 0, config);
  const ModesVerdict modes = judge_modes(r, 0, e, context.threads);
  widen(e, modes.least);
  const std::string lost = judge_ends(failed, figures.lost, e, target);
  if (!modes.failed.empty()) failed.push_back(modes.failed);
  const std::string apart = judge_short_chains(failed, e);
  judge(s, failed);
  s.warnings = warnings_of(e, r, run, config, target);
  s.warnings.insert(s.warnings.begin(), modes.warnings.begin(), modes.warnings.end());
  if (wider) s.warnings.push_back(warning_of(*wider, target.names()));
  for (const std::string& also : {lost, apart})
    if (!also.empty()) s.warnings.push_back(also);
  if (!r.modes.empty()) {
    const auto given = judge_given(target, run.init, run.modes, r.modes[0]);
    s.warnings.insert(s.warnings.begin(), given.begin(), given.end());
  }
  s.interrupted = r.interrupted;
  s.sampler = {config.name, config.effective};
  s.chains = run.chains;
  s.warmup = run.warmup;
  s.iterations = r.units[0].iterations;
  s.cost.gradients = e.gradients;
  s.cost.warmup_gradients = r.frozen.warmup_gradients[0];
  s.cost.scout_gradients = r.frozen.scout_gradients[0];
  if (!r.modes.empty()) s.cost.search_gradients = r.frozen.search_gradients[0];
  s.cost.sampling = r.sampling_seconds;
  s.cost.gradients_per_s = r.units[0].stats[stat_gradients] / r.sampling_seconds;
  s.estimates = estimates_of(e, target, s.warnings);
  warn_unless_finite(s.warnings, "estimates.mean", e.mean);
  s.truth = truth_of(target);
  if (!r.log_z.empty()) {
    s.log_z = log_z_of(r.log_z[0]);
    warn_unless_finite(s.warnings, "log_z.estimate", {r.log_z[0].estimate});
    warn_unless_finite(s.warnings, "log_z.se", {r.log_z[0].se});
  }
  s.diagnostics = diagnostics(e, r, figures, config, run, target);
  s.diagnostics.modes = modes.summary;
  s.diagnostics.of_draws = add_figures(s.estimates, target, e, figures);
  return s;
}

}  // namespace

SampleResult sample(const RunOptions& asked) {
  const auto start = Clock::now();
  RunOptions run = asked;
  const auto target = build_target(run);
  if (target->items() != nullptr && target->items()->count > 1)
    throw UserError(
        fmt::format("target {} has {} items (chains sample one density). Give --set target.items=1, or "
                    "simulate:1, or use lockstep evidence, which takes all",
                    run.target, target->items()->count));
  const SamplerConfig config = sampler_config(run, target->dim(), target->tails());
  // Chains that begin in several modes have to change modes often enough to forget it.
  const bool several =
      usable_starts(run.init, *target).size() > 1;  // complains before anything is written or said
  usable_places(run.modes, *target);
  if (run.usual_length && several) run.iterations *= 2;
  RunContext context = make_context(run, *target, "");
  context.progress = progress_printer(run.quiet, run.target);
  ChainRunOptions options = options_of(run, *target);
  const MemoryPlan memory = memory_of(context, run, config, options);
  check_memory(memory, true);
  check_places(context, run.modes);
  const RunFiles files = open_run(run, *target, config.effective);
  if (files.finished) return from_json<SampleResult>(*files.finished);
  context.stages = std::make_shared<Stages>(files.checkpoint);
  say_device(run, context);
  say_simulated(run);
  check_memory(memory, run.quiet);
  say_scout(run, run_size(run, config, target->dim(), 1, false));

  ChainRunResult r = run_chains(context, config, options);
  if (!Processes::all().first()) throw FirstSpeaks();
  SampleResult s = result_of(run, context, config, r);
  s.cost.wall = context.stages->seconds_before() + seconds_since(start);
  s = settled(s);
  const auto write_draws_to = [&](const std::filesystem::path& file) {
    write_run_draws(file, r, run, context, config);
  };
  files.finish(s, run, write_draws_to);
  return s;
}

}  // namespace lockstep
