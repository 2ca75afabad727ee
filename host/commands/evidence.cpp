// SPDX-License-Identifier: Apache-2.0
#include "host/commands/evidence.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/commands/item_evidence.hpp"
#include "host/commands/run_files.hpp"
#include "host/commands/summary.hpp"
#include "host/modes/given_points.hpp"
#include "host/options/config.hpp"
#include "host/options/target_input.hpp"
#include "host/paths/base_draws.hpp"
#include "host/paths/base_fit.hpp"
#include "host/paths/evidence_methods.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/runs/draw_plan.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"
#include "host/runs/run_draws.hpp"
#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/processes.hpp"
#include "kernels/base.hpp"

namespace lockstep {
namespace {

MemoryPlan memory_of(const RunContext& context, const EvidenceConfig& c, const RunOptions& run) {
  const TargetInstance& target = *context.target;
  const bool on_path = !c.is(EvidenceKind::pseudo_extended);
  ModelSpec model = c.pseudo_extended.model;
  RunSize size;
  size.dim = target.dim();
  size.searches = true;
  // What goes once from base to target has as many as the whole budget may come to pay for.
  const double rounds = run.se > 0 && !c.is_resumable() ? std::max(1.0, c.gradients / 1e7) : 1;
  size.chains = std::int64_t(std::max(c.chains, c.particles) * rounds);
  size.particles = c.scout_particles;
  size.transition = c.pseudo_extended.transition;
  size.covariance = target.dim() <= 64;
  size.saved = !run.out.empty();
  if (on_path) {
    model.kind = ModelKind::path;
    if (size.covariance) model.base = base_number<NormalMixture>();  // or less
    size.iterations = 0;                                             // sums are kept by group
    size.covariance &= c.is_resumable();
    size.trace = c.is_resumable() ? traced_iterations(int(size.chains)) : 0;
  } else {
    const double each = c.gradients / (double(run.chains) * model.pseudo_samples * run.thin) + 1;
    const DrawPlan plan = plan_draws(run.draws, run.chains, std::int64_t(std::min(each, 1e18)), run.thin);
    size.stored_draws = double(plan.window) * double(plan.chains.size());
    size.weighted_draws = run.weighted_draws;
    size.overview = double(overview_iterations(target, run.chains));
  }
  MemoryPlan memory = planned_memory(context, model, size);
  memory.host += 4.0 * target.dim() * c.seeds * (size.saved ? 4 : 2) * 25;  // seeds at every level
  if (on_path && c.base_draws) memory.host += base_draws_memory(target.dim(), c.groups);
  if (c.is(EvidenceKind::ladder)) memory.host += 3 * 8 * kMostLadderSamples;
  return memory;
}

/// Gates of every method, and what a reader should know before the numbers. `chains`: as many as asked for.
void judge_method(MethodResult& f, const EvidenceConfig& c, int chains) {
  const double gradients = f.gradients + f.preparation, divergences = f.diagnostics.divergences;
  if (c.is_resumable() ? !(f.iterations >= kLeastIterations) : !(c.gradients >= kLeastOfOnePass))
    f.failed.push_back("length");
  if (!(f.diagnostics.acceptance >= 0.2)) f.failed.push_back("acceptance");
  // Those of sequential Monte Carlo are of moves whose step sizes still adapt.
  if (!c.is(EvidenceKind::particles) && !(divergences < 0.01 * std::max(1.0, f.transitions())))
    f.failed.push_back("divergences");
  if (!std::isfinite(f.log_z.estimate) || !std::isfinite(f.log_z.se)) f.failed.push_back("log_z");
  // Where so little was left, what failed says no more than that; but for what names something that is missing.
  constexpr double kPreparation = 0.8;
  static constexpr std::array kMissing = {"modes", "bases", "starts", "base"};
  const auto names_missing = [](const std::string& gate) {
    return std::find(kMissing.begin(), kMissing.end(), gate) != kMissing.end();
  };
  const bool beyond = gradients > 1.2 * c.gradients;
  const bool little = !f.failed.empty() && std::none_of(f.failed.begin(), f.failed.end(), names_missing) &&
                      f.preparation > kPreparation * c.gradients;
  if (little) f.failed.push_back("length");
  // What it has taken, with the iterations that the gate of length asks for.
  const double least = c.is_resumable() && f.iterations > 0
                           ? f.preparation + f.gradients * std::max(1.0, kLeastIterations / f.iterations)
                           : std::max(gradients, kLeastOfOnePass);
  if (beyond && f.failed.empty())
    f.warnings.push_back(
        fmt::format("{:.2g} gradients were taken, {:.2g} of them by search, base and pilot, where "
                    "--gradients asks for {:.3g}",
                    gradients, f.preparation, c.gradients));
  else if (beyond)
    f.warnings.push_back(fmt::format(
        "{:.3g} gradients are not enough: search, base and pilot alone took {:.2g} (of more they "
        "take more), and the shortest run to be judged {:.2g} in all; give --gradients {:.2g} or more",
        c.gradients, f.preparation, least, 2 * least));
  else if (little)
    f.warnings.push_back(
        fmt::format("search, base and pilot took {:.2g} of the {:.2g} gradients; the run itself took "
                    "{:.2g}: more --gradients",
                    f.preparation, c.gradients, f.gradients));
  std::sort(f.failed.begin(), f.failed.end());
  f.failed.erase(std::unique(f.failed.begin(), f.failed.end()), f.failed.end());
  if (f.interrupted) f.warnings.push_back("interrupted");
  if (divergences > 0)
    f.warnings.push_back(fmt::format("{:.0f} divergent transition{}: look at the target there", divergences,
                                     divergences == 1 ? "" : "s"));
  if (chains > 0 && c.is_resumable() && f.chains != chains)
    f.warnings.push_back(
        fmt::format("{} chains instead of {}: equal groups, of four or more", f.chains, chains));
}

void compare_with_truth(MethodResult& f, const TargetInstance& target) {
  const std::string of_log_z = far_from_truth(
      "log_z", f.log_z, target.truth().log_z, 5,
      "a mode may be missed (give those you know, --modes FILE), or another base, or a longer run");
  if (!of_log_z.empty()) f.warnings.push_back(of_log_z);
  const auto of_moments =
      moments_far_from_truth(f.moments, target, 6, "a mode may be missed, or chains be too short", true);
  f.warnings.insert(f.warnings.end(), of_moments.begin(), of_moments.end());
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
  s.cost.search_gradients = f.search;
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
  usable_starts(run.init, *target);
  usable_places(run.modes, *target);
  RunContext context = make_context(run, *target, label);
  context.progress = progress_printer(run.quiet, run.target);
  const MemoryPlan memory = memory_of(context, c, run);
  check_memory(memory, true);
  check_places(context, run.modes);
  const RunFiles files = open_run(run, *target, c.effective);
  if (files.finished) return from_json<EvidenceResult>(*files.finished);
  say_device(run, context);
  say_simulated(run);
  check_memory(memory, run.quiet);

  context.stages = std::make_shared<Stages>(files.checkpoint);
  const EvidenceJob job{c, run, target->dim() <= 64};
  MethodResult f = on_path ? run_on_path(context, job) : run_pseudo_extended(context, job);
  if (label.empty() && !Processes::all().first()) throw FirstSpeaks();  // in a study all go on
  judge_method(f, c, asked.chains);
  compare_with_truth(f, *target);
  EvidenceResult s = result_of(run, context, c, f);
  s.cost.wall = context.stages->seconds_before() + seconds_since(start);
  s = settled(s);
  const auto write_draws_to = [&](const std::filesystem::path& file) {
    if (f.chain_run) return write_run_draws(file, *f.chain_run, run, context, c.pseudo_extended);
    write_weighted_draws(file, f.draws, *target, c.groups, context.key,
                         {run.draws == 0 ? kUsualDraws : run.draws,
                          run.weighted_draws,
                          {{"inference_library_version", LOCKSTEP_VERSION},
                           {"target", run.target},
                           {"method", c.method()},
                           {"seed", run.seed}}});
  };
  files.finish(s, run, write_draws_to);
  return s;
}

}  // namespace lockstep
