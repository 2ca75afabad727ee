// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/ladder_estimators.hpp"
#include "host/tempered_run.hpp"

namespace lockstep {

struct ParallelTemperingOptions {
  int groups = 8, copies = 64;  // copies: a multiple of groups
  std::vector<double> ladder;   // where it begins
  bool respace = true;          // false: it stays there
  int num_leapfrog = 5;
  double gradients = 0;   // budget, adaptation of the ladder included
  double discard = 0.33;  // share of the iterations in which the ladder adapts
  double se = 0;          // stop when the standard error of log Z is below; 0: at the budget
  bool covariance = false;
  bool draws = false;  // keep the states at the end of every launch
};

struct ParallelTemperingResult {
  LadderSamples samples;          // copies in groups; every so manieth iteration where there are very many
  std::vector<double> rejection;  // [step of the ladder], of recorded iterations
  double barrier = 0;             // the sum of these
  WeightedDraws draws;
  WeightedMoments moments;  // at beta = 1
  double acceptance = 0, divergences = 0, gradients = 0, round_trips = 0, seconds = 0;
  std::int64_t iterations = 0, discarded = 0;
  bool interrupted = false;
};

/// Parallel tempering, many independent copies at once: HMC at every level of a ladder, then deterministic
/// even-odd swaps of neighbours. Chains begin in the pilot's states; the ladder is re-spaced to equal
/// rejection after rounds of doubling length; step sizes are the pilot's. All of it is frozen before anything
/// is recorded. Source: Syed, Bouchard-Cote, Deligiannidis & Doucet (2022).
ParallelTemperingResult run_parallel_tempering(const RunContext& context, const GaussianBase& base,
                                               const Pilot& pilot, const ParallelTemperingOptions& options);

}  // namespace lockstep
