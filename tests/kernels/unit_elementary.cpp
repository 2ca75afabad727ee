// SPDX-License-Identifier: Apache-2.0
// Elementary functions of the packs against the C library in higher precision: at most 2 units in the last
// place in either precision (3 for log1p and log_sigmoid), same bits at every width, edges as stated.
#include "kernels/elementary.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace {
using namespace lockstep;

template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// Distance of `got` from `exact` in units in the last place of T at `exact`.
template <class T>
double ulps(T got, Wide<T> exact) {
  const T nearest = static_cast<T>(exact);
  if (got == nearest || (std::isnan(got) && std::isnan(nearest))) {
    if (!std::isfinite(got)) return 0;
  }
  if (!std::isfinite(got) || !std::isfinite(nearest)) return std::numeric_limits<double>::infinity();
  const T scale = std::max(std::fabs(nearest), std::numeric_limits<T>::min());
  const T ulp = std::nextafter(scale, std::numeric_limits<T>::infinity()) - scale;
  return static_cast<double>(std::fabs(static_cast<Wide<T>>(got) - exact) / static_cast<Wide<T>>(ulp));
}

/// f of every x, computed on packs of L.
template <class L, class F>
std::vector<scalar_t<L>> apply(const std::vector<scalar_t<L>>& x, F f) {
  constexpr std::size_t W = lane_width<L>;
  std::vector<scalar_t<L>> in = x, out;
  in.resize((x.size() + W - 1) / W * W, scalar_t<L>(0.5));
  out.resize(in.size());
  for (std::size_t i = 0; i < in.size(); i += W) store(&out[i], f(load<L>(&in[i])));
  out.resize(x.size());
  return out;
}

template <class T>
std::vector<T> uniform_points(T low, T high, int count) {
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> u(low, high);
  std::vector<T> x = {low, high};
  for (int i = 0; i < count; ++i) x.push_back(static_cast<T>(u(random)));
  return x;
}
/// Points of either sign (or positive only) with exponents spread over [low, high] powers of two.
template <class T>
std::vector<T> exponent_points(int low, int high, bool negative, int count) {
  std::mt19937_64 random(19);
  std::uniform_real_distribution<double> m(1, 2);
  std::uniform_int_distribution<int> e(low, high), sign(0, 1);
  std::vector<T> x;
  for (int i = 0; i < count; ++i) {
    const T v = std::ldexp(static_cast<T>(m(random)), e(random));
    x.push_back(negative && sign(random) ? -v : v);
  }
  return x;
}
template <class T>
std::vector<T> joined(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Holds f to `exact` within `limit` ulps at x, and every width to the same bits.
template <class T, class F, class Exact>
void expect_accurate(const char* name, const std::vector<T>& x, double limit, F f, Exact exact) {
  const auto r = apply<Pack<T, 8>>(x, f);
  double worst = 0;
  T at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = ulps(r[i], exact(static_cast<Wide<T>>(x[i])));
    if (d > worst) {
      worst = d;
      at = x[i];
    }
  }
  EXPECT_LE(worst, limit) << name << " at " << at;
  ::testing::Test::RecordProperty(std::string(name) + (sizeof(T) == 4 ? "_float_ulps" : "_double_ulps"),
                                  std::to_string(worst));
  auto same = [&](const std::vector<T>& other, int width) {
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(std::memcmp(&other[i], &r[i], sizeof(T)), 0) << name << " at " << x[i] << ", width " << width;
  };
  same(apply<Pack<T, 4>>(x, f), 4);
  same(apply<Pack<T, 16>>(x, f), 16);
  same(apply<Pack<T, 32>>(x, f), 32);
}

constexpr int kPoints = 100000;
template <class T>
inline constexpr int kLowest = std::numeric_limits<T>::min_exponent;  // -125, -1021
template <class T>
inline constexpr int kHighest = std::numeric_limits<T>::max_exponent - 1;

template <class T>
class Elementary : public ::testing::Test {};
using Scalars = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Elementary, Scalars);

