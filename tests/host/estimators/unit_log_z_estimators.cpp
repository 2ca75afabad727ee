// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/log_z_estimators.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "host/estimators/annealed_weights.hpp"
#include "host/estimators/pe_evidence.hpp"
#include "host/estimators/schedules.hpp"
#include "kernels/tempering.hpp"
#include "tests/support/gaussian_path.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using testing::Coverage;
using testing::GaussianPath;
using Random = std::mt19937_64;

double uniform(Random& random) { return std::uniform_real_distribution<double>()(random); }

/// Draws at given inverse temperatures by a chain: exact at each, and correlated from one to the next.
class Chain {
 public:
  Chain(const GaussianPath& path, double correlation, Random& random)
      : path_(path), correlation_(correlation), random_(random), z_(path.dim) {
    for (double& v : z_) v = normal_(random_);
  }
  double delta(double beta) {
    double square = 0;
    for (double& v : z_) {
      v = correlation_ * v + std::sqrt(1 - correlation_ * correlation_) * normal_(random_);
      square += v * v;
    }
    return path_.delta(square / path_.precision(beta));
  }

 private:
  const GaussianPath& path_;
  double correlation_;
  Random& random_;
  std::vector<double> z_;
  std::normal_distribution<double> normal_;
};

/// The weights of the ends of one draw, as the kernels find them: of continuous tempering, and of simulated
/// tempering on a ladder with weights.
void add_continuous(EndpointEvidence& to, int block, double delta) {
  double top, bottom;
  continuous_weights(delta, top, bottom);
  to.add(block, top, bottom);
}
struct Levels {
  std::vector<double> beta, log_weight, step = std::vector<double>(beta.size(), 1.0);
  void add(EndpointEvidence& to, int block, double delta) const {
    double step_size, top, bottom;
    draw_level(Ladder{beta.data(), log_weight.data(), step.data(), int(beta.size())}, delta, 0.5, step_size,
               top, bottom);
    to.add(block, top, bottom);
  }
  double log_prior() const { return log_weight.front() - log_weight.back(); }
};

// ---- exact identities

TEST(LogZIdentities, FlatEnergyGivesExactlyZero) {
  SteppingStones stones({0, 0.3, 1}, 4);
  EndpointEvidence continuous(4), simulated(4);
  const Levels levels{{0, 0.3, 1}, {0, 0, 0}};
  for (int k = 0; k < 40; ++k) {
    stones.add(k % 4, k / 39.0, 0);
    add_continuous(continuous, k % 4, 0);
    levels.add(simulated, k % 4, 0);
  }
  for (const Jackknife& j : {stones.value(0), continuous.value(0), simulated.value(0)}) {
    EXPECT_EQ(j.estimate, 0);
    EXPECT_EQ(j.se(), 0);
  }
}

TEST(LogZIdentities, EqualDeltasHaveNoError) {
  for (double delta : {3.0, -3.0, 600.0, -600.0}) {
    SteppingStones stones({0, 0.1, 0.3, 1}, 4);
    EndpointEvidence continuous(4), simulated(4);
    const Levels levels{{0, 0.3, 1}, {0, 5, 7}};
    for (int k = 0; k < 40; ++k) {
      stones.add(k % 4, k / 39.0, delta);
      add_continuous(continuous, k % 4, delta);
      levels.add(simulated, k % 4, delta);
    }
    for (const Jackknife& j :
         {stones.value(2), continuous.value(2), simulated.value(2, levels.log_prior())}) {
      EXPECT_NEAR(j.estimate, 2 - delta, 1e-12 * std::abs(delta));
      EXPECT_NEAR(j.se(), 0, 1e-11 * std::abs(delta));
    }
  }
}

TEST(LogZIdentities, OneStepIsImportanceSampling) {
  const std::vector<double> delta = {0.3, -2, 1.5, 8, INFINITY};
  std::vector<double> weights;
  SteppingStones stones({0, 1}, 5);
  EndpointEvidence simulated(5);
  const Levels levels{{0, 1}, {600, 0}};  // so large a weight: every draw is one of the base
  for (int k = 0; k < 5; ++k) {
    weights.push_back(-delta[k]);
    stones.add(k, 0, delta[k]);
    if (k < 4) levels.add(simulated, k, delta[k]);
  }
  const double expected = std::log((std::exp(-0.3) + std::exp(2) + std::exp(-1.5) + std::exp(-8)) / 5);
  EXPECT_NEAR(summarise_weights(weights).log_mean.estimate, expected, 1e-14);
  EXPECT_NEAR(stones.value(1).estimate, 1 + expected, 1e-14);
  simulated.add(4, 0, 1);  // outside the support
  EXPECT_NEAR(simulated.value(1, levels.log_prior()).estimate, 1 + expected, 1e-12);
  SteppingStones reverse({0, 1}, 4);
  for (int k = 0; k < 4; ++k) reverse.add(k, 1, delta[k]);
  EXPECT_NEAR(reverse.value(1).estimate,
              1 - std::log((std::exp(0.3) + std::exp(-2) + std::exp(1.5) + std::exp(8)) / 4), 1e-14);
}

