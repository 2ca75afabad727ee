// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a mode looks like, by gradients and densities around it.
#include <cmath>
#include <optional>

#include "host/runs/mode_library.hpp"
#include "host/runs/point_engine.hpp"

namespace lockstep {

/// The mode at x, or where at most 8 Newton steps lead; those that foretell a rise in log density of over a half have to
/// bring a quarter of it. Nothing where there is none. Hessians are
/// taken by central differences of gradients, in two passes, the second at a twentieth of the width that the first has
/// seen; it is a mode where minus the Hessian, in units of each axis' own width, is positive definite with a condition
/// below 1e10. Costs 4 d + 1 gradients a step, usually one to three.
std::optional<Mode> mode_at(PointEngine& points, Eigen::VectorXd x);

/// As many of a library as are weighed, and by so many draws.
inline constexpr int kMassModes = 64, kMassDraws = 256;
/// The share of these that is effective where a mode is normal: within 6 % for 2 to 200 dimensions, by simulation.
inline double usual_effective_share(int dim) { return 0.9 / std::sqrt(dim + 0.5); }
/// Modes with so large a part of that resemble a normal.
inline constexpr double kResembles = 1.0 / 3;

/// Estimates the masses around the largest modes, by importance sampling: from 256 draws each of a Student t with 3
/// degrees of freedom and 2.5 times its covariance, of which those count whose home it is. Of a mode that is the only one,
/// and that no normal resembles as far out as these lie, those where all but 1 in 10,000 draws of its normal would be, if
/// there it resembles one: the mass of a core in the midst of something wider.
void weigh_modes(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit);

/// Standard errors of a library's shares p, by those of the masses that draws have weighed: their relative variances are
/// v_k = (1 / effective_share_k - 1) / 256, and se_k^2 = p_k^2 ((1 - p_k)^2 v_k + sum of p_j^2 v_j over the others), to
/// first order. Of masses by Laplace's approximation no error is known: they count as exact. NaN where a mass is a guess
/// (Mode::mass_known); for all where guesses may hold over 1 % of the total, for then nobody knows that.
std::vector<double> share_errors(const ModeLibrary& library);

}  // namespace lockstep
