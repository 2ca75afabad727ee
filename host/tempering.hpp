// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>

namespace lockstep {

// On the path exp(-beta Delta(x)) base(x), Delta = log base - (log target - log zeta), with a flat prior of
// beta on [0, 1], the inverse temperature given x is an exponential of rate Delta truncated to [0, 1]. Its
// density is w0(Delta) at beta = 0 and w1(Delta) at beta = 1; here are their logs, which hold where the plain
// weights of kernels/tempering.hpp underflow. Source: Graham & Storkey (2017), Continuously tempered
// Hamiltonian Monte Carlo.

/// beta Delta, and 0 at beta = 0 even where Delta is infinite (outside the target's support).
inline double tempered(double beta, double delta) { return beta == 0 ? 0 : beta * delta; }

/// log(Delta / (exp(Delta) - 1)) for finite Delta, to 1e-15 of the larger of 1 and |Delta|.
inline double log_w1(double delta) {
  const double a = std::abs(delta);
  return a == 0 ? 0 : std::log(a / -std::expm1(-a)) - std::max(delta, 0.0);
}
/// log(Delta / (1 - exp(-Delta))).
inline double log_w0(double delta) { return log_w1(-delta); }

}  // namespace lockstep
