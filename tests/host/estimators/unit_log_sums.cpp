// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/log_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lockstep {
namespace {

TEST(LogSums, EqualPlainSums) {
  LogSum sum, other;
  EXPECT_EQ(sum.log(), -INFINITY);
  for (double t : {-2.0, 3.0, 0.5}) sum.add(t);
  EXPECT_NEAR(sum.log(), std::log(std::exp(-2) + std::exp(3) + std::exp(0.5)), 1e-15);
  sum.add(-INFINITY);
  sum.add(other);  // empty
  EXPECT_NEAR(sum.log(), std::log(std::exp(-2) + std::exp(3) + std::exp(0.5)), 1e-15);
  other.add(-5000);
  other.add(4000);
  sum.add(other);
  EXPECT_EQ(sum.log(), 4000);
  other.add(NAN);
  sum.add(other);
  EXPECT_TRUE(std::isnan(sum.log()));
}

TEST(LogSums, JackknifeLeavesOutEachBlock) {
  // One block carries a sum alone but for rounding: leaving it out must not cancel.
  const double terms[3][2] = {{0.1, 2}, {80, 0.3}, {-1.7, 1}};
  BlockLogSums sums(3, 2), half(3, 2);
  for (int b = 0; b < 3; ++b)
    for (int r = 0; r < 2; ++r) {
      sums.add(b, r, terms[b][r]);
      half.add(b, r, -1);
      sums.add(b, r, -1);
    }
  const Jackknife j = sums.combine({1, -2});
  const auto log_sum = [&](int row, int skip) {
    double sum = 0;
    for (int b = 0; b < 3; ++b)
      if (b != skip) sum += std::exp(terms[b][row]) + std::exp(-1);
    return std::log(sum);
  };
  EXPECT_NEAR(j.estimate, log_sum(0, -1) - 2 * log_sum(1, -1), 1e-12);
  double mean = 0, square = 0;
  for (int b = 0; b < 3; ++b) {
    EXPECT_NEAR(j.left_out[b], log_sum(0, b) - 2 * log_sum(1, b), 1e-12);
    mean += j.left_out[b] / 3;
  }
  for (double v : j.left_out) square += (v - mean) * (v - mean);
  EXPECT_NEAR(j.se(), std::sqrt(square * 2 / 3), 1e-12);
  EXPECT_NEAR((j - j).se(), 0, 1e-12);
  EXPECT_NEAR((j + j).se(), 2 * j.se(), 1e-12);
  EXPECT_NEAR((j + 5).estimate, j.estimate + 5, 1e-12);
  EXPECT_TRUE(std::isnan((Jackknife{1, {1}}.se())));
}

TEST(StudentQuantile, AgreesWithTables) {
  // R: qt(0.975, df), qt(0.9985, df).
  EXPECT_NEAR(student_quantile(1, 0.95), 12.706204736, 1e-8);
  EXPECT_NEAR(student_quantile(2, 0.95), 4.302652730, 1e-8);
  EXPECT_NEAR(student_quantile(7, 0.95), 2.364624252, 1e-8);
  EXPECT_NEAR(student_quantile(63, 0.95), 1.998340543, 1e-8);
  EXPECT_NEAR(student_quantile(30, 0.95), 2.042272456, 1e-8);
  EXPECT_NEAR(student_quantile(NAN, 0.95), 1.959963985, 1e-8);
  for (double none : {0.0, -1.0})
    EXPECT_TRUE(std::isnan(student_quantile(none, 0.95)));                       // of one block, or none
  EXPECT_NEAR(student_quantile(9999, 0.95), student_quantile(1e5, 0.95), 3e-4);  // z (z^2 + 1) / (4 df)
}

TEST(StudentQuantile, IntervalsOfEightNormalBlocksCoverAsTheySay) {
  // The mean of eight normals by its jackknife: exactly Student's. 4000 of them; binomial errors .0034 and .0009.
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int within95 = 0, within997 = 0;
  constexpr int kTimes = 4000;
  for (int t = 0; t < kTimes; ++t) {
    std::vector<double> x(8);
    double sum = 0;
    for (double& v : x) sum += v = normal(random);
    Jackknife j{sum / 8, {}};
    for (double v : x) j.left_out.push_back((sum - v) / 7);
    const LogZ z = j.value();
    EXPECT_EQ(z.df, 7);
    const auto a = z.interval(0.95), b = z.interval(0.997);
    within95 += a[0] <= 0 && 0 <= a[1];
    within997 += b[0] <= 0 && 0 <= b[1];
  }
  EXPECT_NEAR(within95 / double(kTimes), 0.95, 4.5 * 0.0034);
  EXPECT_NEAR(within997 / double(kTimes), 0.997, 4.5 * 0.0009);
}

}  // namespace
}  // namespace lockstep
