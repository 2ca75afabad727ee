// SPDX-License-Identifier: Apache-2.0
// What target boltzmann is made from: random machines, the diagonal and its certificate, the sum over states,
// mean-field solutions.
#include "targets/boltzmann_relaxation.hpp"

#include <gtest/gtest.h>

#include "targets/boltzmann_exact.hpp"
#include "targets/boltzmann_mean_field.hpp"
#include "targets/decompositions.hpp"
#include "tests/support/boltzmann.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd eigenvalues(MatrixXd w, const VectorXd& d) {
  w.diagonal() += d;
  return Eigen::SelfAdjointEigenSolver<MatrixXd>(w).eigenvalues();
}

TEST(RandomMachine, IsSymmetricWithEigenvaluesBelowSixBeforeItsDiagonalGoes) {
  const BoltzmannMachine a = random_boltzmann_machine(28, 7), b = random_boltzmann_machine(28, 7);
  EXPECT_EQ(a.w, b.w);
  EXPECT_EQ(a.b, b.b);
  EXPECT_NE(a.w, random_boltzmann_machine(28, 8).w);
  EXPECT_EQ(a.w, a.w.transpose());
  EXPECT_TRUE((a.w.diagonal().array() == 0).all());
  // |e_i| <= 6 bounds every diagonal entry that was taken out, so that of W is bounded by 12.
  EXPECT_LT(eigenvalues(a.w, VectorXd::Zero(28)).cwiseAbs().maxCoeff(), 12);
  RunningMean biases, couplings;
  for (int seed = 0; seed < 40; ++seed) {
    const BoltzmannMachine m = random_boltzmann_machine(20, seed);
    for (double v : m.b) biases.add(v * v);
    for (int i = 0; i < 20; ++i) couplings.add(m.w(i, (i + 1) % 20));
  }
  EXPECT_LT(std::abs(biases.z(0.01)), 4.5);
  EXPECT_LT(std::abs(couplings.z(0)), 4.5);  // the orthogonal factor has no preferred direction
}

// --- the diagonal -------------------------------------------------------------------------------------

TEST(Diagonal, IsFeasibleAndCertifiedOnRandomMachines) {
  for (int m : {2, 3, 5, 10, 16, 28, 40})
    for (int seed : {1, 2, 3}) {
      const MatrixXd w = random_boltzmann_machine(m, seed).w;
      const RelaxationDiagonal found = smallest_relaxation_diagonal(w);
      const VectorXd values = eigenvalues(w, found.d);
      EXPECT_NEAR(values[0], 0, 1e-12 * found.lambda_max);
      EXPECT_NEAR(values[m - 1], found.lambda_max, 1e-12 * found.lambda_max);
      EXPECT_LE(found.gap, 1e-6) << m << " units, seed " << seed;
      EXPECT_GE(found.gap, -1e-12 * found.lambda_max);
      const VectorXd trivial = trivial_relaxation_diagonal(w);
      EXPECT_NEAR(eigenvalues(w, trivial)[0], 0, 1e-12 * found.lambda_max);
      EXPECT_LE(found.lambda_max, eigenvalues(w, trivial)[m - 1] + found.gap);
    }
}

TEST(Diagonal, NothingNearIsBetterThanTheCertificateAllows) {
  const int m = 12;
  const MatrixXd w = random_boltzmann_machine(m, 9).w;
  const RelaxationDiagonal found = smallest_relaxation_diagonal(w);
  ExactDraw random(2);
  for (int k = 0; k < 2000; ++k) {
    VectorXd d = found.d;
    const double size = std::pow(10, -5 * random.uniform());
    for (double& v : d) v += size * random.normal();
    const VectorXd values = eigenvalues(w, d);  // shifted by its least eigenvalue, D is feasible
    EXPECT_GE(values[m - 1] - values[0], found.lambda_max - found.gap);
  }
}

TEST(Diagonal, LeavesNoDoubtAboutTheRank) {
  for (int seed = 1; seed <= 40; ++seed) {  // the barrier alone leaves 4e-8 in one of these
    const MatrixXd w = random_boltzmann_machine(28, seed).w;
    const RelaxationDiagonal found = smallest_relaxation_diagonal(w);
    int zeros = 0;
    for (double v : eigenvalues(w, found.d)) {
      EXPECT_TRUE(std::abs(v) < 1e-13 * found.lambda_max || v > 1e-6 * found.lambda_max) << v;
      zeros += v < 1e-6 * found.lambda_max;
    }
    EXPECT_GE(zeros, 1);
    EXPECT_LE(found.gap, 1e-6);
  }
}

