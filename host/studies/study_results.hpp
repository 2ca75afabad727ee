// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>
#include <vector>

namespace lockstep {

/// One line of results.csv: an estimate of one quantity by one replicate of one setting.
struct ResultRow {
  std::string label;
  int replicate = 0;
  std::string quantity;  // mean[0], second_moment[1], log_z, probability_mode[0], ...
  double estimate = 0, se = 0;
  double truth = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown, written empty
  double gradients = 0;
};

/// One line of timings.csv (not reproducible, unlike results.csv).
struct TimingRow {
  std::string label;
  double seconds = 0, gradients_per_s = 0;
};

}  // namespace lockstep
