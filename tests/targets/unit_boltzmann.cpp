// SPDX-License-Identifier: Apache-2.0
#include "targets/boltzmann.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "targets/boltzmann_exact.hpp"
#include "targets/boltzmann_mean_field.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/boltzmann.hpp"
#include "tests/support/statistics.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

MemoryInput random_system(double units, double seed = 1) {
  MemoryInput in;
  in.numbers = {{"units", units}, {"seed", seed}};
  return in;
}
Built<Boltzmann> build(MemoryInput in) { return BoltzmannTarget::build(in); }

TEST(Boltzmann, EqualsTheFormulaForEveryNumberOfUnits) {
  // Every remainder of the blocks, and more units than one product of the logarithms takes.
  for (int m : {2, 3, 4, 5, 7, 8, 9, 12, 28, 63, 64, 65, 68, 72, 130}) {
    const BoltzmannMachine machine = random_boltzmann_machine(m, 5);
    MemoryInput in = random_system(m, 5);
    in.choices["diagonal"] = "trivial";
    const Built<Boltzmann> built = build(in);
    ASSERT_EQ(built.density.dim, m - 1);
    const MatrixXd q = factor_of(built.density, m);
    MatrixXd couplings = q * q.transpose();
    EXPECT_LT((couplings.diagonal().array() - couplings(0, 0)).abs().maxCoeff(), 1e-12 * m);
    couplings.diagonal().setZero();
    EXPECT_LT((couplings - machine.w).cwiseAbs().maxCoeff(), 1e-12 * m);
    ExactDraw random(m);
    for (int k = 0; k < 20; ++k) {
      VectorXd x(m - 1);
      for (double& v : x) v = 2 * random.normal();
      const VectorXd y = q * x + machine.b;
      double expected = -0.5 * x.squaredNorm();
      for (double v : y) expected += std::log(std::cosh(v));
      const double found = built.density.log_density<0, double>(Rows<double>{x.data(), 1}, NoGradient{});
      EXPECT_NEAR(found, expected, 1e-14 * m * (1 + std::abs(expected)));
    }
  }
}

TEST(Boltzmann, FactsRelateItToTheMachine) {
  const BoltzmannMachine machine = random_boltzmann_machine(10, 3);
  const Built<Boltzmann> built = build(random_system(10, 3));
  std::map<std::string, double> facts(built.facts.begin(), built.facts.end());
  const double machine_log_z = BoltzmannEnumeration(machine.w, machine.b).log_z();
  EXPECT_NEAR(built.truth.log_z - facts.at("log_z_above_machine"), machine_log_z, 1e-9);
  EXPECT_GE(facts.at("sdp_gap"), 0);
  EXPECT_LE(facts.at("sdp_gap"), 1e-6);
  const MatrixXd q = factor_of(built.density, 10);
  EXPECT_NEAR(facts.at("lambda_max"),
              (q.transpose() * q).eval().selfadjointView<Eigen::Lower>().eigenvalues().maxCoeff(), 1e-9);
}

TEST(Boltzmann, StaysFiniteFarAway) {
  const SubjectOf<BoltzmannTarget> s(random_system(28));
  for (double scale : {1e2, 1e5, 1e100}) {
    std::vector<double> g;
    EXPECT_TRUE(std::isfinite(s.log_density(std::vector<double>(s.dim(), scale), &g)));
    for (double v : g) EXPECT_NEAR(v, -scale, 100);
  }
}

// --- the truth ----------------------------------------------------------------------------------------

