// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/ladder_estimators.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "host/estimators/annealed_weights.hpp"
#include "host/estimators/log_z_estimators.hpp"
#include "host/estimators/schedules.hpp"
#include "tests/support/gaussian_path.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using testing::Coverage;
using testing::GaussianPath;
using Random = std::mt19937_64;

/// Exact draws at every level; within a copy each Delta is used `repeats` times, as a slow chain would.
LadderSamples sample(const GaussianPath& path, const std::vector<double>& ladder, int copies, int draws,
                     Random& random, int repeats = 1) {
  LadderSamples s{ladder, copies, draws, {}};
  for (int c = 0; c < copies; ++c)
    for (double beta : ladder)
      for (int i = 0; i < draws; ++i)
        s.delta.push_back(i % repeats == 0 ? path.draw(beta, random) : s.delta.back());
  return s;
}

/// The mean of Delta at every level in place of draws: what is left is the error of the rule of integration.
LadderSamples mean_values(const GaussianPath& path, const std::vector<double>& ladder) {
  LadderSamples s{ladder, 2, 1, {}};
  for (int c = 0; c < 2; ++c)
    for (double beta : ladder) s.delta.push_back(path.delta(path.dim / path.precision(beta)));
  return s;
}

using Estimator = std::function<Jackknife(const LadderSamples&, double)>;
const std::pair<const char*, Estimator> kEstimators[] = {
    {"forward", forward_stepping_stones},
    {"backward", backward_stepping_stones},
    {"bridge", [](const LadderSamples& s, double z) { return bridge_stepping_stones(s, z); }},
    {"mbar", [](const LadderSamples& s, double z) { return mbar(s, z); }},
    {"integration", [](const LadderSamples& s, double z) { return thermodynamic_integration(s, z).log_z; }}};

TEST(LadderEstimators, FlatAndConstantEnergies) {
  for (const double delta : {0.0, 3.0, -2000.0}) {
    const LadderSamples s{{0, 0.2, 0.5, 1}, 3, 5, std::vector<double>(60, delta)};
    for (const auto& [what, estimator] : kEstimators) {
      const Jackknife j = estimator(s, 2);
      EXPECT_NEAR(j.estimate, 2 - delta, 1e-12 * (1 + std::abs(delta))) << what;
      EXPECT_NEAR(j.se(), 0, 1e-10 * (1 + std::abs(delta))) << what;
    }
    EXPECT_NEAR(thermodynamic_integration(s, 2).discretisation, 0, 1e-12 * (1 + std::abs(delta)));
  }
}

TEST(LadderEstimators, BitsDoNotDependOnThreads) {
  Random random(20260322);
  const LadderSamples s = sample({}, {0, 0.1, 0.4, 1}, 6, 300, random);
  for (int threads : {2, 3, 8}) {
    EXPECT_EQ(bridge_stepping_stones(s, 1, threads).left_out, bridge_stepping_stones(s, 1).left_out);
    EXPECT_EQ(mbar(s, 1, threads).left_out, mbar(s, 1).left_out);
  }
}

TEST(LadderEstimators, OneStepIsImportanceSamplingAndBennett) {
  Random random(20260320);
  const LadderSamples s = sample({}, {0, 1}, 4, 25, random);
  std::vector<double> forward, reverse;
  for (int c = 0; c < 4; ++c) {
    for (double d : s.at(c, 0)) forward.push_back(-d);
    for (double d : s.at(c, 1)) reverse.push_back(d);
  }
  const Bidirectional b = bidirectional(forward, reverse);
  EXPECT_NEAR(forward_stepping_stones(s, 0).estimate, b.forward.estimate, 1e-13);
  EXPECT_NEAR(backward_stepping_stones(s, 0).estimate, b.reverse.estimate, 1e-13);
  EXPECT_NEAR(bridge_stepping_stones(s, 0).estimate, b.bennett.estimate, 1e-9);
  EXPECT_NEAR(mbar(s, 0).estimate, b.bennett.estimate, 1e-9);
  EXPECT_TRUE(std::isnan(thermodynamic_integration(s, 0).discretisation));
}

TEST(LadderEstimators, MbarSolvesItsEquations) {
  Random random(20260321);
  const LadderSamples s = sample({2, 1, 0.1}, {0, 0.01, 0.1, 1}, 2, 30, random);
  // The fixed-point iteration f_k = -log sum_n exp(-beta_k Delta_n) / sum_l draws exp(f_l - beta_l Delta_n).
  std::vector<double> f(4, 0.0);
  for (int i = 0; i < 20000; ++i) {
    std::vector<LogSum> sums(4);
    for (double d : s.delta) {
      LogSum mixture;
      for (int k = 0; k < 4; ++k) mixture.add(f[k] - s.ladder[k] * d);
      for (int k = 0; k < 4; ++k) sums[k].add(-s.ladder[k] * d - mixture.log());
    }
    for (int k = 0; k < 4; ++k) f[k] = -sums[k].log() + sums[0].log();
  }
  EXPECT_NEAR(mbar(s, 0).estimate, -f[3], 1e-8);
}

