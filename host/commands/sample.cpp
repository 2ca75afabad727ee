// SPDX-License-Identifier: Apache-2.0
#include "host/commands/sample.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/commands/run_files.hpp"
#include "host/commands/summary.hpp"
#include "host/options/config.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/run_draws.hpp"
#include "host/runs/starts.hpp"
#include "host/util/clock.hpp"
#include "host/util/files.hpp"
#include "host/util/interrupt.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

double mean_of(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x / double(v.size());
  return s;
}

/// What a reader should know before the numbers: why they may be wrong though no gate says so.
std::vector<std::string> warnings_of(const Estimates& e, const ChainRunResult& r, const RunOptions& run,
                                     const Truth& truth) {
  std::vector<std::string> all;
  const auto add = [&]<class... A>(fmt::format_string<A...> text, A&&... a) {
    all.push_back(fmt::format(text, std::forward<A>(a)...));
  };
  const bool fixed = run.sampler_settings.contains("step_size"), scouted = !r.frozen.scout_log_z.empty();
  if (r.interrupted) add("interrupted after {} iterations", r.units[0].iterations);
  const double divergences = r.units[0].stats[stat_divergences];
  if (divergences > 0)
    add("{} divergent transitions: a tail may not be entered; {}", divergences,
        fixed ? "lower sampler.step_size" : "raise sampler.target_acceptance");
  if (!(e.acceptance <= 0.99) && run.sampler != "rwm")
    add("acceptance {:.3f}: longer steps would cost less ({})", e.acceptance,
        fixed ? "raise sampler.step_size" : "lower sampler.target_acceptance");
  if (std::isinf(e.rhat_max))
    add("R-hat is infinite: something is the same in all draws of a chain, and another in other chains");
  double worst = 0;
  for (std::size_t i = 0; i < e.mean.size(); ++i)
    worst = std::max(worst, e.mean_se[i] / std::sqrt(e.variance(int(i))));
  if (run.se > 0 && !(worst < run.se) && !r.interrupted)
    add("--se {} was not reached: the largest standard error is {:.2g} standard deviations", run.se, worst);
  const auto compare = [&](const std::string& name, double value, double se, double known) {
    if (!never_varied(value, se) && std::abs(value - known) > 5 * se)
      add("{} is {:.1f} standard errors from the truth: a mode may be missed (give starts in the modes you "
          "know, --init FILE{}) or chains are too short",
          name, std::abs(value - known) / se, scouted ? ", or a larger sampler.scout_particles" : "");
  };
  for (std::size_t i = 0; i < e.mean.size(); ++i)
    compare(fmt::format("mean[{}]", i), e.mean[i], e.mean_se[i], truth.mean[i]);
  for (std::size_t i = 0; i < e.second.size(); ++i)
    compare(fmt::format("second_moment[{}]", i), e.second[i], e.second_se[i], truth.second_moment(int(i)));
  if (!r.log_z.empty()) compare("log_z", r.log_z[0].estimate, r.log_z[0].se, truth.log_z);
  if (all.size() > 6) {
    add("and {} more such", all.size() - 5);
    all.erase(all.begin() + 5, all.end() - 1);
  }
  return all;
}

Json diagnostics(const Estimates& e, const ChainRunResult& r, const DrawFigures& f,
                 const SamplerConfig& config, const RunOptions& run, int dim) {
  Json d;
  d["acceptance"] = e.acceptance;
  d["step_size"] = mean_of(r.frozen.step_size);
  const double n = config.model.kind == ModelKind::pseudo_extended ? config.model.pseudo_samples : 1;
  d["num_leapfrog"] = e.gradients / (double(r.units[0].iterations) * run.chains * n);
  d["trajectory_time"] = mean_of(r.frozen.trajectory_time);
  d["divergences"] = std::int64_t(r.units[0].stats[stat_divergences]);
  d[e.nested ? "nested_rhat_max" : "rhat_max"] = e.rhat_max;
  if (f.draws >= 4) {
    double bulk = INFINITY, tail = INFINITY;
    for (int i = 0; i < dim; ++i) {
      bulk = std::min(bulk, f.of[i].ess_bulk);
      tail = std::min(tail, f.of[i].ess_tail);
    }
    if (e.nested && run.chains > 1) d["rhat_max"] = largest_rhat(0, f);
    d["ess_bulk_min"] = bulk;
    d["ess_tail_min"] = tail;
  }
  d["ess_min"] = e.ess_min;
  d["weight_ess"] = e.weight_ess;
  d["beta_mean"] = e.beta_mean;
  d["mode_switches"] = e.switches;
  if (!r.frozen.scout_log_z.empty())
    d["scout_log_z"] = {{"estimate", r.frozen.scout_log_z[0]}, {"se", r.frozen.scout_log_z_se[0]}};
  return d;
}

}  // namespace