TEST(BoltzmannTruth, FollowsFromTheMachineByTheRelaxationIdentities) {
  for (const char* diagonal : {"sdp", "trivial"}) {
    MemoryInput in = random_system(16, 3);
    in.choices["diagonal"] = diagonal;
    const Built<Boltzmann> b = build(in);
    const BruteForce machine = brute_force(random_boltzmann_machine(16, 3));
    const MatrixXd q = factor_of(b.density, 16);
    const int d = b.density.dim;
    EXPECT_EQ(d, std::string(diagonal) == "sdp" ? 14 : 15);
    EXPECT_NEAR(
        b.truth.log_z,
        machine.log_z + 0.5 * (q * q.transpose()).trace() + 0.5 * d * std::log(2 * kPi) - 16 * std::log(2.0),
        1e-11);
    const VectorXd mean = q.transpose() * machine.mean;
    const MatrixXd second = q.transpose() * machine.second * q + MatrixXd::Identity(d, d);
    for (int i = 0; i < d; ++i) {
      EXPECT_NEAR(b.truth.mean[i], mean[i], 1e-11);
      for (int j = 0; j < d; ++j)
        EXPECT_NEAR(b.truth.covariance[i * d + j], second(i, j) - mean[i] * mean[j], 1e-11);
    }
  }
}

TEST(BoltzmannTruth, QuadratureConfirmsIt) {
  const SubjectOf<BoltzmannTarget> s(machine_input(three_units()));
  ASSERT_EQ(s.dim(), 2);
  // The rectangle rule, on a density that is smooth and falls like a Gaussian: exact to rounding.
  double mass = 0, first[2] = {}, second[3] = {};
  const double step = 0.05;
  for (int i = -240; i <= 240; ++i)
    for (int j = -240; j <= 240; ++j) {
      const double x = i * step, y = j * step, p = step * step * std::exp(s.value({x, y}));
      mass += p;
      first[0] += p * x;
      first[1] += p * y;
      second[0] += p * x * x;
      second[1] += p * x * y;
      second[2] += p * y * y;
    }
  const Truth& t = s.target->truth();
  EXPECT_NEAR(t.log_z, std::log(mass), 1e-10);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(t.mean[i], first[i] / mass, 1e-10);
  EXPECT_NEAR(t.covariance[0], second[0] / mass - t.mean[0] * t.mean[0], 1e-10);
  EXPECT_NEAR(t.covariance[1], second[1] / mass - t.mean[0] * t.mean[1], 1e-10);
  EXPECT_NEAR(t.covariance[3], second[2] / mass - t.mean[1] * t.mean[1], 1e-10);
}

TEST(BoltzmannTruth, ExactDrawsHaveItsMoments) {
  const SubjectOf<BoltzmannTarget> s(random_system(28, 2));
  const Truth& t = s.target->truth();
  const int d = s.dim();
  std::vector<RunningMean> sums(d + d * (d + 1) / 2);
  ExactDraw random(8);
  std::vector<double> x(d);
  for (int n = 0; n < 50000; ++n) {
    s.target->draw(random, x.data());
    int k = 0;
    for (int i = 0; i < d; ++i) sums[k++].add(x[i] - t.mean[i]);
    for (int i = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j)
        sums[k++].add((x[i] - t.mean[i]) * (x[j] - t.mean[j]) - t.covariance[i * d + j]);
  }
  for (const RunningMean& r : sums) EXPECT_LT(std::abs(r.z()), family_quantile(1e-5, sums.size()));
}

TEST(BoltzmannTruth, EndsAt32UnitsAndWhereNoDoubleHoldsTheWeights) {
  MemoryInput large = random_system(33);
  large.choices["diagonal"] = "trivial";
  BoltzmannMachine strong = random_boltzmann_machine(12, 1);
  strong.w *= 1000;
  for (const MemoryInput& in : {large, machine_input(strong)}) {
    const SubjectOf<BoltzmannTarget> s(in);
    EXPECT_FALSE(s.target->can_draw());
    EXPECT_TRUE(std::isnan(s.target->truth().log_z));
    EXPECT_TRUE(std::isnan(s.target->truth().mean[0]));
    EXPECT_TRUE(std::isfinite(s.target->base_guess(50, 1).log_zeta));
    EXPECT_TRUE(std::isfinite(s.value(std::vector<double>(s.dim(), 0.5))));
  }
}

// --- the base guess -----------------------------------------------------------------------------------

