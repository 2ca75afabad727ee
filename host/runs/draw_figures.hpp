// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/diagnostics.hpp"
#include "host/estimators/estimates.hpp"
#include "host/runs/chain_result.hpp"
#include "host/runs/lost_ends.hpp"
#include "host/runs/run_result.hpp"

namespace lockstep {

/// Iterations at which x of all chains is kept (Overview::most) for quantiles, R-hat and effective sizes of a
/// run of so many chains: about 2^20 numbers, parameters and quantities together, or 2^14 of each where that
/// is more, which independent draws need for the probability below a median to within 0.4 %. 0 where twelve
/// iterations, of which trebled strides leave four, are too much to keep.
std::int64_t overview_iterations(const TargetInstance& target, int chains);

/// Figures of each coordinate and then of each of the target's own quantities, over unweighted draws of all
/// chains: those of the overview, or, where none is kept, the stored draws of all chains.
struct DrawFigures {
  std::vector<DrawDiagnostics> of;  // [dim + quantities]; NaN where there are too few draws
  /// R-hat of the log density, by its values: chains that stay in what is dense and narrow, or about it, differ in it most, and
  /// hardly in ranks of coordinates where few do.
  double log_density_rhat = NAN;
  LostEnds lost;  // of samplers that lose trajectories by their energy alone
  int chains = 0;
  std::int64_t draws = 0, every = 1;  // of each chain; iterations from one to the next
};
/// `of_log_density`: its R-hat too, which takes densities; runs with a nested R-hat are judged by it.
DrawFigures draw_figures(const TargetInstance& target, const ChainRunResult& run, const SamplerConfig& config,
                         int thin, int threads, bool of_log_density);

/// Takes in the fewest effective draws, and the largest R-hat of the draws, by ranks, of parameters and quantities. Where
/// chains are judged one by one it counts beside that of the weighted means (ranks forgive chains that keep to narrow modes);
/// else it is, with that of the log density, what single chains would say. What no draw varied has none.
void judge_ranks(Estimates& estimates, const DrawFigures& figures);
/// The one that is judged, and what single chains would say, as a run reports them.
void report_rhat(RunDiagnostics& diagnostics, const Estimates& estimates);

}  // namespace lockstep
