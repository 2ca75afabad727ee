// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/evidence_config.hpp"
#include "host/paths/tempered_run.hpp"
#include "host/runs/chain_run.hpp"

namespace lockstep {

/// What a method found, in one form.
struct Found {
  LogZ log_z{NAN, NAN}, lower{NAN, NAN}, upper{NAN, NAN};
  std::vector<double> copies;  // of parallel tempering: log Z by each group of copies alone
  WeightedMoments moments;
  WeightedDraws draws;                      // where they are asked for
  std::optional<ChainRunResult> chain_run;  // of method pe, with its draws where they are asked for
  double acceptance = 0, divergences = 0, iterations = 0, seconds = 0;
  int chains = 0, num_leapfrog = 0;
  double back = 0;  // transitions of reverse runs
  double transitions() const { return iterations * chains + back; }
  double gradients = 0;    // of the method itself
  double preparation = 0;  // of the base, the pilot, a warm-up
  double step_size = NAN;  // at beta = 1
  bool interrupted = false;
  nlohmann::ordered_json diagnostics = nlohmann::ordered_json::object();
  std::vector<std::string> failed, warnings;
};

/// What a method is asked to do.
struct EvidenceJob {
  const EvidenceConfig& config;
  const RunOptions& run;
  bool covariance;
};

/// Runs the method on the path from a fitted base, after its pilot. `gradients` is what may still be spent.
Found run_method(const RunContext& context, const GaussianBase& base, const Pilot& pilot,
                 const EvidenceJob& job, double gradients);

/// Budgets of a one-pass method that is to reach the standard error `se` (0: none, all at once). The first
/// round says how large the next must be; 0 where there is none, for it is reached or too little is left.
double first_round(double gradients, double se);
double next_round(double budget, double left, const LogZ& found, double se);

/// The pseudo-extended chain of `sample`, with all it takes counted in the budget.
Found run_pseudo_extended(const RunContext& context, const EvidenceJob& job);

}  // namespace lockstep
