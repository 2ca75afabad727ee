// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/evidence_config.hpp"
#include "host/paths/method_result.hpp"
#include "host/paths/tempered_run.hpp"

namespace lockstep {

/// What a method is asked to do.
struct EvidenceJob {
  const EvidenceConfig& config;
  const RunOptions& run;
  bool covariance;
};

/// Runs the method on the path from a fitted base, after its pilot. `gradients` is what may still be spent.
MethodResult run_method(const RunContext& context, const GaussianBase& base, const Pilot& pilot,
                        const EvidenceJob& job, double gradients);

/// Budgets of a one-pass method that is to reach the standard error `se` (0: none, all at once). The first
/// round says how large the next must be; 0 where there is none, for it is reached or too little is left.
double first_round(double gradients, double se);
double next_round(double budget, double left, const LogZ& found, double se);

/// The pseudo-extended chain of `sample`, with all it takes counted in the budget.
MethodResult run_pseudo_extended(const RunContext& context, const EvidenceJob& job);

}  // namespace lockstep
