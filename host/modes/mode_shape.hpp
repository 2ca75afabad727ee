// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a mode looks like, by gradients and densities around it.
#include <optional>

#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// The mode at x, or where at most 8 Newton steps lead; those that foretell a rise in log density of over a half have to
/// bring a quarter of it. Nothing where there is none. Hessians are
/// taken by central differences of gradients, in two passes, the second at a twentieth of the width that the first has
/// seen; it is a mode where minus the Hessian, in units of each axis' own width, is positive definite with a condition
/// below 1e10. Where the density falls by over 1 within the width of these differences, a peak is narrower than they see: they
/// are taken again within less, and that holds where the density then falls as the normal says within one of its standard
/// deviations. Costs 4 d + 1 gradients a step, usually one to three.
std::optional<Mode> mode_at(PointEngine& points, const Eigen::VectorXd& x);

}  // namespace lockstep
