// SPDX-License-Identifier: Apache-2.0
#pragma once
// What target radon knows exactly: its Gaussian part integrated in closed form, its three scales by
// quadrature.
#include <optional>
#include <vector>

#include "targets/lattice.hpp"

namespace lockstep {

struct RadonData {
  int counties = 0;
  std::vector<int> county;  // [n], from 0
  std::vector<double> y, floor, log_uranium;
};

/// p(y, log s_a, log s_b, log eps), and everything else given those.
///
/// Given (b, mu_a), the effect n_j is Gaussian and counties are independent: with N_j households and
/// v_j = 1 / (1 + N_j s_a^2 / eps^2), integrating n_j out leaves of the county's squares those around its
/// means, and N_j v_j times those of its means. So with q = (1, f, u, y), W the scatter within counties,
///
///   Q = eps^-2 (W + sum_j N_j v_j mean(q)_j mean(q)_j'),
///
/// everything about the rest is Gaussian with precision and shift from Q. Its prior is white in
/// xi = (mu_a, xi_+, xi_-, xi_0), D^2 = 2 + s_b^2:
///
///   b_1, b_2 = (D xi_+ +- s_b xi_-) / sqrt 2,   mu_b = (sqrt 2 xi_+ + s_b xi_0) / D,
///   m_1, m_2 = (s_b xi_+ - sqrt 2 xi_0) / (sqrt 2 D) +- xi_- / sqrt 2,
///
/// of which y says nothing about xi_0. Nothing cancels however small or large s_b is.
class RadonMarginal {
 public:
  /// Sums that depend on (log s_a, log eps) alone.
  struct Level {
    double log_s_a, log_eps;
    Eigen::Matrix4d q;  // Q
    double log_p;       // factors without s_b
  };
  /// Given the three scales: the log of p(y, log scales), and (mu_a, xi_+, xi_-) given y.
  struct Core {
    double log_p;
    Eigen::Vector3d mean;
    Eigen::Matrix3d covariance;
  };

  explicit RadonMarginal(const RadonData& data);
  int counties() const { return int(size_.size()); }
  int dim() const { return counties() + 7; }
  Level level(double log_s_a, double log_eps) const;
  Core core(const Level& level, double log_s_b) const;
  /// At (log s_a, log s_b, log eps).
  double log_density(const Eigen::Vector3d& log_scales) const {
    return core(level(log_scales[0], log_scales[2]), log_scales[1]).log_p;
  }
  /// n_j = row_j (1, mu_a, b_1, b_2)' + N(0, v_j).
  void effects(double log_s_a, double log_eps, Eigen::MatrixX4d& rows, Eigen::ArrayXd& v) const;
  /// Rows mu_a, mu_b, m_1, m_2, b_1, b_2 on columns mu_a, xi_+, xi_-, xi_0.
  static Eigen::Matrix<double, 6, 4> from_white(double s_b);
  /// An exact draw of the state given the scales.
  void draw(ExactDraw& random, const Eigen::Vector3d& log_scales, double* x) const;
  /// Do counties, floor and uranium fit y without residual though there are more households than they need?
  /// Then eps may go to 0 and the posterior has no normaliser.
  bool improper() const;

 private:
  Eigen::ArrayXd size_;    // N_j
  Eigen::MatrixX4d mean_;  // [J]: (1, f, u, y)
  Eigen::Matrix4d within_;
  double total_;  // squares of y around its mean
};

/// Truth, and what exact draws of the scales are made with.
struct RadonPosterior {
  Truth truth;
  LatticeDraws<3> scales;
};
/// By the trapezoid rule over the three log scales, around the mode and out to where the density is below
/// 1e-11 of its largest value; its error falls exponentially as the step, in conditional standard deviations
/// at the mode, falls. With `scales` the same holds for the density times each scale, for the means of the
/// scales; they are NaN without. Nothing where the lattice would have over a million points: few
/// households, or with `scales` data that leave the mean of a scale infinite, as it is in its prior.
std::optional<RadonPosterior> integrate(const RadonMarginal& marginal, double step = 0.5, bool scales = true);

}  // namespace lockstep
