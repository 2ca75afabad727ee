// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "host/runs/adaptation.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Acceptance of HMC on a Gaussian in the limit of many dimensions, 2 Phi(-c step^2 / 2), with c = 4.
double acceptance(double step_size) { return 2 * testing::normal_cdf(-2 * step_size * step_size); }
double step_with(double target) { return std::sqrt(-testing::normal_quantile(target / 2) / 2); }

TEST(DualAveraging, KnownCurveInverts) {
  for (double target : {0.3, 0.65, 0.8, 0.95}) EXPECT_NEAR(acceptance(step_with(target)), target, 1e-10);
}

class DualAveragingTargets : public ::testing::TestWithParam<std::tuple<double, double>> {};

TEST_P(DualAveragingTargets, FindsTheStepOfTheTarget) {
  const auto [target, start] = GetParam();
  DualAveraging averaging(start, target);
  EXPECT_DOUBLE_EQ(averaging.step_size(), start);
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.05);
  for (int t = 0; t < 2000; ++t) averaging.update(acceptance(averaging.step_size()) + noise(random));
  EXPECT_NEAR(std::log(averaging.average() / step_with(target)), 0, 0.05);
  EXPECT_NEAR(acceptance(averaging.average()), target, 0.03);
}
INSTANTIATE_TEST_SUITE_P(Curve, DualAveragingTargets,
                         ::testing::Combine(::testing::Values(0.3, 0.65, 0.8, 0.95),
                                            ::testing::Values(0.01, 0.5, 5.0)));

TEST(DualAveraging, FollowsItsRecursion) {
  // Hoffman & Gelman (2014), equation 6, by hand for two iterations from step 1 at target 0.8.
  DualAveraging averaging(1, 0.8);
  averaging.update(0.5);
  const double h1 = (0.8 - 0.5) / 11, x1 = std::log(10.0) - h1 / 0.05;
  EXPECT_NEAR(std::log(averaging.step_size()), x1, 1e-14);
  EXPECT_NEAR(std::log(averaging.average()), x1, 1e-14);
  averaging.update(0.9);
  const double h2 = (1 - 1.0 / 12) * h1 + (0.8 - 0.9) / 12, x2 = std::log(10.0) - std::sqrt(2.0) / 0.05 * h2;
  const double eta = std::pow(2.0, -0.75);
  EXPECT_NEAR(std::log(averaging.step_size()), x2, 1e-14);
  EXPECT_NEAR(std::log(averaging.average()), eta * x2 + (1 - eta) * x1, 1e-14);
}

TEST(DualAveraging, NoAcceptanceShortensTheStep) {
  DualAveraging rejected(1, 0.8), not_a_number(1, 0.8);
  for (int t = 0; t < 50; ++t) {
    rejected.update(0);
    not_a_number.update(kNan);
  }
  EXPECT_LT(rejected.step_size(), 1e-3);
  EXPECT_DOUBLE_EQ(not_a_number.step_size(), rejected.step_size());
}

TEST(DualAveraging, RestartForgets) {
  DualAveraging used(1, 0.8), fresh(0.3, 0.6);
  for (int t = 0; t < 30; ++t) used.update(0.1);
  used.restart(0.3, 0.6);
  for (double a : {0.2, 0.7, 0.9}) {
    used.update(a);
    fresh.update(a);
  }
  EXPECT_DOUBLE_EQ(used.step_size(), fresh.step_size());
  EXPECT_DOUBLE_EQ(used.average(), fresh.average());
}

class CheesStarts : public ::testing::TestWithParam<double> {};

TEST_P(CheesStarts, ClimbsToTheOptimum) {
  // A criterion with its maximum at T = 2, seen with noise as large as its slope there.
  Chees chees(GetParam());
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.3);
  for (int t = 0; t < 1500; ++t) {
    const double time = chees.trajectory_time(1e-2);
    chees.update(time * std::exp(-time / 2) * (2 - time) + noise(random));
  }
  EXPECT_NEAR(std::log(chees.average(1e-2) / 2), 0, 0.15);
  EXPECT_NEAR(std::log(chees.trajectory_time(1e-2) / 2), 0, 0.5);
}
INSTANTIATE_TEST_SUITE_P(Starts, CheesStarts, ::testing::Values(0.2, 1.0, 2.0, 6.0));

TEST(Chees, ScaleOfTheCriterionIsOfNoConsequence) {
  Chees small(1), large(1);
  for (int t = 0; t < 40; ++t) {
    const double g = std::cos(0.3 * t);
    small.update(1e-12 * g);
    large.update(1e12 * g);
  }
  EXPECT_NEAR(small.average(0.01), large.average(0.01), 1e-10);
}

TEST(Chees, StaysBetweenOneStepAndAThousand) {
  Chees up(1), down(1);
  for (int t = 0; t < 3000; ++t) {
    up.update(1);
    down.update(-1);
  }
  EXPECT_DOUBLE_EQ(up.trajectory_time(0.1), 100);
  EXPECT_DOUBLE_EQ(up.average(0.1), 100);
  EXPECT_DOUBLE_EQ(down.trajectory_time(0.1), 0.1);
  EXPECT_DOUBLE_EQ(down.average(0.1), 0.1);
}

TEST(Chees, IgnoresWhatIsNoNumber) {
  Chees chees(1.5);
  for (double g : {kNan, std::numeric_limits<double>::infinity(), 0.0}) chees.update(g);
  EXPECT_DOUBLE_EQ(chees.trajectory_time(0.1), 1.5);
  EXPECT_DOUBLE_EQ(chees.average(0.1), 1.5);
}

TEST(StepSizeController, FollowsAcceptance) {
  const StepSizeController half{0.5, 0.7};
  EXPECT_DOUBLE_EQ(half.next(0.1, 0.7), 0.1);
  EXPECT_DOUBLE_EQ(half.next(0.1, 0.9), 0.1 * std::exp(0.1));
  EXPECT_DOUBLE_EQ(half.next(0.1, 0.3), 0.1 * std::exp(-0.2));
  EXPECT_DOUBLE_EQ(half.next(0.1, kNan), half.next(0.1, 0));
  EXPECT_EQ(half.next(1.99, 1), 2);
  EXPECT_EQ(half.next(1e-6, 0), 1e-6);
  EXPECT_EQ((StepSizeController{0, 0.7}.next(3, 0.1)), 3);  // none
  // Near the step of its target, at gain 1, and there it stays.
  const StepSizeController one{1, 0.8};
  for (double step : {0.01, 2.0}) {
    for (int t = 0; t < 200; ++t) step = one.next(step, acceptance(step));
    EXPECT_NEAR(step, step_with(0.8), 1e-9);
  }
}

}  // namespace
}  // namespace lockstep