TEST(LogZIdentities, ContinuousTemperingIsThePseudoExtendedOneWithoutWeights) {
  EndpointEvidence continuous(8);
  PseudoExtendedEvidence extended(0, 8);
  Random random(20260310);
  for (int k = 0; k < 400; ++k) {
    const double delta = 60 * (uniform(random) - 0.5);
    add_continuous(continuous, k % 8, delta);
    extended.add(k % 8, 1, delta);
  }
  EXPECT_NEAR(continuous.value(2).estimate, extended.value(2).estimate, 1e-12);
  EXPECT_NEAR(continuous.value(2).value().se, extended.value(2).se, 1e-12);
}

// ---- bookkeeping of the stepping stones

TEST(SteppingStones, EdgesServeBothNeighbours) {
  SteppingStones stones({0, 0.5, 1}, 2);
  stones.add(0, 0.5, 3);
  // Left: 1 / exp(0.5 Delta); right: exp(-0.5 Delta) / 1.
  EXPECT_NEAR(stones.value(0).estimate, -3, 1e-14);
  EXPECT_TRUE(std::isnan(stones.value(0).se()));  // nothing without the first block
}

TEST(SteppingStones, EmptyBinsGiveNoEstimate) {
  SteppingStones stones({0, 0.2, 0.4, 0.6, 1}, 2);
  for (int b = 0; b < 2; ++b) {
    stones.add(b, 0, 1);
    stones.add(b, 0.3, 1);
    stones.add(b, 1, 1);
    stones.add(b, NAN, 1);
    stones.add(b, -0.1, 1);
    stones.add(b, 1.1, 1);
  }
  EXPECT_TRUE(std::isnan(stones.value(0).estimate));
  stones.add(1, 0.5, 1);
  EXPECT_NEAR(stones.value(0).estimate, -1, 1e-14);
  EXPECT_TRUE(std::isnan(stones.value(0).se()));  // the bin lives on one block
  stones.add(0, 0.5, 1);
  EXPECT_NEAR(stones.value(0).se(), 0, 1e-14);
  stones.add(0, 0, INFINITY);  // outside the target's support
  EXPECT_TRUE(std::isfinite(stones.value(0).estimate));
  stones.add(0, 0.5, NAN);
  EXPECT_TRUE(std::isnan(stones.value(0).estimate));
}

TEST(SteppingStones, CountsAreMultiplicities) {
  SteppingStones counted({0, 0.3, 1}, 2), repeated({0, 0.3, 1}, 2);
  for (int b = 0; b < 2; ++b)
    for (double beta : {0.1, 0.7}) {
      counted.add(b, beta, 1.5 + b, std::log(3));
      counted.add(b, beta, -2);
      for (int k = 0; k < 3; ++k) repeated.add(b, beta, 1.5 + b);
      repeated.add(b, beta, -2);
    }
  EXPECT_NEAR(counted.value(0).estimate, repeated.value(0).estimate, 1e-14);
  EXPECT_NEAR(counted.value(0).se(), repeated.value(0).se(), 1e-14);
}

// ---- unbiasedness and coverage, by exact draws

constexpr int kReplicates = 200, kBlocks = 64;
/// Every coverage test below is two z-tests; together they may raise a false alarm once in 1000 seeds.
const double kLimit = testing::family_quantile(1e-3, 2 * 9);

void expect_covered(const Coverage& coverage, const char* what) {
  EXPECT_LT(std::abs(coverage.bias_z()), kLimit) << what;
  EXPECT_LT(std::abs(coverage.spread_z()), kLimit) << what;
}

TEST(SteppingStones, RightForEveryMarginalOfBeta) {
  const GaussianPath path{2, 1, 0.3};
  const std::vector<double> edges = path.barrier_ladder(8);
  const std::vector<double> levels = path.barrier_ladder(16);
  const std::pair<const char*, std::function<double(Random&)>> marginals[] = {
      {"flat", [](Random& r) { return uniform(r); }},
      {"flat in the barrier", [&](Random& r) { return path.at_barrier(uniform(r)); }},
      {"joint with a flat prior", [&](Random& r) { return path.draw_beta(r); }},
      {"levels, some of them edges", [&](Random& r) { return levels[r() % 17]; }},
      {"crowded at the target", [](Random& r) { return std::pow(uniform(r), 0.7); }}};
  Random random(20260312);
  for (const auto& [what, draw] : marginals) {
    Coverage coverage(kBlocks - 1);
    for (int r = 0; r < kReplicates; ++r) {
      SteppingStones stones(edges, kBlocks);
      for (int b = 0; b < kBlocks; ++b) {
        Chain chain(path, 0.8, random);
        for (int i = 0; i < 200; ++i) {
          const double beta = draw(random);
          stones.add(b, beta, chain.delta(beta));
        }
      }
      const Jackknife v = stones.value(path.log_zeta);
      ASSERT_LT(v.se(), 0.3) << what;
      coverage.add(v.estimate, v.se(), path.log_z);
    }
    expect_covered(coverage, what);
  }
}

