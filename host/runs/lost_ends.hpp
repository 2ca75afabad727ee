// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tails into which trajectories do not get.
#include <string>
#include <vector>

#include "host/modes/mode_moments.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// A trajectory that would be accepted less often than this is lost: the exact one is accepted always, and one of a step that
/// suits the target misses by seven nats never.
inline constexpr float kLostTrajectory = 1e-3f;

/// Trajectories that are rejected for nothing else: not those of wormholes where there are any, between two modes, which are
/// refused for want of a way back too, nor single steps, which are meant to be rejected.
bool loses_by_energy(const TransitionInfo& transition, int modes);
/// What ends of functionals, from whose draws many trajectories are lost, add to their moments. Where the target bends so
/// sharply that the step does not get through, chains come no farther, all stop at the same place, and R-hat and errors by
/// their spread see nothing: the mean of a scale with a tail of x^-4 was 1 to 2 % low, by up to 6 errors. An end is the
/// farthest m draws, 8 to a twentieth of all, the most of which a fifth, and three, are lost; it adds sum (f - mean f) / N of all
/// N draws, which is about what is missing beyond it. Not seen is what a jump between modes after a lost trajectory hides.
///
/// values: [draw][each], coordinates first; lost: [draw]. Empty where no trajectory is lost.
MomentErrors lost_ends(const std::vector<double>& values, const std::vector<char>& lost, std::size_t dim,
                       int threads);

/// Where errors of means grow by half or more; else "".
std::string warning_of(const MomentErrors& lost, const WeightedMoments& moments,
                       const TargetInstance& target);

}  // namespace lockstep
