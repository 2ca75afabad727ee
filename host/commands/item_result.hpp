// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/run_result.hpp"

namespace lockstep {

/// Of one item, or of one copy of a ladder (log Z alone).
struct OneItem {
  LogZSummary log_z;
  double weight_ess = NAN, reverse_ess = NAN, acceptance = NAN, importance_bound = NAN, round_trips = NAN,
         drift = NAN;

  template <class Archive>
  void fields(Archive& archive) {
    archive.always("log_z", log_z);
    archive("weight_ess", weight_ess);
    archive("reverse_ess", reverse_ess);
    archive("acceptance", acceptance);
    archive("importance_bound", importance_bound);
    archive("round_trips", round_trips);
    archive("drift", drift);
  }
};

struct ItemDiagnostics : RunDiagnostics {
  std::string base;
  double importance_bound = NAN, importance_bound_se = NAN, barrier = NAN, pilot_acceptance = NAN,
         round_trips = NAN, drift = NAN, drift_se = NAN;
  std::vector<double> schedule, step_sizes;

  template <class Archive>
  void fields(Archive& archive) {
    archive("base", base);
    archive("importance_bound", importance_bound);
    archive("importance_bound_se", importance_bound_se);
    archive("acceptance", acceptance);
    archive("step_size", step_size);
    archive.whole("num_leapfrog", num_leapfrog);
    archive("schedule", schedule);
    archive.whole("divergences", divergences);
    archive("barrier", barrier);
    archive("step_sizes", step_sizes);
    archive("pilot_acceptance", pilot_acceptance);
    archive("round_trips", round_trips);
    archive("drift", drift);
    archive("drift_se", drift_se);
  }
};

/// What `lockstep evidence` found of a target with items: log Z of each, and their means.
struct ItemResult : RunResult {
  std::vector<OneItem> items;
  ItemDiagnostics diagnostics;

  template <class Archive>
  void fields(Archive& archive) {
    head(archive);
    archive("chains", chains);
    archive("iterations", iterations);
    archive("cost", cost);
    archive("log_z", log_z);
    archive("items", items);
    archive("truth", truth);
    archive("diagnostics", diagnostics);
    tail(archive);
  }
};

}  // namespace lockstep
