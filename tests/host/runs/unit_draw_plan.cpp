// SPDX-License-Identifier: Apache-2.0
#include "host/runs/draw_plan.hpp"

#include <gtest/gtest.h>

#include <set>

#include "host/options/options.hpp"

namespace lockstep {
namespace {

TEST(DrawPlan, WholeStretchesOfFourChainsOrMore) {
  const DrawPlan usual = plan_draws(1000, 256, 1000, 1);
  EXPECT_EQ(usual.chains, (std::vector<int>{0, 64, 128, 192}));
  EXPECT_EQ(usual.window, 250);
  const DrawPlan few = plan_draws(1000, 3, 100000, 1);
  EXPECT_EQ(few.chains, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(few.window, 333);
  const DrawPlan shorter = plan_draws(1000, 256, 20, 1);  // fifty chains make as many
  EXPECT_EQ(shorter.chains.size(), 50u);
  EXPECT_EQ(shorter.window, 20);
  const DrawPlan small = plan_draws(2, 256, 1000, 1);
  EXPECT_EQ(small.chains.size() * small.window, 2u);
  const DrawPlan all = plan_draws(kAllDraws, 7, 50, 3);
  EXPECT_EQ(all.chains.size(), 7u);
  EXPECT_EQ(all.window, 50);
  EXPECT_TRUE(plan_draws(0, 7, 50, 3).chains.empty());
  for (const std::int64_t most : {1, 3, 10, 999, 12345})
    for (const int chains : {1, 3, 5, 100})
      for (const std::int64_t length : {1, 7, 400}) {
        const DrawPlan plan = plan_draws(most, chains, length, 1);
        EXPECT_LE(std::int64_t(plan.chains.size()) * plan.window, most);
        EXPECT_GE(plan.window, 1);
        EXPECT_EQ(std::set<int>(plan.chains.begin(), plan.chains.end()).size(), plan.chains.size());
        EXPECT_LT(plan.chains.back(), chains);
      }
}

/// However a run is cut into launches, the last draws of a window are the last of those that it makes.
TEST(DrawPlan, LaunchesStoreTheLastOfTheWindow) {
  for (const std::int64_t thin : {1, 3, 7})
    for (const std::int64_t window : {1, 5, 40, 1000})
      for (const int capacity : {1, 4, 64}) {
        const DrawPlan plan{{0}, window, thin};
        std::vector<std::uint32_t> stored;
        std::uint32_t t = 0;
        for (const std::uint32_t end : {10u, 11u, 64u, 100u, 300u, 301u}) {
          while (t < end) {
            LaunchSpec launch;
            launch.begin = t;
            launch.end = end;
            const int count = place_draws(plan, capacity, launch);
            EXPECT_LE(count, capacity);
            int seen = 0;
            for (std::uint32_t i = launch.begin; i < launch.end; ++i) {
              const int since = int(i - launch.begin) - launch.store_from;
              if (since < 0 || since % launch.thin != 0) continue;
              stored.push_back(i);
              ++seen;
            }
            EXPECT_EQ(seen, count);
            ASSERT_GT(launch.end, t);
            t = launch.end;
          }
          // At any end: the last `window` multiples of thin.
          const std::uint32_t last = (end - 1) / thin * thin;
          const std::size_t made = last / thin + 1, kept = std::min<std::size_t>(made, window);
          ASSERT_GE(stored.size(), kept);
          for (std::size_t k = 0; k < kept; ++k)
            ASSERT_EQ(stored[stored.size() - 1 - k], last - k * thin) << thin << " " << window << " " << end;
        }
      }
}

}  // namespace
}  // namespace lockstep
