// SPDX-License-Identifier: Apache-2.0
// Sums on packs against the same sums one by one, for every number of terms around a pack, and at infinities.
#include "host/estimators/pack_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "host/estimators/log_z_estimators.hpp"

namespace {
using namespace lockstep;

std::vector<double> normals(std::size_t count, double sd, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, sd);
  std::vector<double> v(count);
  for (double& x : v) x = normal(random);
  return v;
}

LogSum one_by_one(const std::vector<double>& terms) {
  LogSum s;
  for (double t : terms) s.add(t);
  return s;
}

TEST(PackSums, EqualSumsOneByOne) {
  for (std::size_t count = 0; count < 40; ++count)
    for (double sd : {1.0, 30.0, 1000.0}) {
      const auto v = normals(count, sd, unsigned(count));
      double sum = 0, size = 0;
      for (double x : v) sum += x, size += std::abs(x);
      EXPECT_NEAR(sum_of(v), sum, 1e-15 * size);
      const LogSum expected = one_by_one(v), found = log_sum_of(v);
      EXPECT_EQ(found.largest, expected.largest);
      EXPECT_NEAR(found.sum, expected.sum, 2e-15 * expected.sum) << count;
      double s = 0, squares = 0, slope = 0;
      for (double x : v) {
        const double p = 1 / (1 + std::exp(-(x + 0.7))), rest = 1 / (1 + std::exp(x + 0.7));
        s += p;
        squares += p * p;
        slope += p * rest;
      }
      const LogisticSums logistic = logistic_sums(v, 0.7);
      EXPECT_NEAR(logistic.sum, s, 4e-15 * s);
      EXPECT_NEAR(logistic.squares, squares, 4e-15 * squares);
      EXPECT_NEAR(logistic.slope, slope, 4e-15 * slope);
    }
}

TEST(PackSums, KeepInfinitiesAndNaN) {
  for (std::size_t count : {1u, 7u, 8u, 9u, 20u})
    for (std::size_t at = 0; at < count; ++at) {
      auto v = normals(count, 1, 3);
      v[at] = -INFINITY;
      EXPECT_NEAR(log_sum_of(v).sum, one_by_one(v).sum, 1e-14);
      EXPECT_GE(logistic_sums(v, 0).slope, 0);
      v[at] = INFINITY;
      EXPECT_EQ(log_sum_of(v).log(), INFINITY);
      EXPECT_TRUE(std::isfinite(logistic_sums(v, 0).sum));
      v[at] = NAN;
      EXPECT_TRUE(std::isnan(log_sum_of(v).log()));
      EXPECT_TRUE(std::isnan(logistic_sums(v, 0).sum));
      EXPECT_TRUE(std::isnan(sum_of(v)));
    }
  EXPECT_EQ(log_sum_of({}).log(), -INFINITY);
  const std::vector<double> none(11, -INFINITY), two{1, INFINITY, INFINITY};
  EXPECT_EQ(log_sum_of(none).sum, 0);  // no smallest normal numbers instead
  EXPECT_EQ(log_sum_of(none).log(), -INFINITY);
  EXPECT_EQ(logistic_sums(none, 0).sum, 0);
  EXPECT_EQ(logistic_sums(none, 0).slope, 0);
  EXPECT_TRUE(std::isnan(log_sum_of(two).log()));
  // Far apart, and far from one.
  const std::vector<double> far{-1e5, 1e5, 1e5 - 800}, low{-1e200, -1e200};
  EXPECT_EQ(log_sum_of(far).log(), 1e5);
  EXPECT_EQ(log_sum_of(low).log(), -1e200);
  const std::vector<double> ends{-740, 740, -1e9, 1e9};
  EXPECT_EQ(logistic_sums(ends, 0).sum, 2);
}

TEST(PackSums, SharesAreThoseOfTheLadder) {
  const std::vector<double> ladder{0, 0.2, 0.7, 1}, f{0, -1, 2.5, 3};
  constexpr std::size_t stride = 24;
  for (std::size_t count = 1; count <= stride; ++count) {
    auto delta = normals(count, 5, unsigned(count));
    if (count > 3) delta[count - 1] = INFINITY;  // outside the support: the base has it
    std::vector<double> share(4 * stride);
    double logs = 0;
    const double found = level_shares(ladder, f, delta, share.data(), stride);
    for (std::size_t n = 0; n < count; ++n) {
      LogSum sum;
      for (std::size_t k = 0; k < 4; ++k) sum.add(k == 0 ? 0 : f[k] - ladder[k] * delta[n]);
      logs += sum.log();
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(share[k * stride + n], std::exp((k == 0 ? 0 : f[k] - ladder[k] * delta[n]) - sum.log()),
                    1e-14);
    }
    EXPECT_NEAR(found, logs, 1e-14 * double(count) * 20);
    if (count > 3) {
      EXPECT_EQ(share[count - 1], 1);
    }
  }
}

/// As many pairs at once as one after another, at edges and between them.
TEST(PackSums, SteppingStonesTakePairsTogether) {
  const std::vector<double> edges{0, 0.1, 0.4, 1};
  const auto delta = normals(300, 3, 9);
  std::vector<double> beta;
  for (int i = 0; i < 300; ++i) beta.push_back(i % 3 == 0 ? edges[std::size_t(i / 3) % 4] : i % 7 / 6.0);
  beta[5] = NAN;  // ignored, as what is outside
  beta[6] = 1.5;
  SteppingStones together(edges, 2), apart(edges, 2);
  for (int block : {0, 1}) {
    const std::size_t begin = 150 * std::size_t(block);
    together.add(block, std::span(beta).subspan(begin, 150), std::span(delta).subspan(begin, 150));
    for (std::size_t i = begin; i < begin + 150; ++i) apart.add(block, beta[i], delta[i]);
  }
  EXPECT_NEAR(together.value(0.5).estimate, apart.value(0.5).estimate, 1e-13);
  EXPECT_NEAR(together.value(0.5).se(), apart.value(0.5).se(), 1e-13);
}

}  // namespace
