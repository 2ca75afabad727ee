// SPDX-License-Identifier: Apache-2.0
#pragma once
// What chains leave behind for estimates: sums over their recorded iterations.
#include <cstdint>
#include <vector>

#include "kernels/launch_spec.hpp"

namespace lockstep {

/// Sums of one unit's recorded iterations: [chain][batch][MomentLayout row], batches of equal length but the
/// last.
struct UnitMoments {
  MomentLayout layout;
  int chains = 0, batches = 0;
  std::int64_t iterations = 0;  // per chain
  std::int64_t batch_length = 0;
  std::vector<double> sums;
  std::vector<double> stats;    // [StatRow, then the transition's counters], summed over chains
  std::vector<int> superchain;  // of each chain: chains with one starting point
  int known_starts = 0;         // points that the user gave for chains to start at
  const double* batch(int chain, int b) const {
    return sums.data() + (std::size_t(chain) * batches + b) * layout.rows();
  }
};

}  // namespace lockstep
