// SPDX-License-Identifier: Apache-2.0
#pragma once
// A path whose every member can be drawn exactly: from a normal base to a normal target of another scale.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace lockstep::testing {

/// base N(0, base_sd^2 I), target Z N(0, target_sd^2 I) in `dim` dimensions; at beta a normal with precision
/// (1 - beta) / base_sd^2 + beta / target_sd^2.
struct GaussianPath {
  int dim = 2;
  double base_sd = 1, target_sd = 0.5, log_z = -7.25, log_zeta = -7;

  double precision(double beta) const {
    return (1 - beta) / (base_sd * base_sd) + beta / (target_sd * target_sd);
  }
  /// log base - (log target - log zeta), from |x|^2.
  double delta(double square) const {
    return dim * std::log(target_sd / base_sd) + log_zeta - log_z +
           0.5 * square * (precision(1) - precision(0));
  }
  /// Delta of an exact draw.
  double draw(double beta, std::mt19937_64& random) const {
    return delta(std::chi_squared_distribution<double>(dim)(random) / precision(beta));
  }
  /// beta from the joint of (x, beta) with a flat prior, that is proportional to z_beta. By rejection: log z
  /// is convex, so that it is largest at an end.
  double draw_beta(std::mt19937_64& random) const {
    std::uniform_real_distribution<double> uniform;
    const double top = std::max(log_normaliser(0), log_normaliser(1));
    for (;;) {
      const double beta = uniform(random);
      if (std::log(uniform(random)) < log_normaliser(beta) - top) return beta;
    }
  }
  /// log z_beta = log int exp(-beta Delta) base.
  double log_normaliser(double beta) const {
    return beta * (log_z - log_zeta) + 0.5 * dim *
                                           (beta * std::log(precision(1)) +
                                            (1 - beta) * std::log(precision(0)) - std::log(precision(beta)));
  }
  /// In two dimensions |x|^2 / 2 is exponential with rate precision(beta), so that a swap between two levels
  /// is rejected at this rate, and the barrier is its limit.
  double rejection(double low, double high) const {
    return (precision(high) - precision(low)) / (precision(high) + precision(low));
  }
  double barrier(double beta) const { return 0.5 * std::log(precision(beta) / precision(0)); }
  /// The beta up to which the share t of the barrier lies.
  double at_barrier(double t) const {
    return (precision(0) * std::pow(precision(1) / precision(0), t) - precision(0)) /
           (precision(1) - precision(0));
  }
  /// The ladder with equal barrier in every step.
  std::vector<double> barrier_ladder(int steps) const {
    std::vector<double> ladder = {0};
    for (int k = 1; k < steps; ++k) ladder.push_back(at_barrier(double(k) / steps));
    ladder.push_back(1);
    return ladder;
  }
};

}  // namespace lockstep::testing
