// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/study_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lockstep {
namespace {

TEST(StudyStatistics, ByHand) {
  // Errors 1, -1, 3: mean 1, sd 2, mean square 11/3.
  const auto found = replicate_statistics({11, 9, 13}, {10, 10, 10});
  EXPECT_EQ(found.replicates, 3);
  EXPECT_EQ(found.finite, 3);
  EXPECT_EQ(found.truth, 10);
  EXPECT_DOUBLE_EQ(found.mean, 11);
  EXPECT_DOUBLE_EQ(found.sd, 2);
  EXPECT_DOUBLE_EQ(found.rmse, std::sqrt(11.0 / 3));
  EXPECT_DOUBLE_EQ(found.bias_z, normal_equivalent(1 / (2 / std::sqrt(3.0)), 2));
}

// Tables of Student's distribution: t of the two-sided levels .05 and .0027, which are 1.960 and 3.000 of a normal.
TEST(StudyStatistics, FewReplicatesMakeLargeTByChance) {
  struct Row {
    double df, t05, t003;
  };
  for (const Row& row : {Row{1, 12.706, 235.8}, {2, 4.303, 19.21}, {3, 3.182, 9.219}, {7, 2.365, 4.442}}) {
    EXPECT_NEAR(normal_equivalent(row.t05, row.df), 1.960, 0.03 * 1.960) << row.df;
    EXPECT_NEAR(normal_equivalent(-row.t003, row.df), -3.0, 0.03 * 3) << row.df;
  }
  EXPECT_NEAR(normal_equivalent(2.5, 1e6), 2.5, 1e-3);
  EXPECT_EQ(normal_equivalent(0, 3), 0);
  EXPECT_TRUE(std::isnan(normal_equivalent(NAN, 3)));
}

TEST(StudyStatistics, BootstrapOfTwoReplicates) {
  // Errors 0 and 2: a resample's RMSE is 0, sqrt(2) or 2 with probabilities 1/4, 1/2, 1/4. With 1000
  // resamples the sd of that is known to about 2 %.
  const double mean = 0.5 * std::sqrt(2.0) + 0.25 * 2, mean_square = 2;
  const double expected = std::sqrt(mean_square - mean * mean);
  EXPECT_NEAR(replicate_statistics({10, 12}, {10, 10}).rmse_se, expected, 0.08 * expected);
}

TEST(StudyStatistics, BootstrapAgreesWithTheDeltaMethod) {
  // For R normal errors of variance 1 the standard error of the RMSE is about 1 / sqrt(2 R).
  std::mt19937_64 engine(5);
  std::normal_distribution<double> normal;
  std::vector<double> estimates(400);
  for (double& estimate : estimates) estimate = 3 + normal(engine);
  const auto found = replicate_statistics(estimates, std::vector<double>(400, 3.0));
  EXPECT_NEAR(found.rmse_se, 1 / std::sqrt(800.0), 0.2 / std::sqrt(800.0));
  EXPECT_EQ(found.rmse_se, replicate_statistics(estimates, std::vector<double>(400, 3.0)).rmse_se);
}

TEST(StudyStatistics, TruthMayDifferBetweenReplicates) {
  const auto found = replicate_statistics({1, 12}, {0, 10});
  EXPECT_TRUE(std::isnan(found.truth));
  EXPECT_DOUBLE_EQ(found.rmse, std::sqrt(2.5));             // errors 1 and 2
  EXPECT_DOUBLE_EQ(found.bias_z, normal_equivalent(3, 1));  // their spread, not that of 1 and 12
}

TEST(StudyStatistics, WhatIsUndefinedIsNaN) {
  const auto unknown = replicate_statistics({1, 2}, {NAN, NAN});
  EXPECT_DOUBLE_EQ(unknown.mean, 1.5);
  for (const double value : {unknown.truth, unknown.rmse, unknown.rmse_se, unknown.bias_z}) {
    EXPECT_TRUE(std::isnan(value));
  }
  const auto single = replicate_statistics({1}, {3});
  EXPECT_DOUBLE_EQ(single.rmse, 2);
  for (const double value : {single.sd, single.rmse_se, single.bias_z}) EXPECT_TRUE(std::isnan(value));
  const auto none = replicate_statistics({}, {});
  for (const double value : {none.truth, none.mean, none.rmse}) EXPECT_TRUE(std::isnan(value));
}

TEST(StudyStatistics, EstimatesThatAreNotFiniteAreLeftOutAndCounted) {
  const auto found = replicate_statistics({11, NAN, 9, INFINITY, 13}, {10, 10, 10, 10, 10});
  EXPECT_EQ(found.replicates, 5);
  EXPECT_EQ(found.finite, 3);
  EXPECT_DOUBLE_EQ(found.mean, 11);
  EXPECT_DOUBLE_EQ(found.rmse, std::sqrt(11.0 / 3));
}

}  // namespace
}  // namespace lockstep
