// SPDX-License-Identifier: Apache-2.0
// Tails into which trajectories do not get: what they may hold is in the errors.
#include "host/runs/lost_ends.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDraws = 64000;

/// Draws of P(f > x) = x^-3, x > 1, that end where a five-hundredth is left, beside a normal; of the farthest that there are,
/// twice as many, a third is lost.
struct Cut {
  std::vector<double> values;
  std::vector<char> lost;
  double mean = 0, second = 0;  // of f, as seen
  explicit Cut(std::uint64_t seed, double sign = 1) : lost(kDraws) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<> uniform;
    std::normal_distribution<> normal;
    for (std::size_t i = 0; i < kDraws; ++i) {
      const double beyond = 0.002 + 0.998 * uniform(random), f = std::pow(beyond, -1.0 / 3);
      values.insert(values.end(), {normal(random), sign * f});
      lost[i] = beyond < 0.006 && uniform(random) < 1 / 3.0;
      mean += f / kDraws, second += f * f / kDraws;
    }
  }
};

TEST(LostEnds, HoldWhatIsMissing) {
  // E f = 3/2 and E f^2 = 3; what is missing is by the integrals beyond the end.
  for (const std::uint64_t seed : {1, 2, 3})
    for (const double sign : {1.0, -1.0}) {
      const Cut cut(seed, sign);
      const LostEnds found = lost_ends(cut.values, cut.lost, 2, 2);
      const MomentErrors& ends = found.least;
      EXPECT_EQ(found.of, 1u);
      EXPECT_LT(found.largest, kMostOfEnd);
      ASSERT_EQ(ends.mean.size(), 2u);
      EXPECT_GT(1.5 - cut.mean, 0.01);
      for (const auto& [told, missing] :
           {std::pair(ends.mean[1], 1.5 - cut.mean), std::pair(ends.second[1], 3 - cut.second)}) {
        EXPECT_GT(told, missing / 3);
        EXPECT_LT(told, missing * 3);
      }
      EXPECT_EQ(ends.mean[0], 0) << "no more of a normal's farthest draws are lost than of others";
      EXPECT_TRUE(ends.quantity.empty());
      const MomentErrors of_quantity = lost_ends(cut.values, cut.lost, 1, 2).least;
      ASSERT_EQ(of_quantity.quantity.size(), 1u);
      EXPECT_EQ(of_quantity.quantity[0], ends.mean[1]);
    }
}

TEST(LostEnds, AreNoneWhereTrajectoriesAreLostAnywhere) {
  Cut cut(4);
  std::mt19937_64 random(5);
  for (const double share : {0.02, 0.2, 0.3}) {
    std::bernoulli_distribution lost(share);
    for (char& one : cut.lost) one = lost(random);
    const LostEnds ends = lost_ends(cut.values, cut.lost, 2, 1);
    EXPECT_LT(ends.largest, 0.001);
    EXPECT_THAT(ends.least.mean, ::testing::Each(::testing::Lt(share < 0.1 ? 1e-12 : 0.01)));
  }
  cut.lost.assign(kDraws, 0);
  EXPECT_TRUE(lost_ends(cut.values, cut.lost, 2, 1).least.mean.empty());
  EXPECT_TRUE(lost_ends({}, {}, 0, 1).least.mean.empty());
}

TEST(LostEnds, AreOfTrajectoriesThatOnlyTheirEnergyRejects) {
  for (const auto& [sampler, alone, beside] : {std::tuple("hmc", true, true),
                                               {"nuts", true, true},
                                               {"pe", true, true},
                                               {"wormhole", true, false},
                                               {"wormhole_metric", true, false},
                                               {"mala", false, false},
                                               {"rwm", false, false}}) {
    const TransitionInfo& transition =
        *sampler_config(testing::run_of({.target = "gaussian", .sampler = sampler}), 10, {}).transition;
    EXPECT_EQ(loses_by_energy(transition, 1), alone) << sampler;
    EXPECT_EQ(loses_by_energy(transition, 2), beside) << sampler << ", where wormholes refuse too";
  }
}

// What stands at the same place is in an end as a whole, whichever chain it is of; what is nowhere has none.
TEST(LostEnds, TakeTiesTogether) {
  std::vector<double> values(kDraws, 0.0);
  std::vector<char> lost(kDraws, 0);
  std::fill_n(values.begin(), 1000, 1.0);
  std::fill_n(lost.begin(), 100, 1);  // a tenth of them
  EXPECT_THAT(lost_ends(values, lost, 1, 1).least.mean, ::testing::ElementsAre(0.0));
  std::fill_n(lost.begin(), 300, 1);
  EXPECT_NEAR(lost_ends(values, lost, 1, 1).least.mean[0], 1000.0 / kDraws * (1 - 1000.0 / kDraws), 1e-12);
  values[0] = INFINITY;
  EXPECT_THAT(lost_ends(values, lost, 1, 1).least.mean, ::testing::ElementsAre(0.0));
  EXPECT_THAT(lost_ends(std::vector<double>(kDraws, 0.1), lost, 1, 1).least.mean,
              ::testing::ElementsAre(0.0));
}

TEST(LostEnds, AreSaidWhereErrorsGrow) {
  const auto target = build_target(
      testing::run_of({.target = "gaussian", .sampler = "hmc", .target_settings = {{"dim", 2}}}));
  const Cut cut(6);
  const LostEnds found = lost_ends(cut.values, cut.lost, 2, 1);
  const MomentErrors& ends = found.least;
  WeightedMoments m;
  m.mean_se = m.mean_unscaled_se = m.second_se = {0.004, 0.004};
  std::vector<std::string> failed;
  const std::string said = judge_ends(failed, found, m, *target);
  EXPECT_THAT(said, ::testing::HasSubstr("farthest draws of x[1] are lost"));
  EXPECT_THAT(said, ::testing::HasSubstr("raise sampler.target_acceptance"));
  EXPECT_THAT(failed, ::testing::IsEmpty());
  EXPECT_EQ(m.mean_se[0], 0.004);
  EXPECT_EQ(m.mean_se[1], ends.mean[1]);
  EXPECT_EQ(m.second_se[1], ends.second[1]);
  EXPECT_EQ(judge_ends(failed, found, m, *target), "");
}

// Where a wall keeps chains out of a part, what is seen of it says nothing of how much that is.
TEST(LostEnds, ThatAreTooLargeFail) {
  const auto target = build_target(
      testing::run_of({.target = "gaussian", .sampler = "hmc", .target_settings = {{"dim", 1}}}));
  std::vector<double> values(kDraws);
  std::iota(values.begin(), values.end(), 0.0);
  for (const double share : {0.05, 0.09}) {
    std::vector<char> lost(kDraws, 0);
    for (std::size_t i = 0; i < std::size_t(share * kDraws); i += 4) lost[kDraws - 1 - i] = 1;
    WeightedMoments m;
    m.mean_se = m.mean_unscaled_se = m.second_se = {1e9};
    std::vector<std::string> failed;
    const std::string said = judge_ends(failed, lost_ends(values, lost, 1, 1), m, *target);
    EXPECT_EQ(failed.size(), share > kMostOfEnd ? 1u : 0u);
    if (share > kMostOfEnd) {
      EXPECT_EQ(failed, std::vector<std::string>{"ends"});
      EXPECT_THAT(said, ::testing::HasSubstr("have not come into what lies beyond"));
    }
  }
}

}  // namespace
}  // namespace lockstep
