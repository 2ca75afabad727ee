// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moments of states that the host holds, by weight.
#include <vector>

#include "host/estimators/weighted_moments.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// Adds weight f(x) to sums of a target's moments, f as MomentLayout has it (count: 1). Nothing where the weight is 0.
void add_state(const TargetInstance& target, const MomentLayout& layout, const double* x, double weight,
               std::vector<double>& sums);

/// Weighted moments of states [row][chain], chains in groups of equal size one after another.
WeightedMoments moments_of_states(const TargetInstance& target, const std::vector<double>& position,
                                  const std::vector<double>& weight, int groups, bool covariance);

}  // namespace lockstep