TEST(ContinuousTempering, UnbiasedAndCovered) {
  const GaussianPath path{2, 1, 0.3};
  Random random(20260313);
  Coverage coverage(kBlocks - 1), difference(kBlocks - 1), drift(kBlocks - 1);
  for (int r = 0; r < kReplicates; ++r) {
    SteppingStones stones(path.barrier_ladder(8), kBlocks);
    std::vector<EndpointEvidence> parts(3, EndpointEvidence(kBlocks));  // halves, and all
    for (int b = 0; b < kBlocks; ++b) {
      Chain chain(path, 0.8, random);
      for (int i = 0; i < 200; ++i) {
        const double beta = path.draw_beta(random), delta = chain.delta(beta);
        add_continuous(parts[i / 100], b, delta);
        add_continuous(parts[2], b, delta);
        stones.add(b, beta, delta);
      }
    }
    const LogZ moved = split_half_drift(parts[0].value(path.log_zeta), parts[1].value(path.log_zeta));
    drift.add(moved.estimate, moved.se * std::sqrt((kBlocks - 3.0) / (kBlocks - 1)), 0);
    const Jackknife j = parts[2].value(path.log_zeta);
    coverage.add(j.estimate, j.se(), path.log_z);
    // The two estimators share their draws.
    const Jackknife apart = j - stones.value(path.log_zeta);
    difference.add(apart.estimate, apart.se(), 0);
  }
  expect_covered(coverage, "log Z");
  expect_covered(difference, "difference to the stepping stones");
  expect_covered(drift, "split-half drift");
}

TEST(SimulatedTempering, UnbiasedAndCovered) {
  const GaussianPath path{2, 1, 0.3};
  const std::vector<double> ladder = path.barrier_ladder(8);
  std::vector<double> log_weights, level;  // weights learned in part only
  for (std::size_t k = 0; k < ladder.size(); ++k) {
    log_weights.push_back(-path.log_normaliser(ladder[k]) + 0.4 * std::sin(double(k)));
    level.push_back(std::exp(log_weights[k] + path.log_normaliser(ladder[k])));
  }
  const Levels levels{ladder, log_weights};
  std::discrete_distribution<int> draw(level.begin(), level.end());
  Random random(20260314);
  Coverage coverage(kBlocks - 1);
  for (int r = 0; r < kReplicates; ++r) {
    EndpointEvidence evidence(kBlocks);
    for (int b = 0; b < kBlocks; ++b) {
      Chain chain(path, 0.8, random);
      for (int i = 0; i < 100; ++i) levels.add(evidence, b, chain.delta(ladder[draw(random)]));
    }
    const Jackknife v = evidence.value(path.log_zeta, levels.log_prior());
    coverage.add(v.estimate, v.se(), path.log_z);
  }
  expect_covered(coverage, "log Z");
}

// ---- the bins

TEST(SteppingStones, BarrierBinsWhereEqualWidthFails) {
  const GaussianPath path{2, 1, 0.034};
  Random random(20260316);
  // Errors by width, by barrier, by barrier with beta flat in it, of the weights w0 and w1.
  testing::RunningMean errors[4];
  for (int r = 0; r < kReplicates; ++r) {
    SteppingStones width(linear_ladder(16), 16), barrier(path.barrier_ladder(16), 16), flat = barrier;
    EndpointEvidence weights(16);
    for (int i = 0; i < 8192; ++i) {
      const double beta = path.draw_beta(random), delta = path.draw(beta, random);
      width.add(i % 16, beta, delta);
      barrier.add(i % 16, beta, delta);
      add_continuous(weights, i % 16, delta);
      const double other = path.at_barrier(uniform(random));
      flat.add(i % 16, other, path.draw(other, random));
    }
    const Jackknife values[] = {width.value(path.log_zeta), barrier.value(path.log_zeta),
                                flat.value(path.log_zeta), weights.value(path.log_zeta)};
    for (int k = 0; k < 4; ++k) errors[k].add(values[k].estimate - path.log_z);
  }
  const auto sd = [&](int k) { return std::sqrt(errors[k].variance()); };
  EXPECT_GT(errors[0].mean(), 0.5);
  EXPECT_GT(errors[0].z(), 10);
  for (int k : {1, 2, 3}) EXPECT_LT(std::abs(errors[k].z()), testing::family_quantile(1e-4, 3)) << k;
  EXPECT_LT(sd(1), 0.5);
  EXPECT_LT(sd(2), 0.5 * sd(1));
}

}  // namespace
}  // namespace lockstep
