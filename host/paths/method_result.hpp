// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/format.h>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/runs/chain_result.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/run_result.hpp"
#include "host/runs/weighted_draws.hpp"

namespace lockstep {

/// Diagnostics of evidence: of the moves, of base and pilot, and what a method alone has to say.
struct EvidenceDiagnostics : RunDiagnostics {
  // Of methods on a path; `base`: how it was made.
  std::string base;
  double base_log_zeta = NAN, base_gradients = NAN;
  std::optional<int> base_starts;
  std::vector<double> base_mean, base_covariance;
  double barrier = NAN;
  std::optional<int> pilot_particles;
  Estimate pilot_log_z, other_base_log_z;
  std::vector<double> schedule;
  // Of chains that run on and on.
  double gradients_per_chain = NAN;
  NamedFigures of_method;
  void add(const char* name, Figure figure) { of_method.emplace_back(name, std::move(figure)); }
  void add(const char* name, const LogZ& z) { add(name, Estimate{z.estimate, z.se}); }

  template <class Archive>
  void fields(Archive& archive) {
    archive("acceptance", acceptance);
    archive("step_size", step_size);
    archive.whole("num_leapfrog", num_leapfrog);
    archive.whole("divergences", divergences);
    archive("weight_ess", weight_ess);
    archive("base", base);
    const bool on_path = !base.empty();
    if (on_path) archive("base_log_zeta", base_log_zeta);
    archive("base_gradients", base_gradients);
    archive("base_starts", base_starts);
    archive("base_mean", base_mean);
    archive.matrix("base_covariance", base_covariance);
    archive("barrier", barrier);
    archive("pilot_particles", pilot_particles);
    archive("pilot_log_z", pilot_log_z);
    archive("other_base_log_z", other_base_log_z);
    archive("schedule", schedule);
    archive("gradients_per_chain", gradients_per_chain);
    archive("nested_rhat_max", nested_rhat_max);
    archive("rhat_max", rhat_max);
    if (!on_path) archive("base_log_zeta", base_log_zeta);
    archive("counters", counters);
    archive("modes", modes);
    archive.rest(of_method);
  }
};

/// What a method found, in one form.
struct MethodResult {
  LogZ log_z{NAN, NAN}, lower{NAN, NAN}, upper{NAN, NAN};
  std::vector<double> copies;  // of parallel tempering: log Z by each group of copies alone
  WeightedMoments moments;
  WeightedDraws draws;                      // where they are asked for
  std::optional<ChainRunResult> chain_run;  // of method pe, with its draws where they are asked for
  double iterations = 0, seconds = 0;
  int chains = 0;
  double back = 0;  // transitions of reverse runs
  double transitions() const { return iterations * chains + back; }
  double gradients = 0;    // of the method itself
  double preparation = 0;  // of the search for modes, the base, the pilot, a warm-up
  double search = NAN;     // of the search alone
  bool interrupted = false;
  EvidenceDiagnostics diagnostics;  // step_size: at beta = 1
  std::vector<std::string> failed, warnings;

  /// Two estimates of log Z that should agree do not.
  void disagree(const std::string& one, double by_one, const std::string& other, double by_other) {
    failed.push_back("estimators_disagree");
    warnings.push_back(
        fmt::format("log Z is {:.6g} by {} and {:.6g} by {}: something is not visited as it should be; more "
                    "gradients, or another base",
                    by_one, one, by_other, other));
  }
  void warn(const std::vector<std::string>& more) {
    warnings.insert(warnings.end(), more.begin(), more.end());
  }
  void judge_modes(const ModesVerdict& verdict) {
    diagnostics.modes = verdict.summary;
    widen(moments, verdict.least);
    if (!verdict.failed.empty()) failed.push_back(verdict.failed);
    warn(verdict.warnings);
  }
};

}  // namespace lockstep
