// SPDX-License-Identifier: Apache-2.0
// The checks that the statistical suites rest on, against textbook values.
#include "tests/support/statistics.hpp"

#include <gtest/gtest.h>

#include <random>

namespace {
using namespace lockstep::testing;

TEST(Statistics, NormalQuantilesAreTheTextbookOnes) {
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-10);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424308822899, 1e-9);
  EXPECT_NEAR(family_quantile(0.05, 1), 1.959963984540054, 1e-10);
  EXPECT_NEAR(family_quantile(0.01, 100), 3.890591886413124, 1e-9);
}

TEST(Statistics, RunningMeanAgreesWithTheDefinition) {
  const std::vector<double> x = {1, 2, 4, 9};
  const RunningMean m = running_mean(x);
  EXPECT_DOUBLE_EQ(m.mean(), 4);
  EXPECT_DOUBLE_EQ(m.variance(), 38.0 / 3);
  EXPECT_DOUBLE_EQ(m.z(1), 3 / std::sqrt(38.0 / 12));
  RunningMean constant;
  for (int i = 0; i < 3; ++i) constant.add(2);
  EXPECT_EQ(constant.z(2), 0);
  EXPECT_TRUE(std::isinf(constant.z(1)));
}

TEST(Statistics, KolmogorovTailIsTheTabulatedOne) {
  EXPECT_NEAR(kolmogorov_tail(1.3581), 0.05, 1e-4);
  EXPECT_NEAR(kolmogorov_tail(1.6276), 0.01, 1e-4);
}

TEST(Statistics, KolmogorovSmirnovKeepsItsRateAndHasPower) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int alarms = 0, two_sample_alarms = 0, found = 0;
  for (int repeat = 0; repeat < 400; ++repeat) {
    std::vector<double> a(200), b(300), shifted(200);
    for (double& v : a) v = normal(random);
    for (double& v : b) v = normal(random);
    for (double& v : shifted) v = normal(random) + 0.5;
    alarms += ks_test(a, normal_cdf) < 0.05;
    two_sample_alarms += ks_test(a, b) < 0.05;
    found += ks_test(shifted, normal_cdf) < 0.05;
  }
  // 400 trials at 0.05: 20 expected, sd 4.4.
  EXPECT_NEAR(alarms, 20, 16);
  EXPECT_NEAR(two_sample_alarms, 20, 16);
  EXPECT_EQ(found, 400);
}

TEST(Statistics, WelchComparesTwoSamples) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  std::vector<double> a(20000), b(30000);
  for (double& v : a) v = normal(random);
  for (double& v : b) v = 2 * normal(random);
  EXPECT_LT(std::abs(two_sample_z(a, b)), 4);
  for (double& v : b) v += 0.2;
  EXPECT_LT(two_sample_z(a, b), -8);
}
}  // namespace
