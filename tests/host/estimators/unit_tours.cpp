// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/tours.hpp"

#include <gtest/gtest.h>

#include "kernels/regeneration.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using R = Regeneration;

TEST(Tours, MeansAreThoseOfTheSums) {
  // Two units of two chains in one dimension, behind one row of another transition; the fields that are not saved behind.
  constexpr int kChains = 4, kOwn = int(R::kNumbers) + R::kRows + 2;
  std::vector<double> fields((1 + kOwn) * kChains, 0.0);
  const auto at = [&](int row, int chain) -> double& { return fields[(1 + row) * kChains + chain]; };
  const std::vector<std::vector<std::pair<double, double>>> tours = {
      {{2, 3.5}, {1, 0.5}, {4, 5}}, {{3, 2}, {1, 2}}, {}, {}};  // N, S of each chain
  for (int c = 0; c < kChains; ++c) {
    fields[c] = 1e9;
    at(R::begun, c) = c < 3;
    at(R::made, c) = 20;
    at(R::taken, c) = 5 + c;
    for (const auto& [n, s] : tours[c]) {
      at(R::closed, c) += 1;
      at(R::sum_n, c) += n;
      at(R::sum_nn, c) += n * n;
      at(int(R::kNumbers) + R::sum_s, c) += s;
      at(int(R::kNumbers) + R::sum_ss, c) += s * s;
      at(int(R::kNumbers) + R::sum_ns, c) += n * s;
    }
  }
  const auto all = tours_of(fields, 2, 2, 1);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].number, 5);
  EXPECT_EQ(all[0].mean_length, 11.0 / 5);
  EXPECT_EQ(all[0].acceptance, 11.0 / 40);
  // sum (S - m N) + 2 sum N (S - m N) / sum N = 0
  const double m = all[0].mean[0];
  double first = 0, second = 0, square = 0;
  for (int c = 0; c < 2; ++c)
    for (const auto& [n, s] : tours[c]) {
      first += s - m * n;
      second += n * (s - m * n);
      square += (s - m * n) * (s - m * n);
    }
  EXPECT_NEAR(first + 2 * second / 11, 0, 1e-12);
  EXPECT_NEAR(all[0].mean_se[0], std::sqrt(square) / 11, 1e-12);
  EXPECT_EQ(all[1].number, 0);
  EXPECT_TRUE(all[1].mean.empty());
}

}  // namespace
}  // namespace lockstep
