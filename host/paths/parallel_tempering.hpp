// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/ladder_estimators.hpp"
#include "host/paths/tempered_run.hpp"

namespace lockstep {

inline constexpr double kMostLadderSamples = 8e6;  // kept of Delta, in doubles

/// The ladder adapts in the discarded iterations.
struct ParallelTemperingOptions : PathRunOptions {
  int copies = 64;             // a multiple of groups
  std::vector<double> ladder;  // where it begins
  bool respace = true;         // false: it stays there
};

struct ParallelTemperingResult : PathRunResult {
  LadderSamples samples;          // copies in groups; every so manieth iteration where there are very many
  std::vector<double> rejection;  // [step of the ladder], of recorded iterations
  double barrier = 0;             // the sum of these
};

/// Parallel tempering, many independent copies at once: HMC at every level of a ladder, then deterministic
/// even-odd swaps of neighbours. Chains begin in the pilot's states; the ladder is re-spaced to equal
/// rejection after rounds of doubling length; step sizes are the pilot's. All of it is frozen before anything
/// is recorded. Source: Syed, Bouchard-Cote, Deligiannidis & Doucet (2022).
ParallelTemperingResult run_parallel_tempering(const RunContext& context, const PathBase& base,
                                               const Pilot& pilot, const ParallelTemperingOptions& options);

}  // namespace lockstep
