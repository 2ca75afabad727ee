// SPDX-License-Identifier: Apache-2.0
// Evidence by the chain of `lockstep sample`, which needs no path.
#include <fmt/format.h>

#include <cmath>

#include "host/estimators/estimates.hpp"
#include "host/modes/given_points.hpp"
#include "host/paths/evidence_methods.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"

namespace lockstep {

namespace {

/// Chains whose trajectories were cut to less than a third for want of gradients agree before they know the target.
void judge_trajectories(MethodResult& f, double wanted, double had) {
  constexpr double kLeast = 1.0 / 3;
  if (!(had < kLeast * wanted)) return;
  f.failed.push_back("length");
  f.warnings.push_back(fmt::format(
      "trajectories are {:.2g} of what they should be, for scout, search and warm-up took {:.2g} of the "
      "gradients: more --gradients",
      had / wanted, f.preparation));
}

}  // namespace

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
  const DrawFigures figures =
      draw_figures(*context.target, r, c.pseudo_extended, run.thin, context.threads, e.nested);
  judge_ranks(e, figures);
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
  if (const auto wider = wider_scout(e, r, 0, c.pseudo_extended))
    f.warnings.push_back(warning_of(*wider, context.target->names()));
  f.judge_modes(lockstep::judge_modes(r, 0, e, context.threads));
  if (const auto lost = judge_ends(f.failed, figures.lost, f.moments, *context.target); !lost.empty())
    f.warnings.push_back(lost);
  f.warn(judge_given(*context.target, run.init, run.modes, r.modes[0]));
  if (const std::string apart = judge_short_chains(f.failed, e); !apart.empty()) f.warnings.push_back(apart);
  f.diagnostics.counters = counters_of(r.units[0], *c.pseudo_extended.transition);
  f.diagnostics.gradients_per_chain = e.gradients / f.chains;
  report_rhat(f.diagnostics, e);
  f.diagnostics.base_log_zeta = r.frozen.log_zeta[0];
  if (run.se > 0 && !(f.log_z.se <= run.se)) f.failed.push_back("se");
  judge_trajectories(f, c.pseudo_extended.trajectory_time, r.frozen.trajectory_time[0]);
  f.chain_run = std::move(r);
  return f;
}

}  // namespace lockstep
