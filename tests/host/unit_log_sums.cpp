// SPDX-License-Identifier: Apache-2.0
#include "host/log_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(LogSums, EqualPlainSums) {
  LogSum sum, other;
  EXPECT_EQ(sum.log(), -kInfinity);
  for (double t : {-2.0, 3.0, 0.5}) sum.add(t);
  EXPECT_NEAR(sum.log(), std::log(std::exp(-2) + std::exp(3) + std::exp(0.5)), 1e-15);
  sum.add(-kInfinity);
  sum.add(other);  // empty
  EXPECT_NEAR(sum.log(), std::log(std::exp(-2) + std::exp(3) + std::exp(0.5)), 1e-15);
  other.add(-5000);
  other.add(4000);
  sum.add(other);
  EXPECT_EQ(sum.log(), 4000);
  other.add(kNan);
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

}  // namespace
}  // namespace lockstep
