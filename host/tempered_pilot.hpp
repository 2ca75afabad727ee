// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/gaussian_base.hpp"

namespace lockstep {

/// Settings of the pilot and of the transitions at every level.
struct PilotOptions {
  int groups = 8;        // independent populations: what errors are judged by
  int particles = 1024;  // in all, a multiple of groups
  int seeds = 1024;      // chains to start, a multiple of groups
  int num_leapfrog = 5, moves = 1;
  double target_acceptance = 0.8;
  double rate = 0.25;  // of increments from level to level (schedules.hpp), which sets the number of levels
  int most_levels = 400;
};

/// What a pilot found: everything that is then frozen, and where chains begin.
struct Pilot {
  std::vector<double> ladder, log_z, step_size;  // [level]; log_z from the base's, all groups together
  std::vector<double> group_log_z;               // [group]: log (Z / zeta) at beta = 1
  double barrier = 0;
  // Seeds: chain c belongs to group c * groups / seeds, and starts at a level drawn uniformly.
  std::vector<double> position;  // [row][seed]
  std::vector<int> level;        // [seed]
  double weight_ess = 0;         // of the last level, over all groups, in particles
  // The particles at beta = 1: [row][particle], and their weights, which sum to 1 within a group.
  std::vector<double> last, last_weight;
  double acceptance = 0, gradients = 0, cost_gradients = 0;
};

/// Sequential Monte Carlo from the base to the target, in independent groups of particles on one common
/// adaptive ladder: levels by the rate of increments, systematic resampling within a group when its effective
/// sample size falls below half, HMC moves whose step size follows their acceptance from level to level.
/// Source: Del Moral, Doucet & Jasra (2006); seeds at all levels: see docs/decisions/0007-evidence.md.
Pilot run_pilot(const RunContext& context, const GaussianBase& base, const PilotOptions& options);

}  // namespace lockstep
