// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a mode looks like, by gradients and densities around it.
#include <optional>

#include "host/runs/mode_library.hpp"
#include "host/runs/point_engine.hpp"

namespace lockstep {

/// The mode at x or within a Newton step's gain of 1 in log density from it; nothing where there is none. Hessians are
/// taken by central differences of gradients, in two passes, the second at a twentieth of the width that the first has
/// seen; it is a mode where minus the Hessian, in units of each axis' own width, is positive definite with a condition
/// below 1e10. Costs 4 d + 1 gradients, or up to three times as many.
std::optional<Mode> mode_at(PointEngine& points, Eigen::VectorXd x);

/// As many of a library as are weighed, and by so many draws.
inline constexpr int kMassModes = 64, kMassDraws = 256;

/// Estimates the masses around the largest modes, by importance sampling: from 256 draws each of a Student t with 3
/// degrees of freedom and 2.5 times its covariance, of which those count that are nearer to it than to any other mode.
void weigh_modes(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit);

}  // namespace lockstep
