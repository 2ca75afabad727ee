// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boltzmann machines for tests: as a target's input, summed state by state, and the factor Q read back from a
// density's arrays.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "targets/boltzmann.hpp"
#include "targets/boltzmann_relaxation.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

inline DataArray data_array(const Eigen::MatrixXd& m) {
  DataArray a{{}, {int(m.rows()), int(m.cols())}};
  for (Eigen::Index i = 0; i < m.rows(); ++i)
    for (Eigen::Index j = 0; j < m.cols(); ++j) a.values.push_back(m(i, j));
  return a;
}
inline DataArray data_array(const Eigen::VectorXd& v) { return {{v.begin(), v.end()}, {int(v.size())}}; }

inline MemoryInput machine_input(const BoltzmannMachine& machine) {
  MemoryInput in;
  in.arrays["W"] = data_array(machine.w);
  in.arrays["b"] = data_array(machine.b);
  return in;
}

/// Three units whose relaxation has two dimensions, all weights of order one.
inline BoltzmannMachine three_units() {
  BoltzmannMachine machine{Eigen::MatrixXd(3, 3), Eigen::VectorXd(3)};
  machine.w << 0, 1.2, -0.7, 1.2, 0, 0.5, -0.7, 0.5, 0;
  machine.b << 0.3, -0.2, 0.1;
  return machine;
}

/// Sums over all states, one at a time.
struct BruteForce {
  double log_z;
  Eigen::VectorXd mean;
  Eigen::MatrixXd second;
};
inline BruteForce brute_force(const BoltzmannMachine& machine) {
  const Eigen::Index m = machine.b.size();
  long double total = 0;
  BruteForce sums{0, Eigen::VectorXd::Zero(m), Eigen::MatrixXd::Zero(m, m)};
  Eigen::VectorXd s(m);
  for (long k = 0; k < 1L << m; ++k) {
    for (Eigen::Index j = 0; j < m; ++j) s[j] = (k >> j) & 1 ? 1 : -1;
    const double p = std::exp(0.5 * s.dot(machine.w * s) + s.dot(machine.b));
    total += p;
    sums.mean += p * s;
    sums.second += p * s * s.transpose();
  }
  sums.mean /= double(total);
  sums.second /= double(total);
  sums.log_z = double(std::log(total));
  return sums;
}

/// Q [m][dim] of a density, for a machine of m units.
inline Eigen::MatrixXd factor_of(const Boltzmann& density, int m) {
  const Eigen::MatrixXd q = Eigen::Map<const Eigen::MatrixXd>(density.q.d, density.units, density.dim);
  EXPECT_TRUE((q.bottomRows(density.units - m).array() == 0).all()) << "padding";
  return q.topRows(m);
}

}  // namespace lockstep::testing
