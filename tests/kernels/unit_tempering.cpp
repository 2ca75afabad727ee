// SPDX-License-Identifier: Apache-2.0
// Weights and draws of beta given x, in every lane type, against references in 60 digits and exact moments.
#include "kernels/tempering.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/elementary.hpp"
#include "tests/support/statistics.hpp"
#include "tests/support/tempering_references.hpp"

namespace lockstep {
namespace {

template <class L>
class TemperingLanes : public ::testing::Test {
 public:
  using T = scalar_t<L>;
  static constexpr bool kSingle = sizeof(T) == 4;
  static constexpr double kRelative = kSingle ? 5e-7 : 1e-14, kFloor = kSingle ? 1e-30 : 1e-290;

  static T first(L lanes) {
    alignas(64) T values[lane_width<L>];
    store(values, lanes);
    return values[0];
  }
  /// Both weights: relative where the exact value exceeds kFloor, absolute below.
  static void expect_weights(double delta, double expected1, double expected0) {
    L top, bottom;
    continuous_weights(L(T(delta)), top, bottom);
    for (const auto& [value, expected] :
         {std::pair(first(top), expected1), std::pair(first(bottom), expected0)})
      EXPECT_LE(std::abs(double(value) - expected), expected > kFloor ? kRelative * expected : kFloor)
          << "got " << value << ", not " << expected << ", at Delta = " << delta;
  }
  static double beta(double delta, double v) {
    return double(first(truncated_exponential(L(T(delta)), L(T(v)))));
  }
};
using Lanes = ::testing::Types<float, double, Pack<float, 16>, Pack<double, 8>>;
TYPED_TEST_SUITE(TemperingLanes, Lanes);

/// |Delta| from 1e-12 to 1e5, dense, both signs, as numbers of the type.
template <class T>
std::vector<double> sizes() {
  std::vector<double> all;
  for (double a = 1e-12; a < 1.0001e5; a *= 1.0007)
    for (const double delta : {a, -a}) all.push_back(double(T(delta)));
  return all;
}

TYPED_TEST(TemperingLanes, WeightsAgainstReferences) {
  if (!TestFixture::kSingle)
    for (const testing::TemperingReference& r : testing::tempering_references)
      TestFixture::expect_weights(r.delta, r.w1, r.w0);
  const bool wide = std::numeric_limits<long double>::digits >= 64;
  if (!TestFixture::kSingle && !wide) return;
  for (const double delta : sizes<scalar_t<TypeParam>>()) {
    const long double d = delta;
    TestFixture::expect_weights(delta, double(d / std::expm1(d)), double(-d / std::expm1(-d)));
  }
  TestFixture::expect_weights(0, 1, 1);
  TestFixture::expect_weights(-0.0, 1, 1);
}

TYPED_TEST(TemperingLanes, BetaAgainstReferences) {
  if (TestFixture::kSingle) return;
  for (const auto& [delta, v, expected] : testing::exponential_references) {
    const double a = std::abs(delta), near = delta > 0 ? expected : 1 - expected;
    // The product v expm1(-a) is rounded, which counts for more as v comes close to 1; below rates of 1e-7
    // beta is v, which is off by at most an eighth of the rate.
    const double share = -std::expm1(-a);
    const double tolerance = 2e-15 * (near + share / a / (1 - v * share)) + (a < 1e-7 ? a / 8 : 0);
    EXPECT_NEAR(TestFixture::beta(delta, v), expected, tolerance + (delta < 0 ? 2e-16 : 0))
        << "Delta " << delta << ", v " << v;
  }
}

TYPED_TEST(TemperingLanes, BetaStaysWithinTheIntervalAndIsMonotone) {
  using T = scalar_t<TypeParam>;
  for (const double delta : sizes<T>()) {
    double last = delta > 0 ? 0 : 1;
    for (const double v :
         {1e-30, 0x1p-24, 1e-5, 0.1, 0.5, 0.9, 1 - 0x1p-10, 1 - 0x1p-24}) {  // ends of the uniforms
      const double beta = TestFixture::beta(delta, v);
      ASSERT_TRUE(delta > 0 ? beta >= last && beta <= 1 : beta <= last && beta >= 0) << delta << " " << v;
      last = beta;
    }
  }
}

/// Mean and variance of the density exp(-beta delta) on [0, 1]; their textbook forms cancel at small rates,
/// where the first terms of their series serve.
double mean_of(double delta) {
  return std::abs(delta) < 1e-3 ? 0.5 - delta / 12 : 1 / delta - 1 / std::expm1(delta);
}
double variance_of(double delta) {
  const double half = 0.5 * delta, s = std::sinh(half);
  return std::abs(delta) < 1e-2 ? 1.0 / 12 - delta * delta / 240 : 1 / (delta * delta) - 1 / (4 * s * s);
}

const double kRates[] = {-1e4, -300, -20, -1, -1e-6, 0, 1e-6, 1e-3, 1, 20, 300, 1e4, 1e5};

TYPED_TEST(TemperingLanes, BetaHasItsMoments) {
  // Even midpoints in place of uniforms: the rule errs by about log(n) / n of the sd, at the long tail.
  constexpr int n = 200000;
  for (const double delta : kRates) {
    const double sd = std::sqrt(variance_of(delta));
    // 1 - beta loses digits in single precision where it is small: there the end at 0 is looked at.
    const bool mirrored = TestFixture::kSingle && delta < -20;
    double first = 0, second = 0;
    for (int i = 0; i < n; ++i) {
      const double v = (i + 0.5) / n;
      const double d = mirrored ? mean_of(-delta) - TestFixture::beta(-delta, v)
                                : TestFixture::beta(delta, v) - mean_of(delta);
      first += d / n;
      second += d * d / n;
    }
    EXPECT_NEAR(first / sd, 0, 1e-5) << delta;
    EXPECT_NEAR(second / (sd * sd), 1, 1e-3) << delta;
  }
}

TEST(TruncatedExponential, MomentsOfDraws) {
  constexpr int n = 100000;
  std::mt19937_64 random(20260301);
  const double limit = testing::family_quantile(1e-4, 2 * std::size(kRates));
  for (const double delta : kRates) {
    testing::RunningMean first, second;
    for (int i = 0; i < n; ++i) {
      const double v = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
      const double d = truncated_exponential(delta, v) - mean_of(delta);
      first.add(d);
      second.add(d * d);
    }
    EXPECT_LT(std::abs(first.z()), limit) << delta;
    EXPECT_LT(std::abs(second.z(variance_of(delta))), limit) << delta;
  }
}

}  // namespace
}  // namespace lockstep