TEST(BoltzmannBase, IsTheMixtureOfMeanFieldSolutions) {
  const BoltzmannMachine machine = random_boltzmann_machine(14, 6);
  MemoryInput in = random_system(14, 6);
  in.choices["diagonal"] = "trivial";
  const SubjectOf<BoltzmannTarget> s(in);
  ASSERT_TRUE(s.target->has_base_guess());
  const BaseGuess guess = s.target->base_guess(300, 9);
  const MatrixXd q = factor_of(build(in).density, 14);
  const MeanField field = solve_mean_field(machine.w, machine.b, 300, 9);
  const int d = s.dim();
  EXPECT_EQ(guess.components, field.means.cols());
  double total = 0;
  VectorXd mean = VectorXd::Zero(d);
  MatrixXd second = MatrixXd::Zero(d, d);
  for (int k = 0; k < guess.components; ++k) {
    const double p = std::exp(-field.free_energy[k]);
    const VectorXd centre = q.transpose() * field.means.col(k);
    total += p;
    mean += p * centre;
    second += p * (centre * centre.transpose() + MatrixXd::Identity(d, d));
  }
  mean /= total;
  second /= total;
  EXPECT_NEAR(
      guess.log_zeta,
      std::log(total) + 0.5 * (q * q.transpose()).trace() + 0.5 * d * std::log(2 * kPi) - 14 * std::log(2.0),
      1e-10);
  for (int i = 0; i < d; ++i) {
    EXPECT_NEAR(guess.mean[i], mean[i], 1e-10);
    for (int j = 0; j < d; ++j)
      EXPECT_NEAR(guess.covariance[i * d + j], second(i, j) - mean[i] * mean[j], 1e-10);
  }
}

TEST(BoltzmannBase, IsCloseToTheTruthAndBelowIt) {
  for (int seed : {1, 2, 3}) {
    const SubjectOf<BoltzmannTarget> s(random_system(28, seed));
    const BaseGuess guess = s.target->base_guess(2000, 1);
    const Truth& t = s.target->truth();
    EXPECT_LT(guess.log_zeta, t.log_z);
    EXPECT_GT(guess.log_zeta, t.log_z - 1);
    double squares = 0;
    for (int i = 0; i < s.dim(); ++i) squares += std::pow(guess.mean[i] - t.mean[i], 2);
    EXPECT_LT(std::sqrt(squares / s.dim()), 0.2);
  }
}

TEST(BoltzmannBase, IsTheSameEveryTimeAndOtherForOtherSeeds) {
  const SubjectOf<BoltzmannTarget> s(random_system(20)), again(random_system(20));
  const BaseGuess a = s.target->base_guess(20, 7), b = again.target->base_guess(20, 7),
                  c = s.target->base_guess(20, 8);
  EXPECT_EQ(a.log_zeta, b.log_zeta);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.covariance, b.covariance);
  EXPECT_NE(a.log_zeta, c.log_zeta);
}

TEST(BoltzmannBase, HasItsSpreadAlongTheAxesMostFirst) {
  const SubjectOf<BoltzmannTarget> s(random_system(28));
  const BaseGuess guess = s.target->base_guess(2000, 1);  // not the starts that the axes were turned by
  const int d = s.dim();
  for (int i = 0; i < d; ++i)
    for (int j = 0; j < i; ++j) {
      const double a = guess.covariance[i * d + i], b = guess.covariance[j * d + j];
      EXPECT_LT(std::abs(guess.covariance[i * d + j]), 0.2 * std::sqrt(a * b)) << i << ", " << j;
      EXPECT_LT(a, 1.2 * b);
    }
}

TEST(BoltzmannBase, OtherTargetsProposeNone) {
  const SubjectOf<GaussianTarget> s({});
  EXPECT_FALSE(s.target->has_base_guess());
  EXPECT_THROW(s.target->base_guess(10, 1), std::logic_error);
}

}  // namespace
}  // namespace lockstep::testing
