// SPDX-License-Identifier: Apache-2.0
#pragma once
// All states of a Boltzmann machine summed: its normaliser, its first and second moments, and exact draws.
#include <Eigen/Core>
#include <vector>

#include "targets/target.hpp"

namespace lockstep {

/// P(s) ~ exp(s'Ws / 2 + s'b) by enumeration. The units are split in three groups, s = (h, l1, l2), and the
/// weight of a state is a product of what pairs of groups say,
///
///   exp(E_h) u_h(l1) v_h(l2) F(l1, l2),  u_h = exp(E_l1 + l1'W_1h h), v_h = exp(E_l2 + l2'W_2h h), F =
///   exp(l1'W_12 l2),
///
/// so that the marginals of (h, l1), (h, l2) and (l1, l2), which hold every pair of units, are three products
/// of matrices, of 2^m multiplications each, and no exponential is taken per state. One thread, fixed order.
class BoltzmannEnumeration {
 public:
  static constexpr int kMaxUnits = 32;  // 2^32 states: under a second

  /// W [m][m] symmetric with zero diagonal, b [m], m <= kMaxUnits.
  BoltzmannEnumeration(Eigen::MatrixXd w, Eigen::VectorXd b);

  /// log sum_s exp(s'Ws / 2 + s'b). NaN, and nothing else known, where couplings are so strong (hundreds)
  /// that the weights span more than a double can hold.
  double log_z() const { return log_z_; }
  const Eigen::VectorXd& mean() const { return mean_; }      // E s
  const Eigen::MatrixXd& second() const { return second_; }  // E s s'

  /// An exact draw: h from its marginal, l1 given h, l2 given both.
  Eigen::VectorXd draw(ExactDraw& random) const;

 private:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// One of the groups l1 and l2.
  struct Low {
    Eigen::Index first, units;
    Eigen::ArrayXd weight;  // exp(E_l - top)
    double top;
  };
  Low low_group(Eigen::Index first, Eigen::Index units) const;
  void sum_states(double f_top);
  double fill_row(const Low& low, const double* field, double* row) const;

  Eigen::MatrixXd w_;
  Eigen::VectorXd b_;
  Eigen::Index high_;  // units of h: the first ones
  Low one_, two_;
  Rows f_;  // F over its largest entry
  double log_z_ = 0;
  Eigen::VectorXd mean_;
  Eigen::MatrixXd second_;
  std::vector<double> cumulative_;  // of the marginal of h
};

}  // namespace lockstep
