// SPDX-License-Identifier: Apache-2.0
#include "host/runs/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {
using namespace lockstep;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// The ends that CmdStan prints or its manual gives: 75 | 25, 50, 100, .. | 50, and shares of shorter warm-ups.
TEST(MetricWindows, AreStans) {
  EXPECT_THAT(stan_windows(1000).ends, ElementsAre(100, 150, 250, 450, 950));
  EXPECT_EQ(stan_windows(1000).first, 75);
  EXPECT_THAT(stan_windows(500).ends, ElementsAre(100, 150, 250, 450));
  EXPECT_THAT(stan_windows(150).ends, ElementsAre(100));
  EXPECT_THAT(stan_windows(100).ends, ElementsAre(90));
  EXPECT_EQ(stan_windows(100).first, 15);
  for (const int short_one : {0, 1, 19}) EXPECT_THAT(stan_windows(short_one).ends, IsEmpty());
  for (int n = 20; n < 3000; n += 7) {  // the last ends where step sizes are left to adapt
    const MetricWindows w = stan_windows(n);
    EXPECT_EQ(w.ends.back(), n < 150 ? n - n / 10 : n - 50) << n;
    EXPECT_TRUE(w.within(w.first));
    EXPECT_FALSE(w.within(w.first - 1));
    EXPECT_FALSE(w.within(w.ends.back()));
    EXPECT_TRUE(w.end(w.ends.back()));
  }
}

TEST(MetricWindows, DoubleFromAQuarterOrFrom75On) {
  EXPECT_THAT(doubling_windows(1000).ends, ElementsAre(75, 150, 300, 600));
  EXPECT_THAT(doubling_windows(200).ends, ElementsAre(50, 100));
  EXPECT_THAT(doubling_windows(0).ends, IsEmpty());
  EXPECT_TRUE(doubling_windows(1000).within(0));
}

TEST(Window, ItsCovarianceIsShrunkAsStans) {
  Window window(1, 2, true);
  const std::vector<double> position = {1, 2, 3, 6, 0, 1, -1, 4};  // [axis][chain]
  window.add(position, 4, 1);
  const double n = 4, shrink = n / (n + 5), add = 1e-3 * 5 / (n + 5);
  const auto covariance = window.covariance(0);
  EXPECT_NEAR(window.mean(0, 0), 3, 1e-12);
  EXPECT_NEAR(covariance(0, 0), shrink * 3.5 + add, 1e-12);
  EXPECT_NEAR(covariance(0, 1), shrink * (0 + 2 - 3 + 24 - 12) / 4.0, 1e-12);
}

}  // namespace
