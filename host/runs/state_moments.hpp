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

/// [row][block]: means over blocks of states [row][chain] that lie side by side, by weight: of `delta`, then of what
/// MomentLayout has from `first` on, without the covariance, then of what lies below and above kFarFromMean standard
/// deviations about the mean of each axis: of these states, or of those whose means `about` are.
using BlockMeans = std::vector<std::vector<double>>;
inline constexpr double kFarFromMean = 2;
BlockMeans block_means(const TargetInstance& target, const std::vector<double>& position,
                       const std::vector<double>& delta, const std::vector<double>& log_weight,
                       std::size_t blocks, const BlockMeans& about = {});

}  // namespace lockstep
