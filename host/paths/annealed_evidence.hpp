// SPDX-License-Identifier: Apache-2.0
#pragma once
// What annealing along the path says of log Z: as a method, and as a look at the others from outside.
#include "host/options/evidence_config.hpp"
#include "host/paths/method_result.hpp"
#include "host/paths/tempered_pilot.hpp"

namespace lockstep {

/// What a method is asked to do.
struct EvidenceJob {
  const EvidenceConfig& config;
  const RunOptions& run;
  bool covariance;
};

/// Budgets of a one-pass method that is to reach the standard error `se` (0: none, all at once). The first
/// round says how large the next must be; 0 where there is none, for it is reached or too little is left.
double first_round(double gradients, double se);
double next_round(double budget, double left, const LogZ& found, double se);

/// Annealing, forward or both ways. Where a standard error is asked for, a first round says how many runs it takes.
MethodResult annealed(const RunContext& context, const PathBase& base, const Pilot& pilot,
                      const EvidenceJob& job, double gradients);

/// A look from outside: annealing both ways, where the target has exact draws. Reverse runs meet the modes
/// that no chain has found.
void check_both_ways(MethodResult& f, const RunContext& context, const PathBase& base, const Pilot& pilot,
                     double gradients);

}  // namespace lockstep