TYPED_TEST(Elementary, Exp2) {
  using T = TypeParam;
  auto x = joined(uniform_points<T>(kExp2Low<T>, kExp2High<T>, kPoints), uniform_points<T>(-1, 1, kPoints));
  x = joined(x, exponent_points<T>(kLowest<T>, 5, true, kPoints));
  for (int n = -126; n <= 127; ++n)
    for (T d : {T(0), T(0.5), T(-0.5)}) x.push_back(std::clamp(T(n) + d, kExp2Low<T>, kExp2High<T>));
  expect_accurate<T>(
      "exp2", x, 2, [](auto a) { return exp2(a); }, [](Wide<T> a) { return std::exp2(a); });
}
TYPED_TEST(Elementary, Exp) {
  using T = TypeParam;
  // Half a unit inside the clamp, which is rounded to T.
  const T low = std::nextafter(T(kExp2Low<T> * T(kLn2)), T(0)),
          high = std::nextafter(T(kExp2High<T> * T(kLn2)), T(0));
  auto x = joined(uniform_points<T>(low, high, kPoints), uniform_points<T>(-1, 1, kPoints));
  x = joined(x, exponent_points<T>(kLowest<T>, 5, true, kPoints));
  expect_accurate<T>(
      "exp", x, 2, [](auto a) { return exp(a); }, [](Wide<T> a) { return std::exp(a); });
}
TYPED_TEST(Elementary, Log) {
  using T = TypeParam;
  auto x = joined(exponent_points<T>(kLowest<T> - 1, kHighest<T>, false, kPoints),
                  uniform_points<T>(0.5, 2, kPoints));
  x = joined(x, uniform_points<T>(0.999, 1.001, kPoints));
  x = joined(x, {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(1), T(2), T(0.5)});
  expect_accurate<T>(
      "log", x, 2, [](auto a) { return log(a); }, [](Wide<T> a) { return std::log(a); });
}
TYPED_TEST(Elementary, Log1p) {
  using T = TypeParam;
  auto x = joined(exponent_points<T>(kLowest<T>, -1, true, kPoints), uniform_points<T>(-0.99, 3, kPoints));
  x = joined(x, exponent_points<T>(0, kHighest<T>, false, kPoints));
  expect_accurate<T>(
      "log1p", x, 3, [](auto a) { return log1p(a); }, [](Wide<T> a) { return std::log1p(a); });
}
TYPED_TEST(Elementary, LogSigmoid) {
  using T = TypeParam;
  // Above about 87 (float) the exact value leaves the normal range: exp is clamped there.
  const T high = sizeof(T) == 4 ? T(85) : T(700);
  auto x = joined(uniform_points<T>(-1000, high, kPoints), uniform_points<T>(-10, 10, kPoints));
  expect_accurate<T>(
      "log_sigmoid", x, 3, [](auto a) { return log_sigmoid(a); },
      [](Wide<T> a) { return std::min(a, Wide<T>(0)) - std::log1p(std::exp(-std::fabs(a))); });
}
TYPED_TEST(Elementary, SinCosPi) {
  using T = TypeParam;
  const auto x = uniform_points<T>(-1, 1, 2 * kPoints);
  const Wide<T> pi = 3.141592653589793238462643383279502884L;
  // Reduced to the nearest quarter turn before the multiplication, which long double would round too.
  auto exact = [&](Wide<T> a, bool sine) {
    const int q = static_cast<int>(std::nearbyint(2 * a));
    const Wide<T> r = pi * (a - Wide<T>(q) / 2);
    const int turn = ((q + (sine ? 0 : 1)) % 4 + 4) % 4;
    const Wide<T> v = turn % 2 ? std::cos(r) : std::sin(r);
    return turn >= 2 ? -v : v;
  };
  expect_accurate<T>(
      "sinpi", x, 2,
      [](auto a) {
        auto s = a, c = a;
        sincospi(a, s, c);
        return s;
      },
      [&](Wide<T> a) { return exact(a, true); });
  expect_accurate<T>(
      "cospi", x, 2,
      [](auto a) {
        auto s = a, c = a;
        sincospi(a, s, c);
        return c;
      },
      [&](Wide<T> a) { return exact(a, false); });
}

TYPED_TEST(Elementary, SinCosPiAtQuarterTurns) {
  using T = TypeParam;
  const std::vector<T> x = {-1, -0.5, 0, 0.5, 1};
  const auto s = apply<Pack<T, 8>>(x, [](auto a) {
    auto u = a, v = a;
    sincospi(a, u, v);
    return u;
  });
  const auto c = apply<Pack<T, 8>>(x, [](auto a) {
    auto u = a, v = a;
    sincospi(a, u, v);
    return v;
  });
  const std::vector<T> sine = {0, -1, 0, 1, 0}, cosine = {-1, 0, 1, 0, -1};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(s[i], sine[i]) << x[i];
    EXPECT_EQ(c[i], cosine[i]) << x[i];
  }
}

