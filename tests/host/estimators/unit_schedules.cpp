// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/schedules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "host/util/errors.hpp"
#include "tests/support/gaussian_path.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

TEST(Ladders, RunFromZeroToOne) {
  for (const int steps : {1, 2, 3, 10, 1000})
    for (const auto& ladder : {linear_ladder(steps), sigmoid_ladder(steps), quadratic_ladder(steps)}) {
      ASSERT_EQ(ladder.size(), std::size_t(steps) + 1);
      EXPECT_NO_THROW(check_ladder(ladder));
    }
  EXPECT_EQ(linear_ladder(4), (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_EQ(quadratic_ladder(4), (std::vector<double>{0, 0.0625, 0.25, 0.5625, 1}));
  const auto sigmoid = [](double t) { return 1 / (1 + std::exp(-t)); };
  const auto ladder = sigmoid_ladder(8);
  EXPECT_NEAR(ladder[2], (sigmoid(-2) - sigmoid(-4)) / (sigmoid(4) - sigmoid(-4)), 1e-15);
  for (int k = 0; k <= 8; ++k) EXPECT_NEAR(ladder[k], 1 - ladder[8 - k], 1e-15);
}

TEST(Ladders, BadOnesAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& bad : std::vector<std::vector<double>>{{},
                                                                         {0},
                                                                         {1},
                                                                         {0.1, 1},
                                                                         {0, 0.9},
                                                                         {0, 0.5, 0.5, 1},
                                                                         {0, 0.7, 0.3, 1},
                                                                         {0, nan, 1},
                                                                         {0, 1.5, 1},
                                                                         {nan, 1}})
    EXPECT_THROW(check_ladder(bad), UserError);
  EXPECT_NO_THROW(check_ladder({0, 1}));
}

TEST(IncrementRate, KnownCases) {
  EXPECT_EQ(increment_rate({0, 0, 0}, {-4, -4, -4}), 0);
  // One of four particles keeps all: a second moment of 4.
  const double none = -std::numeric_limits<double>::infinity();
  EXPECT_NEAR(increment_rate({2, 2, 2, 2}, {-900, none, none, none}), std::sqrt(std::log(4)), 1e-12);
  // Particles without weight do not count.
  EXPECT_NEAR(increment_rate({0, none, 0}, {1, 50, 2}), increment_rate({5, 5}, {1, 2}), 1e-14);
  // Small steps: the standard deviation of the increments.
  std::vector<double> increments;
  for (int i = 0; i < 1000; ++i) increments.push_back(1e-4 * std::sin(i));
  EXPECT_NEAR(increment_rate(std::vector<double>(1000, 0.0), increments), 1e-4 * std::sqrt(0.5), 1e-7);
}

TEST(CommunicationBarrier, LaddersByName) {
  const CommunicationBarrier barrier({0, 0.5, 1}, {3, 1});
  const std::vector<std::vector<double>> expected = {barrier.equal_ladder(6), linear_ladder(6),
                                                     sigmoid_ladder(6), quadratic_ladder(6)};
  ASSERT_EQ(kLadders.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(named_ladder(kLadders[k], 6, barrier), expected[k]);
}

TEST(CommunicationBarrier, AnalyticValueOnGaussians) {
  const testing::GaussianPath path{2, 1, 0.034};
  const std::vector<double> pilot = quadratic_ladder(256);
  std::vector<double> rates;
  for (int k = 0; k < 256; ++k) rates.push_back(path.rejection(pilot[k], pilot[k + 1]));
  const CommunicationBarrier barrier(pilot, rates);
  // Sums of rates fall short of the barrier by about a third of the sum of their cubes: tanh(x) against x.
  double cubes = 0;
  for (double r : rates) cubes += r * r * r;
  EXPECT_NEAR(barrier.global(), path.barrier(1) - cubes / 3, 1e-3);
  EXPECT_NEAR(barrier.global(), std::log(1 / 0.034), 0.02);
  for (double beta = 0; beta <= 1; beta += 1.0 / 1024) {
    EXPECT_NEAR(barrier.cumulative(beta), path.barrier(beta), 0.02) << beta;
  }
  // Re-spaced, every step is rejected at the rate of the best ladder of its length.
  for (const int steps : {4, 16, 64}) {
    const auto ladder = barrier.equal_ladder(steps);
    EXPECT_NO_THROW(check_ladder(ladder));
    const double best = std::tanh(path.barrier(1) / steps);
    for (int k = 0; k < steps; ++k)
      EXPECT_NEAR(path.rejection(ladder[k], ladder[k + 1]) / best, 1, 0.03) << steps << " " << k;
  }
}

TEST(SmoothedSteps, AreGeometricMeans) {
  const auto smooth = smoothed_steps({1, 2, 4, 64}, 1);
  const std::vector<double> log2 = {0.5, 1, 3, 4};
  ASSERT_EQ(smooth.size(), 4u);
  for (int k = 0; k < 4; ++k) EXPECT_NEAR(std::log2(smooth[k]), log2[k], 1e-14) << k;
  EXPECT_EQ(smoothed_steps({0.25, 4}, 0), (std::vector<double>{0.25, 4}));
}

TEST(CommunicationBarrier, FromDraws) {
  // Pilot draws, then a second round on the re-spaced ladder: rates become equal.
  const testing::GaussianPath path{2, 1, 0.034};
  constexpr int kDraws = 16000;
  std::mt19937_64 random(20260303);
  std::vector<double> ladder = quadratic_ladder(24), rates;
  for (int round = 0; round < 3; ++round) {
    rates.clear();
    std::vector<std::vector<double>> delta(ladder.size());
    for (std::size_t k = 0; k < ladder.size(); ++k)
      for (int i = 0; i < kDraws; ++i) delta[k].push_back(path.draw(ladder[k], random));
    for (std::size_t k = 0; k + 1 < ladder.size(); ++k) {
      testing::RunningMean rejected;
      for (int i = 0; i < kDraws; ++i)
        rejected.add(1 -
                     std::min(1.0, std::exp((ladder[k + 1] - ladder[k]) * (delta[k + 1][i] - delta[k][i]))));
      rates.push_back(rejected.mean());
    }
    ladder = CommunicationBarrier(ladder, rates).equal_ladder(24);
  }
  const double best = std::tanh(path.barrier(1) / 24);
  // A rate of 0.14 from 16000 pairs of draws is good to 2 %, and so are those that placed the level.
  for (double r : rates) EXPECT_NEAR(r / best, 1, 0.15);
}

TEST(CommunicationBarrier, MonotoneThroughEveryRate) {
  std::mt19937_64 random(20260304);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> ladder = {0}, rates;
    const int steps = 1 + int(random() % 12);
    for (int k = 1; k < steps; ++k)
      ladder.push_back(ladder.back() + (1 + double(random() % 1000)) / 1000 / steps * 0.9);
    ladder.push_back(1);
    for (int k = 0; k < steps; ++k)
      rates.push_back(random() % 4 == 0 ? 0 : std::pow(0.5, double(random() % 20)));
    const CommunicationBarrier barrier(ladder, rates);
    double sum = 0;
    for (int k = 0; k < steps; ++k) {
      EXPECT_NEAR(barrier.cumulative(ladder[k]), sum, 1e-12);
      sum += rates[k];
    }
    EXPECT_NEAR(barrier.cumulative(1), sum, 1e-12);
    double last = 0;
    for (int i = 0; i <= 500; ++i) {
      const double beta = i / 500.0, value = barrier.cumulative(beta);
      EXPECT_GE(value, last - 1e-12);
      last = value;
    }
    EXPECT_NO_THROW(check_ladder(barrier.equal_ladder(7)));
    for (const double beta : barrier.equal_ladder(7)) EXPECT_TRUE(std::isfinite(beta));
  }
}

TEST(CommunicationBarrier, ConstantRatesAndNone) {
  const CommunicationBarrier constant({0, 0.5, 1}, {0.3, 0.3});
  for (double beta : {0.0, 0.1, 0.5, 0.8, 1.0}) EXPECT_NEAR(constant.cumulative(beta), 0.6 * beta, 1e-15);
  EXPECT_NEAR(constant.equal_ladder(4)[1], 0.25, 1e-14);
  const CommunicationBarrier none({0, 0.2, 1}, {0, 0});
  EXPECT_EQ(none.equal_ladder(4), linear_ladder(4));
  EXPECT_NEAR(CommunicationBarrier({0, 1}, {0.4}).cumulative(0.5), 0.2, 1e-15);
}

}  // namespace
}  // namespace lockstep