std::function<void(const std::string&, double)> interruptible(
    std::function<void(const std::string&, double)> show) {
  interrupted();  // from here on somebody asks
  return [show = std::move(show)](const std::string& stage, double share) {
    if (stage != "sampling" && interrupted()) throw Interrupted();
    show(stage, share);
  };
}

Json sample(const RunOptions& asked, bool& was_interrupted) {
  const auto start = Clock::now();
  RunOptions run = asked;
  const auto target = build_target(run);
  if (target->items() != nullptr && target->items()->count > 1)
    throw UserError(
        fmt::format("target {} has {} items (chains sample one density). Give --set target.items=1, or "
                    "simulate:1, or use lockstep evidence, which takes all",
                    run.target, target->items()->count));
  const int d = target->dim();
  const SamplerConfig config = sampler_config(run, d, target->tails());
  // Chains that begin in several modes have to change modes often enough to forget it.
  const bool several = read_starts(run.init, d).size() > 1;  // complains before anything is written or said
  if (run.usual_length && several) run.iterations *= 2;
  RunContext context = make_context(run, *target, "");
  context.progress = interruptible(progress_printer(run.quiet, run.target, context.health));
  ChainRunOptions options = chain_run_options(run, {0});
  options.covariance = d <= 64;
  options.overview = overview_iterations(*target, run.chains);
  if (!run.out.empty() && run.draws == 0) options.draws = kUsualDraws;  // for the pictures
  RunSize size = run_size(run, config, d, 1, false);
  size.covariance = options.covariance;
  size.overview = double(options.overview);
  ModelSpec model = config.model;
  model.dense_base |= config.base_covariance == "full";
  const MemoryPlan memory = planned_memory(context, model, size);
  check_memory(memory, true);
  const RunFiles files = open_run(run, *target, config.effective);
  if (files.finished) return *files.finished;
  context.stages = std::make_shared<Stages>(files.checkpoint);
  say_device(run, context);
  check_memory(memory, run.quiet);

  ChainRunResult r = run_chains(context, config, options);
  was_interrupted = r.interrupted;
  Estimates e = estimate(r.units[0]);
  const DrawFigures figures = draw_figures(*target, r, run.thin, context.threads);
  judge_ranks(e, figures);
  const auto failed = failed_gates(e, r, 0, config);
  const double wall = seconds_since(start);

  Json s = summary_head(run, *target, context, "sample");
  s["verdict"] = verdict_of(failed);
  s["failed_gates"] = failed;
  auto warnings = warnings_of(e, r, run, target->truth());
  s["sampler"] = {{"name", config.name}, {"settings", config.effective}};
  s["chains"] = run.chains;
  s["warmup"] = run.warmup;
  s["iterations"] = r.units[0].iterations;
  s["cost"] = {{"gradients", e.gradients},
               {"warmup_gradients", r.frozen.warmup_gradients[0]},
               {"scout_gradients", r.frozen.scout_gradients[0]},
               {"wall_s", wall},
               {"sampling_s", r.sampling_seconds},
               {"gradients_per_s", e.gradients / r.sampling_seconds}};
  s["estimates"] = estimates_json(e, *target, warnings);
  s["warnings"] = warnings;
  s["truth"] = truth_json(*target);
  if (!r.log_z.empty()) s["log_z"] = log_z_json(r.log_z[0]);
  s["diagnostics"] = diagnostics(e, r, figures, config, run, d);
  add_figures(s, *target, e, figures);
  s = finish_summary(std::move(s));

  const auto write_draws_to = [&](const std::filesystem::path& file) {
    write_run_draws(file, r, run, *target, config);
  };
  std::vector<RunFiles::Other> others;
  if (run.draws != 0) others.push_back({"draws.nc", write_draws_to});
  files.finish(s, r.interrupted, others);
  if (run.draws == 0) write_picture_draws(run, write_draws_to);
  return s;
}

}  // namespace lockstep
