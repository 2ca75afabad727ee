// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tails into which trajectories do not get.
#include <string>
#include <vector>

#include "host/modes/mode_moments.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// A trajectory that would be accepted less often than this (of the No-U-turn sampler: its states, on average) is lost: the
/// exact one is accepted always, and one of a step that suits the target misses by four nats hardly ever.
inline constexpr float kLostTrajectory = 0.02f;
/// An end of more of all draws is no end: chains have not come into what lies beyond, and nothing tells how much that is. Right
/// runs of nine targets have .06 at most.
inline constexpr double kMostOfEnd = 0.08;

/// Trajectories that are rejected for nothing else: not those of wormholes where there are any, between two modes, which are
/// refused for want of a way back too, nor single steps, which are meant to be rejected.
bool loses_by_energy(const TransitionInfo& transition, int modes);
/// What ends of functionals, from whose draws many trajectories are lost, add to their moments. Where the target bends so
/// sharply that the step does not get through, chains come no farther, all stop at the same place, and R-hat and errors by
/// their spread see nothing: the mean of a scale with a tail of x^-4 was 1 to 2 % low, by up to 6 errors. An end is the
/// farthest m draws, 8 to a tenth of all, the most of which a fifth, twice as many as of all, and three are lost; it
/// adds sum (f - mean f) / N of all N draws, which is about what is missing beyond it. Not seen is what a jump between modes
/// after a lost trajectory hides.
struct LostEnds {
  MomentErrors least;  // empty where no trajectory is lost
  double largest = 0;  // end, of all draws
  std::size_t of = 0;  // which functional, coordinates first
};
/// values: [draw][each], coordinates first; lost: [draw].
LostEnds lost_ends(const std::vector<double>& values, const std::vector<char>& lost, std::size_t dim,
                   int threads);

/// Makes errors of moments no smaller than what ends add, and fails gate `ends` where one is larger than kMostOfEnd. Returns the
/// warning: then, and where errors of means grow by half or more; else "".
std::string judge_ends(std::vector<std::string>& failed, const LostEnds& lost, WeightedMoments& moments,
                       const TargetInstance& target);

}  // namespace lockstep
