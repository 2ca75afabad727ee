// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of a target each mode holds, by draws around it.
#include <cmath>
#include <vector>

#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// As many of a library as are weighed, and by so many draws; of each of the others so few say what all of them hold together.
inline constexpr int kMassModes = 64, kMassDraws = 256, kMomentDraws = 8, kMostEffort = 8;
/// The share of these that is effective where a mode is normal: within 6 % for 2 to 200 dimensions, by simulation.
inline double usual_effective_share(int dim) { return 0.9 / std::sqrt(dim + 0.5); }
/// Modes with so large a part of that resemble a normal.
inline constexpr double kResembles = 1.0 / 3;
inline bool resembles_normal(double effective_share, int dim) {
  return effective_share >= kResembles * usual_effective_share(dim);
}

/// Estimates the masses around the largest modes, by importance sampling: from 256 draws each of a Student t with 3
/// degrees of freedom and 2.5 times its covariance, of which those count whose home it is. Of a mode that is the only one,
/// and that no normal resembles as far out as these lie, those where all but 1 in 10,000 draws of its normal would be, if
/// there it resembles one: the mass of a core in the midst of something wider. Of more than most_used_modes it returns what
/// they hold of first and second moments and of quantities, by 8 draws each from the 65th on: by `effort` times as many, at
/// most kMostEffort, whose first 256 say the masses. And finds halos.
HeldMoments weigh_modes(ModeLibrary& library, PointEngine& points, const RunContext& context,
                        std::uint32_t unit, int effort = 1);

/// Modes that hold next to nothing of a halo about them, such as the crossing of one part's ridge with the peak of
/// another, become that halo, unweighed, as all modes then are. Whether any did.
bool halos_for_specks(ModeLibrary& library, PointEngine& points, const RunContext& context,
                      std::uint32_t unit);

/// Standard errors of a library's shares p, by those of the masses that draws have weighed: their relative variances are
/// v_k = (1 / effective_share_k - 1) / 256, and se_k^2 = p_k^2 ((1 - p_k)^2 v_k + sum of p_j^2 v_j over the others), to
/// first order. Of masses by Laplace's approximation no error is known: they count as exact. NaN where a mass is a guess
/// (Mode::mass_known); for all where guesses may hold over 1 % of the total, for then nobody knows that.
std::vector<double> share_errors(const ModeLibrary& library);

}  // namespace lockstep
