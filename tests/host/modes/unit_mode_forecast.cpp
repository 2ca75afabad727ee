// SPDX-License-Identifier: Apache-2.0
// Ends of descents that the gradient foretells.
#include "host/modes/mode_forecast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/LU>

#include "host/modes/mode_search.hpp"
#include "targets/banana.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {
using testing::MemoryInput;
template <class Definition>
using Case = testing::SearchCase<Definition>;

/// In twelve dimensions a Student t with 5 degrees of freedom (twelve normals of one shape), weight .75, at the origin, and a
/// normal of standard deviation .8 at (4, 4, ..).
MemoryInput in_a_heavy_tail() {
  constexpr int kDim = 12;
  // sqrt(5 / q), q quantiles of chi^2 with 5 degrees of freedom
  std::vector<double> sds = {2.24, 1.66, 1.43, 1.28, 1.17, 1.08, 1.0, 0.93, 0.86, 0.79, 0.71, 0.59, 0.8};
  std::vector<double> means(12 * kDim, 0.0), weights(12, 0.75 / 12);
  means.insert(means.end(), kDim, 4.0);
  weights.push_back(0.25);
  MemoryInput in;
  in.arrays["means"] = {means, {13, kDim}};
  in.arrays["weights"] = {weights, {13}};
  in.arrays["sds"] = {sds, {13}};
  return in;
}

// Seen from a few starts in 10^5 alone. Descents down a heavy tail are long, and there were too few of them.
TEST(ModeSearch, FindsWhatHidesInAHeavyTail) {
  Case<MixtureTarget> c(in_a_heavy_tail());
  const SearchResult r = search_modes(c.context, 0, {.gradients = 1e6});
  EXPECT_EQ(r.library.size(), 2);
  EXPECT_GT(r.foretold, 0.9 * r.starts);
  EXPECT_LT(r.gradients, 1e6);
}

// Ends that are no ellipse's are not foretold, and cost what they did but for the trial.
TEST(ModeSearch, ForetellsNothingOfWhatIsBent) {
  Case<BananaTarget> c;
  const SearchResult r = search_modes(c.context, 0, {.gradients = 1e5});
  EXPECT_LT(r.foretold, 0.1 * r.starts);
  Case<GaussianTarget> one;  // every gradient leads there: all but the first round
  EXPECT_GT(search_modes(one.context, 0, {.gradients = 1e5}).foretold, 0.5 * 2048);
}

TEST(ModeForecast, IsByTheGradientInTheModesMetricAndBelievedOnceItCameTrue) {
  ModeLibrary modes(2);
  for (const double at : {0.0, 10.0}) {
    Mode m;
    m.place = {at, 0};
    m.factor = {2, 0, 1, 0.5};
    modes.add(m);
  }
  const Eigen::Matrix2d l = (Eigen::Matrix2d() << 2, 0, 1, 0.5).finished();
  const Eigen::Vector2d from(3, 4), second(10, 0);
  PointEngine::Rows x(2, 3), gradient(2, 3);
  x << 3, 3, 3, 4, 4, 4;
  gradient.col(0) = -0.01 * (l * l.transpose()).inverse() * from;  // of any elliptical density, this flat
  gradient.col(1) = (l * l.transpose()).inverse() * (second - from);
  gradient.col(2) = -from;  // to the first in another metric
  // In the metric of a mode that is narrow along one axis, at a small angle to the way, but past the mode.
  ModeLibrary narrow(2);
  Mode thin;
  thin.place = {0, 0};
  thin.factor = {1, 0, 0, 1e-3};
  narrow.add(thin);
  const Eigen::Vector2d beside = -Eigen::Vector2d(3 - 40, 4 * 1e6);  // to a mode at (40, 0) of the same shape
  EXPECT_GT(narrow.aims(0, from, beside).cosine[0], 0.999);
  EXPECT_GT(narrow.aims(0, from, beside).miss[0], 30);
  ModeForecast forecast;
  EXPECT_THAT(forecast.of(modes, x, gradient, 1), ::testing::ElementsAre(0, 1, -1));
  EXPECT_EQ(forecast.share(), 0);  // nothing is believed yet
  for (int n = 0; n < 9; ++n) forecast.came(1, true);
  EXPECT_FALSE(forecast.believed(1));
  forecast.came(1, true);
  EXPECT_TRUE(forecast.believed(1));
  EXPECT_NEAR(forecast.share(), 1 / 3., 1e-12);
  EXPECT_FALSE(forecast.believed(0));
  forecast.came(1, false);
  EXPECT_TRUE(forecast.believed(1));
  forecast.came(1, false);
  EXPECT_FALSE(forecast.believed(1));
  forecast.keep({1});
  forecast.came(0, true);
  for (int n = 0; n < 8; ++n) forecast.came(0, true);
  EXPECT_TRUE(forecast.believed(0));
}

}  // namespace
}  // namespace lockstep