TEST(Diagonal, EqualsTheClosedFormOfEqualCouplings) {
  // By symmetry and convexity the best D is a multiple of the identity: J for J > 0, and (m - 1) |J| below.
  for (double j : {1.0, -1.0, 1e-6, -300.0})
    for (int m : {2, 3, 7}) {
      MatrixXd w = MatrixXd::Constant(m, m, j);
      w.diagonal().setZero();
      const RelaxationDiagonal found = smallest_relaxation_diagonal(w);
      EXPECT_NEAR(found.lambda_max, m * std::abs(j), 1e-8 * std::abs(j));
      EXPECT_LE(found.gap, 1e-8 * std::abs(j));
    }
}

TEST(Factor, GivesBackTheMatrixWithoutItsZeroEigenvalues) {
  const BoltzmannMachine machine = random_boltzmann_machine(28, 1);
  const RelaxationDiagonal found = smallest_relaxation_diagonal(machine.w);
  const RelaxationFactor f = factor_relaxation(machine.w, found.d);
  EXPECT_LT(f.q.cols(), 27) << "the best D leaves several zero eigenvalues";
  MatrixXd a = machine.w;
  a.diagonal() += found.d;
  EXPECT_LT((f.q * f.q.transpose() - a).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT(factor_relaxation(machine.w, found.d - VectorXd::Constant(28, 0.1)).lowest, -0.09);
}

// --- the sum over states ------------------------------------------------------------------------------

TEST(Enumeration, EqualsBruteForce) {
  for (int m : {1, 2, 3, 4, 5, 6, 7, 11, 16}) {
    const BoltzmannMachine machine = random_boltzmann_machine(m, 11);
    const BoltzmannEnumeration found(machine.w, machine.b);
    const BruteForce expected = brute_force(machine);
    EXPECT_NEAR(found.log_z(), expected.log_z, 1e-11);
    EXPECT_LT((found.mean() - expected.mean).cwiseAbs().maxCoeff(), 1e-11);
    EXPECT_LT((found.second() - expected.second).cwiseAbs().maxCoeff(), 1e-11);
  }
}

TEST(Enumeration, DoesNotDependOnTheOrderOfTheUnits) {
  const int m = 24;
  const BoltzmannMachine machine = random_boltzmann_machine(m, 12);
  const BoltzmannEnumeration found(machine.w, machine.b);
  std::vector<int> order(m);
  for (int i = 0; i < m; ++i) order[i] = (7 * i + 3) % m;
  const BoltzmannEnumeration other(machine.w(order, order), machine.b(order));
  EXPECT_NEAR(found.log_z(), other.log_z(), 1e-12);
  EXPECT_LT((found.mean()(order) - other.mean()).cwiseAbs().maxCoeff(), 1e-12);
  EXPECT_LT((found.second()(order, order) - other.second()).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(Enumeration, KnowsWhereItFails) {
  // Couplings up to some strength are summed right, and beyond it the answer is NaN, never a wrong number.
  const BoltzmannMachine machine = random_boltzmann_machine(12, 13);
  bool failed = false;
  for (double strength : {1.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 1000.0}) {
    const BoltzmannMachine strong{strength * machine.w, machine.b};
    double top = -1e300, sum = 0;
    std::vector<double> energy(1 << 12);
    for (int k = 0; k < 1 << 12; ++k) {
      VectorXd s(12);
      for (int j = 0; j < 12; ++j) s[j] = (k >> j) & 1 ? 1 : -1;
      energy[k] = 0.5 * s.dot(strong.w * s) + s.dot(strong.b);
      top = std::max(top, energy[k]);
    }
    for (double e : energy) sum += std::exp(e - top);
    const double found = BoltzmannEnumeration(strong.w, strong.b).log_z();
    failed = failed || std::isnan(found);
    if (!std::isnan(found)) {
      EXPECT_NEAR(found, top + std::log(sum), 1e-11 * (1 + std::abs(top)));
    }
    EXPECT_FALSE(std::isnan(found) && strength <= 5) << strength;
  }
  EXPECT_TRUE(failed);
}

TEST(Enumeration, DrawsHaveTheMomentsOfTheMachine) {
  const int m = 13;
  const BoltzmannMachine machine = random_boltzmann_machine(m, 14);
  const BoltzmannEnumeration exact(machine.w, machine.b);
  const int n = 100000;
  VectorXd sum = VectorXd::Zero(m);
  MatrixXd products = MatrixXd::Zero(m, m);
  ExactDraw random(15);
  for (int k = 0; k < n; ++k) {
    const VectorXd s = exact.draw(random);
    sum += s;
    products += s * s.transpose();
  }
  // Entries are +-1; those that are nearly always the same are no normal sums.
  auto check = [&](double total, double expected) {
    if (n * (1 - std::abs(expected)) < 100) return;
    const double z = (total / n - expected) / std::sqrt((1 - expected * expected) / n);
    EXPECT_LT(std::abs(z), family_quantile(1e-5, m * (m + 1) / 2));
  };
  for (int i = 0; i < m; ++i) {
    check(sum[i], exact.mean()[i]);
    for (int j = 0; j < i; ++j) check(products(i, j), exact.second()(i, j));
  }
}

// --- mean field ---------------------------------------------------------------------------------------

TEST(MeanFieldTest, SolutionsAreDistinctMinimaOfTheFreeEnergy) {
  const BoltzmannMachine machine = random_boltzmann_machine(28, 16);
  const MeanField field = solve_mean_field(machine.w, machine.b, 500, 3);
  const double log_z = BoltzmannEnumeration(machine.w, machine.b).log_z();
  auto free_energy = [&](const VectorXd& m) {
    double f = -0.5 * m.dot(machine.w * m) - m.dot(machine.b);
    for (double v : m) {
      const double p = 0.5 * (1 + v);
      f += p * std::log(p) + (1 - p) * std::log1p(-p);
    }
    return f;
  };
  EXPECT_GT(field.means.cols(), 20);
  ExactDraw random(4);
  for (int k = 0; k < field.means.cols(); ++k) {
    const VectorXd m = field.means.col(k), v = machine.w * m + machine.b;
    EXPECT_LT((v.array().tanh() - m.array()).abs().maxCoeff(), 1e-13);
    EXPECT_NEAR(field.free_energy[k], free_energy(m), 1e-10);
    EXPECT_LT(-field.free_energy[k], log_z);
    for (int j = 0; j < k; ++j) EXPECT_GT((field.means.col(j) - m).cwiseAbs().maxCoeff(), 1e-4);
    for (int n = 0; n < 20; ++n) {
      VectorXd near = v;
      for (double& u : near) u += 0.02 * random.normal();
      EXPECT_GT(free_energy(near.array().tanh()), field.free_energy[k] - 1e-12);
    }
  }
  EXPECT_NEAR(field.weights().sum(), 1, 1e-12);
  double sum = 0;
  for (double f : field.free_energy) sum += std::exp(-f);
  EXPECT_NEAR(field.log_sum(), std::log(sum), 1e-10);
}

TEST(MeanFieldTest, MoreStartsFindTheSameSolutionsFirst) {
  const BoltzmannMachine machine = random_boltzmann_machine(20, 17);
  const MeanField few = solve_mean_field(machine.w, machine.b, 45, 5),
                  many = solve_mean_field(machine.w, machine.b, 400, 5);
  ASSERT_LE(few.means.cols(), many.means.cols());
  EXPECT_LE(few.means.cols(), 45);
  EXPECT_EQ(few.means, many.means.leftCols(few.means.cols()));
  EXPECT_EQ(solve_mean_field(machine.w, machine.b, 1, 5).means.cols(), 1);
}

TEST(MeanFieldTest, WithoutCouplingsItIsExact) {
  const BoltzmannMachine machine{MatrixXd::Zero(5, 5), VectorXd::LinSpaced(5, -30, 2)};
  const MeanField field = solve_mean_field(machine.w, machine.b, 40, 1);
  ASSERT_EQ(field.means.cols(), 1);
  EXPECT_NEAR(field.log_sum(), brute_force(machine).log_z, 1e-12);
}

}  // namespace
}  // namespace lockstep::testing
