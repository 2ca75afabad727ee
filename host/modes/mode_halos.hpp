// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lies about modes at other scales.
#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// Points on rays from each mode at which the gradient is taken.
inline constexpr int kRayPoints = 4 * 42;

/// Looks for halos (Mode::halos) of the modes that bases are made of: parts of the target without a mode of their own, for within
/// them lies something denser. Descents end there, no trajectory leads out, and draws around the mode do not reach them.
///
/// Where a part resembles a normal and is most of what there is, the Hessian is its precision, wherever in it, and a Newton step leads
/// to its centre: gradients at one point say all of it, mean, covariance and mass. So along a few rays, as far as 3 10^4 standard deviations,
/// second differences that stay the same from one point to the next, and are not the part's before, lead to a Hessian by differences
/// of gradients. What is found holds where the log density at most of 8 draws from it is within 1 of what it foretells, and
/// log 5 above what is known already, if it holds over a hundredth of all that is known, or of the variance of a coordinate. A part
/// of which no such point can be met, or that no normal resembles, is not found.
void find_halos(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit);

}  // namespace lockstep
