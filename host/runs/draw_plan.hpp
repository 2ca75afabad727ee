// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/launch_spec.hpp"

namespace lockstep {

/// Which draws of a unit a run stores: the last `window` of the iterations 0, thin, 2 thin, .. that it makes,
/// of some of its chains.
struct DrawPlan {
  std::vector<int> chains;  // ascending; empty: none
  std::int64_t window = 0, thin = 1;
};

/// At most `most` draws of each coordinate (or kAllDraws) as whole stretches of consecutive draws: of four
/// chains, of all where there are fewer, of more where each makes only `length` draws and `most` has room for
/// more. The chains are spread evenly over the batch, and so over superchains: they started at different
/// points.
DrawPlan plan_draws(std::int64_t most, int chains, std::int64_t length, std::int64_t thin);

/// Sets which draws of iterations [begin, end) of a plan a launch stores: of those iterations the last
/// `window`. Returns how many these are; where there are more than `capacity`, `end` moves down so that there
/// are as many.
int place_draws(const DrawPlan& plan, int capacity, LaunchSpec& launch);

}  // namespace lockstep
