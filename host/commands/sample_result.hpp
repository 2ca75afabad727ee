// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/tours.hpp"
#include "host/runs/run_result.hpp"

namespace lockstep {

/// Which draws figures of draws are of, and R-hat and effective sizes of each parameter and each quantity.
struct DrawsSummary {
  struct Kept {
    std::int64_t of_each_chain = 0, every = 1;  // iterations from one to the next
    template <class Archive>
    void fields(Archive& archive) {
      archive("of_each_chain", of_each_chain);
      archive("every", every);
    }
  };
  std::optional<Kept> draws;
  std::vector<double> rhat, ess_bulk, ess_tail;
  NamedNumbers quantities_rhat, quantities_ess_bulk, quantities_ess_tail;

  template <class Archive>
  void fields(Archive& archive) {
    archive("draws", draws);
    archive("rhat", rhat);
    archive("ess_bulk", ess_bulk);
    archive("ess_tail", ess_tail);
    archive("quantities_rhat", quantities_rhat);
    archive("quantities_ess_bulk", quantities_ess_bulk);
    archive("quantities_ess_tail", quantities_ess_tail);
  }
};

/// Beside a transition's own counters, where means are recycled (host/runs/recycling.hpp).
inline constexpr const char* kRecycledStates = "recycled_states";

struct SampleDiagnostics : RunDiagnostics {
  double trajectory_time = NAN, ess_bulk_min = NAN, ess_tail_min = NAN, ess_min = NAN, beta_mean = NAN,
         beta_spread = NAN, mode_switches = NAN;
  Estimate scout_log_z;
  TourMeans tours;
  DrawsSummary of_draws;

  template <class Archive>
  void fields(Archive& archive) {
    archive("acceptance", acceptance);
    archive("step_size", step_size);
    archive("num_leapfrog", num_leapfrog);
    archive("trajectory_time", trajectory_time);
    archive.whole("divergences", divergences);
    archive("nested_rhat_max", nested_rhat_max);
    archive("rhat_max", rhat_max);
    archive("ess_bulk_min", ess_bulk_min);
    archive("ess_tail_min", ess_tail_min);
    archive("ess_min", ess_min);
    archive("weight_ess", weight_ess);
    archive("beta_mean", beta_mean);
    archive("beta_spread", beta_spread);
    archive("mode_switches", mode_switches);
    archive("scout_log_z", scout_log_z);
    archive("counters", counters);
    archive("modes", modes);
    archive("tours", tours);
    of_draws.fields(archive);
  }
};

/// What `lockstep sample` found.
struct SampleResult : RunResult {
  std::int64_t warmup = 0;
  SampleDiagnostics diagnostics;

  template <class Archive>
  void fields(Archive& archive) {
    head(archive);
    archive("chains", chains);
    archive("warmup", warmup);
    archive("iterations", iterations);
    archive("cost", cost);
    archive("estimates", estimates);
    archive("truth", truth);
    archive("log_z", log_z);
    archive("diagnostics", diagnostics);
    tail(archive);
  }
};

}  // namespace lockstep