/// What the header states for arguments outside the ranges above.
TYPED_TEST(Elementary, Edges) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  const T inf = limits::infinity(), nan = limits::quiet_NaN(), tiny = limits::denorm_min();
  const std::vector<T> x = {nan,   inf,   -inf,  T(0),          T(-0.0),         tiny,
                            -tiny, T(-1), T(-2), limits::max(), limits::lowest()};
  const auto e2 = apply<Pack<T, 8>>(x, [](auto a) { return exp2(a); });
  const auto e = apply<Pack<T, 8>>(x, [](auto a) { return exp(a); });
  for (const auto* r : {&e2, &e}) {
    EXPECT_TRUE(std::isnan((*r)[0]));
    for (int k : {1, 9})
      EXPECT_NEAR((*r)[k] / std::ldexp(T(1), int(kExp2High<T>)), 1, 1e-3);  // clamped, finite
    for (int k : {2, 10}) {
      EXPECT_GE((*r)[k], T(0));
      EXPECT_LE((*r)[k], T(1.001) * limits::min());
    }
    for (int k : {3, 4, 5, 6}) EXPECT_EQ((*r)[k], T(1));
  }
  EXPECT_EQ(e2[7], T(0.5));
  const auto l = apply<Pack<T, 8>>(x, [](auto a) { return log(a); });
  EXPECT_TRUE(std::isnan(l[0]));
  EXPECT_EQ(l[1], inf);
  for (int k : {2, 7, 8, 10}) EXPECT_TRUE(std::isnan(l[k])) << x[k];
  for (int k : {3, 4, 5}) EXPECT_EQ(l[k], -inf) << x[k];
  const auto p = apply<Pack<T, 8>>(x, [](auto a) { return log1p(a); });
  EXPECT_TRUE(std::isnan(p[0]));
  EXPECT_TRUE(std::isnan(p[2]));
  for (int k : {3, 4, 5, 6}) EXPECT_EQ(p[k], x[k]);
  EXPECT_EQ(p[7], -inf);
  EXPECT_TRUE(std::isnan(p[8]));
  const auto g = apply<Pack<T, 8>>(x, [](auto a) { return log_sigmoid(a); });
  EXPECT_TRUE(std::isnan(g[0]));
  EXPECT_NEAR(g[1], 0, 2 * limits::min());
  EXPECT_EQ(g[2], -inf);
  EXPECT_NEAR(g[3], -std::log(2.0), 1e-7);
  EXPECT_EQ(g[10], limits::lowest());
}

/// Lanes do not see their neighbours: one NaN stays in its lane.
TYPED_TEST(Elementary, NanStaysInItsLane) {
  using T = TypeParam;
  std::vector<T> x(16, T(0.3));
  const auto clean = apply<Pack<T, 16>>(x, [](auto a) { return exp(log(a)); });
  x[5] = std::numeric_limits<T>::quiet_NaN();
  const auto r = apply<Pack<T, 16>>(x, [](auto a) { return exp(log(a)); });
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(i == 5 ? std::isnan(r[i]) : r[i] == clean[i]) << i;
}

/// The scalar lanes are the C library's.
TYPED_TEST(Elementary, ScalarLanes) {
  using T = TypeParam;
  T s, c;
  lockstep::sincospi(T(0.25), s, c);
  const T close = 4 * std::numeric_limits<T>::epsilon();
  EXPECT_NEAR(s, std::sqrt(T(0.5)), close);
  EXPECT_NEAR(c, std::sqrt(T(0.5)), close);
  EXPECT_NEAR(lockstep::exp(T(1)), std::exp(T(1)), close * 3);
  EXPECT_NEAR(lockstep::exp2(T(0.5)), std::sqrt(T(2)), close);
  EXPECT_NEAR(lockstep::log(T(3)), std::log(T(3)), close);
  EXPECT_NEAR(lockstep::log1p(T(1e-3)), std::log1p(T(1e-3)), close);
  EXPECT_NEAR(log_sigmoid(T(-2)), -std::log1p(std::exp(T(2))), 4 * close);
}

}  // namespace
