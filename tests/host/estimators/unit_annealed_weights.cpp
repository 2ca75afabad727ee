// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/annealed_weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/gaussian_path.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using testing::Coverage;
using testing::GaussianPath;
using Random = std::mt19937_64;

TEST(Bidirectional, FlatEnergyGivesExactlyZero) {
  const Bidirectional b = bidirectional(std::vector<double>(40, 0.0), std::vector<double>(30, 0.0));
  for (const LogZ& v : {b.lower, b.upper, b.forward, b.reverse}) {
    EXPECT_EQ(v.estimate, 0);
    EXPECT_NEAR(v.se, 0, 1e-15);
  }
  EXPECT_NEAR(b.bennett.estimate, 0, 1e-12);
  EXPECT_NEAR(b.bennett.se, 0, 1e-7);
  EXPECT_NEAR(b.forward_ess, 40, 1e-9);
  for (double v : {3.0, -3.0, 2000.0})  // a constant energy
    EXPECT_NEAR(bennett_acceptance_ratio({v, v}, {-v}).estimate, v, 1e-12 * std::abs(v));
}

/// Annealing with perfect transitions: every state is an exact draw of its level.
std::vector<double> anneal(const GaussianPath& path, const std::vector<double>& ladder, bool reverse,
                           int runs, Random& random) {
  std::vector<double> log_weights;
  for (int i = 0; i < runs; ++i) {
    double sum = reverse ? -path.log_zeta : path.log_zeta;
    for (std::size_t k = 0; k + 1 < ladder.size(); ++k)
      sum += (ladder[k + 1] - ladder[k]) *
             (reverse ? path.draw(ladder[k + 1], random) : -path.draw(ladder[k], random));
    log_weights.push_back(sum);
  }
  return log_weights;
}

TEST(Bidirectional, BoundsAndCoverage) {
  const GaussianPath path{2, 1, 0.3};
  const std::vector<double> ladder = path.barrier_ladder(24);
  constexpr int kReplicates = 200, kForward = 500, kReverse = 300;
  Random random(20260315);
  const double limit = testing::family_quantile(1e-3, 2 * 4);
  testing::RunningMean lower, upper;
  Coverage forward(kForward - 1), reverse(kReverse - 1), bennett(kReverse - 1), bootstrap(kReverse - 1);
  double jarzynski_variance = 0, bennett_variance = 0;
  for (int r = 0; r < kReplicates; ++r) {
    const Bidirectional b = bidirectional(anneal(path, ladder, false, kForward, random),
                                          anneal(path, ladder, true, kReverse, random));
    lower.add(b.lower.estimate);
    upper.add(b.upper.estimate);
    // The truth is between the bounds, each within its error.
    EXPECT_LT(b.lower.estimate, path.log_z + 5 * b.lower.se);
    EXPECT_GT(b.upper.estimate, path.log_z - 5 * b.upper.se);
    forward.add(b.forward.estimate, b.forward.se, path.log_z);
    reverse.add(b.reverse.estimate, b.reverse.se, path.log_z);
    bennett.add(b.bennett.estimate, b.bennett.se, path.log_z);
    bootstrap.add(b.bennett.estimate, b.bennett_bootstrap_se, path.log_z);
    jarzynski_variance += b.forward.se * b.forward.se;
    bennett_variance += b.bennett.se * b.bennett.se;
    EXPECT_GT(b.forward_ess, 1);
    EXPECT_LT(b.forward_ess, kForward);
  }
  EXPECT_LT(lower.z(path.log_z), -10);
  EXPECT_GT(upper.z(path.log_z), 10);
  for (const Coverage* coverage : {&forward, &reverse, &bennett, &bootstrap}) {
    EXPECT_LT(std::abs(coverage->bias_z()), limit);
    EXPECT_LT(std::abs(coverage->spread_z()), limit);
  }
  EXPECT_LT(bennett_variance, jarzynski_variance);
}

TEST(Bennett, SolvesItsEquation) {
  const std::vector<double> forward = {-3, 0.2, 1, -40}, reverse = {0.5, -1.5};
  const double c = bennett_acceptance_ratio(forward, reverse).estimate, m = std::log(0.5);
  const auto s = [](double t) { return 1 / (1 + std::exp(-t)); };
  double difference = 0;
  for (double v : forward) difference += s(v - c + m);
  for (double v : reverse) difference -= s(v + c - m);
  EXPECT_NEAR(difference, 0, 1e-12);
  // Turned round, it is the negative.
  EXPECT_NEAR(bennett_acceptance_ratio(reverse, forward).estimate, -c, 1e-11);
  // A constant energy shifts it.
  EXPECT_NEAR(
      bennett_acceptance_ratio({1e4 - 3, 1e4 + 0.2, 1e4 + 1, 1e4 - 40}, {0.5 - 1e4, -1.5 - 1e4}).estimate,
      1e4 + c, 1e-8);
}

TEST(Bennett, PoorOverlapAndBadInput) {
  // All forward weights far below, all reverse ones far above: somewhere between.
  const LogZ apart = bennett_acceptance_ratio({-300, -301, -302}, {-200, -199, -201});
  EXPECT_GT(apart.estimate, -300);
  EXPECT_LT(apart.estimate, 200);
  EXPECT_GT(apart.se, 0);
  EXPECT_TRUE(std::isnan(bennett_acceptance_ratio({-2000, -2000}, {-2000, -2000}).estimate));
  EXPECT_TRUE(std::isnan(bennett_acceptance_ratio({1, NAN}, {0, 1}).estimate));
  EXPECT_TRUE(std::isnan(bennett_acceptance_ratio({1}, {-1}).se));
  // Weights of 0 count: half of the runs miss the target's support.
  EXPECT_NEAR(bennett_acceptance_ratio({0, -INFINITY, 0, -INFINITY}, {0, 0}).estimate, -std::log(2), 1e-10);
  EXPECT_EQ(bennett_bootstrap_se({1, 2, 3}, {0, -1}), bennett_bootstrap_se({1, 2, 3}, {0, -1}));
}

TEST(WeightSummary, FewAndExtremeRuns) {
  EXPECT_TRUE(std::isnan(summarise_weights({1}).log_mean.se));
  EXPECT_TRUE(std::isnan(summarise_weights({1}).mean_log.se));
  const WeightSummary far = summarise_weights({-5000, -5000 + std::log(3)});
  EXPECT_NEAR(far.log_mean.estimate, -5000 + std::log(2), 1e-11);
  EXPECT_NEAR(far.log_mean.se, 0.5, 1e-11);  // sd / sqrt(2) of 1 and 3, over their mean
  EXPECT_NEAR(far.ess, 1.6, 1e-11);
  const WeightSummary zero = summarise_weights({0, -INFINITY});
  EXPECT_NEAR(zero.log_mean.estimate, -std::log(2), 1e-15);
  EXPECT_EQ(zero.mean_log.estimate, -INFINITY);
  EXPECT_NEAR(zero.ess, 1, 1e-15);
}

}  // namespace
}  // namespace lockstep
