// SPDX-License-Identifier: Apache-2.0
// What modes hold of a run's draws, and how well that is known.
#include "host/modes/mode_visits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep {
namespace {

ModeLibrary two_modes() {
  ModeLibrary library(1);
  for (const double place : {0.0, 10.0}) {
    Mode m;
    m.place = {place};
    m.factor = {1};
    library.add(m);
  }
  return library;
}

/// Chains that stay where a coin of .3 puts them for 20 draws: over runs, shares differ as their errors say.
TEST(ModeShares, ErrorsAreTheirSpread) {
  constexpr int kRuns = 300, kChains = 64, kStays = 20, kTimes = 5;
  const ModeLibrary library = two_modes();
  std::mt19937_64 random(5);
  std::bernoulli_distribution second(0.3);
  double square = 0, told = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<float> x;
    for (int time = 0; time < kTimes; ++time) {
      std::vector<float> of_chain;
      for (int c = 0; c < kChains; ++c) of_chain.push_back(second(random) ? 10.2f : 0.3f);
      for (int t = 0; t < kStays; ++t) x.insert(x.end(), of_chain.begin(), of_chain.end());
    }
    const auto shares = shares_of(library, {library, {x, {}, kChains}, 1}, NAN, 1);
    ASSERT_EQ(shares.size(), 2u);
    EXPECT_NEAR(shares[0].se, shares[1].se, 1e-12);  // what one has too much the other lacks
    const double off = shares[0].share - (shares[0].place[0] > 5 ? 0.3 : 0.7);
    square += off * off / kRuns;
    told += shares[0].se * shares[0].se / kRuns;
  }
  // The truth; and the mean of squares, whose relative sd is sqrt(2 / 300) for those seen and sqrt(2 / 31 / 300) for those told.
  const double variance = 0.3 * 0.7 / (kChains * kTimes);
  EXPECT_NEAR(square / variance, 1, 4 * std::sqrt(2.0 / kRuns));
  EXPECT_NEAR(told / variance, 1, 4 * std::sqrt(2.0 / 31 / kRuns));
  // Of a mode that none is in nothing is known.
  const std::vector<float> x(1000, 0.3f);
  for (const ModeShare& m : shares_of(library, {library, {x, {}, 50}, 1}, NAN, 1))
    EXPECT_TRUE(std::isnan(m.se)) << m.share;
  // Nor of few chains, which may have stayed where they began.
  std::vector<float> stay(1000, 0.3f);
  for (std::size_t i = 0; i < stay.size(); i += 10) stay[i] = 10.2f;
  for (const ModeShare& m : shares_of(library, {library, {stay, {}, 10}, 1}, NAN, 1))
    EXPECT_TRUE(std::isnan(m.se)) << m.share;
}

}  // namespace
}  // namespace lockstep
