// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/diagnostics.hpp"
#include "host/estimators/estimates.hpp"
#include "host/runs/chain_run.hpp"

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
  int chains = 0;
  std::int64_t draws = 0, every = 1;  // of each chain; iterations from one to the next
};
DrawFigures draw_figures(const TargetInstance& target, const ChainRunResult& run, int thin, int threads);

/// The largest R-hat of the draws, by ranks, of parameters and quantities, and `of_means`, that of the
/// weighted means: ranks forgive chains that keep to narrow modes. What no draw varied has none.
double largest_rhat(double of_means, const DrawFigures& figures);
/// Where chains are judged one by one, their largest R-hat is that one; else it is what single chains would say.
void judge_ranks(Estimates& estimates, const DrawFigures& figures);

}  // namespace lockstep