TEST(LadderEstimators, JackknifeIsThatOfTheEstimatorWithoutEachCopy) {
  Random random(20260322);
  const GaussianPath path{2, 1, 0.3};
  constexpr int kCopies = 20;
  const LadderSamples s = sample(path, path.barrier_ladder(5), kCopies, 50, random);
  for (const auto& [what, estimator] : kEstimators) {
    const Jackknife j = estimator(s, -7);
    ASSERT_EQ(j.left_out.size(), std::size_t(kCopies));
    for (int skip : {0, 7, kCopies - 1}) {
      LadderSamples rest{s.ladder, kCopies - 1, s.draws, {}};
      for (int c = 0; c < kCopies; ++c)
        for (int k = 0; k < s.levels(); ++k)
          if (c != skip) rest.delta.insert(rest.delta.end(), s.at(c, k).begin(), s.at(c, k).end());
      // One Newton step from the whole is not the root, but close beside the standard error.
      EXPECT_NEAR(j.left_out[skip], estimator(rest, -7).estimate, 1e-3 * j.se()) << what;
    }
  }
}

TEST(LadderEstimators, UnbiasedAndCovered) {
  const GaussianPath path{2, 1, 0.3};
  constexpr int kReplicates = 200, kCopies = 32, kDraws = 36;
  const std::vector<double> ladder = path.barrier_ladder(8);
  const double rule_error =
      thermodynamic_integration(mean_values(path, ladder), path.log_zeta).log_z.estimate - path.log_z;
  const double limit = testing::family_quantile(1e-3, 2 * 7);
  // Of the five, of the difference of two, of the drift between halves.
  std::vector<Coverage> coverage(7, Coverage(kCopies - 1));
  testing::RunningMean variance[5];
  Random random(20260323);
  for (int r = 0; r < kReplicates; ++r) {
    const LadderSamples s = sample(path, ladder, kCopies, kDraws, random, 3);
    std::vector<Jackknife> values;
    for (const auto& [what, estimator] : kEstimators) values.push_back(estimator(s, path.log_zeta));
    values[4] = values[4] + -rule_error;
    for (int k = 0; k < 5; ++k) {
      coverage[k].add(values[k].estimate, values[k].se(), path.log_z);
      variance[k].add(values[k].se() * values[k].se());
    }
    const Jackknife apart = values[3] - values[4];
    coverage[5].add(apart.estimate, apart.se(), 0);
    const LogZ drift = split_half_drift(bridge_stepping_stones(s.slice(0, kDraws / 2), path.log_zeta),
                                        bridge_stepping_stones(s.slice(kDraws / 2, kDraws), path.log_zeta));
    coverage[6].add(drift.estimate, drift.se, 0);
  }
  for (int k = 0; k < 7; ++k) {
    EXPECT_LT(std::abs(coverage[k].bias_z()), limit) << k;
    EXPECT_LT(std::abs(coverage[k].spread_z()), limit) << k;
  }
  EXPECT_LT(variance[3].mean(), variance[2].mean());
}

TEST(LadderEstimators, ForwardIsBelowAndBackwardAbove) {
  // Few draws and wide steps, so that the bias of either direction shows.
  const GaussianPath path{2, 1, 0.2};
  testing::RunningMean forward, backward;
  Random random(20260324);
  for (int r = 0; r < 400; ++r) {
    const LadderSamples s = sample(path, path.barrier_ladder(4), 2, 4, random);
    forward.add(forward_stepping_stones(s, path.log_zeta).estimate);
    backward.add(backward_stepping_stones(s, path.log_zeta).estimate);
  }
  EXPECT_LT(forward.z(path.log_z), -4);
  EXPECT_GT(backward.z(path.log_z), 4);
}

TEST(ThermodynamicIntegration, SaysHowMuchTheRuleAdds) {
  const GaussianPath path{2, 1, 0.3};
  for (const int steps : {7, 8, 16, 32}) {
    const ThermodynamicIntegration t =
        thermodynamic_integration(mean_values(path, path.barrier_ladder(steps)), path.log_zeta);
    const double error = t.log_z.estimate - path.log_z;
    EXPECT_NEAR(t.log_z.se(), 0, 1e-12);
    EXPECT_LT(error, 0);  // log z is convex: E Delta falls, and the trapezoid lies above it
    EXPECT_NEAR(t.discretisation / error, 1, steps % 2 == 0 ? 0.1 : 0.3) << steps;
  }
}

TEST(LadderSamples, Slices) {
  LadderSamples s{{0, 1}, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  EXPECT_EQ(s.at(1, 0)[2], 9);
  const LadderSamples part = s.slice(1, 3);
  EXPECT_EQ(part.draws, 2);
  EXPECT_EQ(part.delta, (std::vector<double>{2, 3, 5, 6, 8, 9, 11, 12}));
}

TEST(LadderEstimators, DrawsOutsideTheTargetsSupport) {
  // A quarter of the base's draws: Z loses that quarter.
  const double infinity = std::numeric_limits<double>::infinity();
  const LadderSamples s{{0, 1}, 2, 4, {0, 0, infinity, 0, 0, 0, 0, 0, 0, infinity, 0, 0, 0, 0, 0, 0}};
  EXPECT_NEAR(forward_stepping_stones(s, 0).estimate, std::log(0.75), 1e-14);
  EXPECT_NEAR(bridge_stepping_stones(s, 0).estimate, std::log(0.75), 1e-10);
  EXPECT_NEAR(mbar(s, 0).estimate, std::log(0.75), 1e-10);
}

}  // namespace
}  // namespace lockstep
