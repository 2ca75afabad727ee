// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mean-field solutions of a Boltzmann machine: a cheap, deterministic picture of its modes.
#include <Eigen/Core>
#include <cstdint>

namespace lockstep {

/// Distinct local minima of the free energy of independent units with means m = tanh v,
///
///   F(m) = -m'Wm / 2 - m'b + sum_i [p_i log p_i + (1 - p_i) log(1 - p_i)],   p = (1 + m) / 2,
///
/// which satisfy m = tanh(Wm + b). exp(-F) is a lower bound on the sum over states, so that exp(-F) is what a
/// solution says of its neighbourhood's share.
struct MeanField {
  Eigen::MatrixXd means;        // [units][solutions], in the order in which the starts found them
  Eigen::VectorXd free_energy;  // [solutions]

  double log_sum() const;           // log sum_k exp(-F_k), an estimate of log Z
  Eigen::VectorXd weights() const;  // exp(-F_k), scaled to sum to one
};

/// From `starts` points v ~ N(0, I / 4): coordinate descent of all of them side by side in SIMD lanes, then
/// Newton's method on m = tanh(Wm + b); solutions within 1e-4 of one another in every unit are one.
MeanField solve_mean_field(const Eigen::MatrixXd& w, const Eigen::VectorXd& b, int starts,
                           std::uint64_t seed);

}  // namespace lockstep
