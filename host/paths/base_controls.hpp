// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>
#include <vector>

#include "host/engines/base_density.hpp"

namespace lockstep {

/// A path's base made to be drawn from and weighed: nine tenths of it are the base (half of that, and half the modes with a
/// covariance each, where the base has one for all), a tenth is a Student t of 4 degrees of freedom with the mean and the
/// scale of the base's first component.
struct DrawnDensity {
  static constexpr double kHeavy = 0.1, kDegrees = 4;
  BaseDensity normals;  // weights sum to 1 - kHeavy
  int of_base;          // the first of its components, the path's base
  DrawnDensity(const BaseDensity& base, const std::vector<NormalComponent>& modes);
  Eigen::VectorXd draw(const Draw<double>& draw) const;
};

/// Functions of x whose mean under a density that is drawn from is known, and is zero: control variates of its draws. With
/// s_k(x) the share of component k in the density at x, z = L_k^-1 (x - m_k), and e_j(x) = N(x; m_j, C_j) / density(x) of some
/// normals j:
///
///   s_k - w_k (of all components but the first),  e_j - 1,  s_k (|z|^2 - d),
///   e_j (x - m_j)_i,
///   e_j ((x - m_j)_i^2 - C_jii),  s_k z_i,
///
/// for E s_k h(z) = w_k E h(z), z normal, and E e_j h is the mean of h under normal j. As many lines of them are taken as
/// are at most 1280 numbers. Where a target is a mixture of the normals j, importance weights and their products with x_i
/// and x_i^2 are sums of the e_j: then nothing is left uncertain.
class BaseControls {
 public:
  static constexpr int kMost = 1280;
  BaseControls(const DrawnDensity& density, std::vector<NormalComponent> normals);
  int count() const { return count_; }
  struct Values {
    Eigen::VectorXd log_density, log_base;  // of what is drawn from, and of the path's base
    Eigen::MatrixXd controls;               // [point][control]
  };
  /// At the rows of x, [point][d].
  Values at(const Eigen::MatrixXd& x) const;

 private:
  const DrawnDensity& density_;
  const std::vector<NormalComponent> normals_;
  bool wholes_ = false, means_ = false, axes_ = false;  // whether each line is all there
  int count_ = 0;
};

/// Least squares of each column of y [point][column] on the controls, with a constant: coefficients [control][column].
class ControlFit {
 public:
  ControlFit(int controls, int columns);
  void add(const Eigen::MatrixXd& controls, const Eigen::MatrixXd& y);
  /// Of the constant first, [1 + control][column].
  Eigen::MatrixXd coefficients() const;

 private:
  Eigen::MatrixXd gram_, product_;
};

}  // namespace lockstep
