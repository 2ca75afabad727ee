// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

/// What is known of every item that has been done, in order.
struct ItemTable {
  std::vector<double> log_z, se, unscaled_se, df, lower, lower_se, upper, upper_se, ess, reverse_ess,
      acceptance, bound, round_trips, drift;
  double gradients = 0, divergences = 0;
  int done() const { return int(log_z.size()); }
  template <class Archive>
  void fields(Archive& archive) {
    archive("log_z", log_z);
    archive("se", se);
    archive("unscaled_se", unscaled_se);
    archive("df", df);
    archive("lower", lower);
    archive("lower_se", lower_se);
    archive("upper", upper);
    archive("upper_se", upper_se);
    archive("ess", ess);
    archive("reverse_ess", reverse_ess);
    archive("acceptance", acceptance);
    archive("bound", bound);
    archive("round_trips", round_trips);
    archive("drift", drift);
    archive("gradients", gradients);
    archive("divergences", divergences);
  }
};

/// A run over items as far as it has come; its checkpoint.
struct ItemRun {
  ItemTable table;
  double seconds = 0, seconds_before = 0;  // the latter: of what was gone on with
  bool interrupted = false;
  template <class Archive>
  void fields(Archive& archive) {
    archive("table", table);
    archive("seconds", seconds);
  }
};

/// A mean over items, with the standard error of their scatter (NaN of one).
LogZ mean_over_items(const std::vector<double>& values);
/// The 95 % interval of that mean by resampling items (percentiles); the same on every machine.
std::array<double, 2> interval_over_items(const std::vector<double>& values);

}  // namespace lockstep
