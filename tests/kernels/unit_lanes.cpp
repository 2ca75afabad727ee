// SPDX-License-Identifier: Apache-2.0
// The closed list of lane operations: every pack does in each lane what the scalar does, NaN rules included.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/pack.hpp"
#include "kernels/rows.hpp"

namespace {
using namespace lockstep;

template <class T>
std::vector<T> interesting() {
  using limits = std::numeric_limits<T>;
  std::vector<T> v = {T(0),
                      T(-0.0),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(1.5),
                      T(2.5),
                      T(-2.5),
                      T(1) / 3,
                      T(1e10),
                      T(-3.7),
                      limits::max(),
                      limits::lowest(),
                      limits::min(),
                      limits::infinity(),
                      -limits::infinity(),
                      limits::quiet_NaN()};
  return v;
}

/// Equal bits, where any NaN equals any NaN.
template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class L>
class Lanes : public ::testing::Test {};
using PackTypes = ::testing::Types<Pack<float, 4>, Pack<float, 8>, Pack<float, 16>, Pack<float, 32>,
                                   Pack<double, 4>, Pack<double, 8>, Pack<double, 16>, Pack<double, 32>>;
TYPED_TEST_SUITE(Lanes, PackTypes);

TYPED_TEST(Lanes, EveryOperationEqualsTheScalarLaneByLane) {
  using L = TypeParam;
  using T = scalar_t<L>;
  constexpr int W = lane_width<L>;
  const auto values = interesting<T>();
  const int n = static_cast<int>(values.size());
  int next = 0;
  for (int start = 0; start < n * n; start += W) {
    T a[W], b[W], c[W], out[W];
    for (int i = 0; i < W; ++i) {
      const int pair = (start + i) % (n * n);
      a[i] = values[pair / n];
      b[i] = values[pair % n];
      c[i] = values[next++ % n];
    }
    const L x = load<L>(a), y = load<L>(b), z = load<L>(c);
    auto check = [&](const char* name, L result, auto scalar) {
      store(out, result);
      for (int i = 0; i < W; ++i)
        EXPECT_TRUE(same(out[i], scalar(a[i], b[i], c[i])))
            << name << "(" << a[i] << ", " << b[i] << ", " << c[i] << ") = " << out[i];
    };
    check("add", x + y, [](T p, T q, T) { return p + q; });
    check("subtract", x - y, [](T p, T q, T) { return p - q; });
    check("multiply", x * y, [](T p, T q, T) { return p * q; });
    check("divide", x / y, [](T p, T q, T) { return p / q; });
    check("negate", -x, [](T p, T, T) { return -p; });
    check("fma", lockstep::fma(x, y, z), [](T p, T q, T r) { return std::fma(p, q, r); });
    check("nfma", nfma(x, y, z), [](T p, T q, T r) { return std::fma(-p, q, r); });
    check("min", min(x, y), [](T p, T q, T) { return lockstep::min(p, q); });
    check("max", max(x, y), [](T p, T q, T) { return lockstep::max(p, q); });
    check("abs", abs(x), [](T p, T, T) { return std::fabs(p); });
    check("sqrt", lockstep::sqrt(x), [](T p, T, T) { return std::sqrt(p); });
    check("round", lockstep::round(x), [](T p, T, T) { return std::nearbyint(p); });
    check("floor", lockstep::floor(x), [](T p, T, T) { return std::floor(p); });
    const L one(T(1)), zero(T(0));
    check("<", select(x < y, one, zero), [](T p, T q, T) { return T(p < q); });
    check("<=", select(x <= y, one, zero), [](T p, T q, T) { return T(p <= q); });
    check(">", select(x > y, one, zero), [](T p, T q, T) { return T(p > q); });
    check(">=", select(x >= y, one, zero), [](T p, T q, T) { return T(p >= q); });
    check("select", select(x < y, x, z), [](T p, T q, T r) { return p < q ? p : r; });
    check("is_finite", select(is_finite(x), one, zero), [](T p, T, T) { return T(std::isfinite(p)); });
    check("mask_and", select(mask_and(x < y, y < z), one, zero),
          [](T p, T q, T r) { return T(p < q && q < r); });
    check("mask_not", select(mask_not(x < y), one, zero), [](T p, T q, T) { return T(!(p < q)); });
  }
}

TYPED_TEST(Lanes, AnyAndReduceMaxSeeEveryLane) {
  using L = TypeParam;
  using T = scalar_t<L>;
  constexpr int W = lane_width<L>;
  EXPECT_FALSE(any(L(T(0)) > T(0)));
  for (int i = 0; i < W; ++i) {
    T v[W] = {};
    v[i] = T(3);
    EXPECT_TRUE(any(load<L>(v) > T(0))) << i;
    EXPECT_EQ(reduce_max(load<L>(v)), T(3)) << i;
  }
}

/// NaN must be false in each comparison, and the second operand of min and max; the Metropolis step builds on
/// it.
template <class T>
void scalar_nan_rules() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  EXPECT_FALSE(nan < T(0) || nan > T(0) || nan <= nan || nan >= nan);
  EXPECT_EQ(lockstep::min(nan, T(2)), T(2));
  EXPECT_TRUE(std::isnan(lockstep::min(T(2), nan)));
  EXPECT_EQ(lockstep::max(nan, T(2)), T(2));
  EXPECT_TRUE(std::isnan(lockstep::max(T(2), nan)));
  EXPECT_FALSE(is_finite(nan));
  EXPECT_FALSE(is_finite(std::numeric_limits<T>::infinity()));
}
TEST(LanesScalar, NanRules) {
  scalar_nan_rules<float>();
  scalar_nan_rules<double>();
}

TEST(LanesScalar, CastsRoundAsTheLanguageDoes) {
  double d[8] = {1.0 / 3, 1e300, -1e-50, std::nan(""), 0, -0.0, 16777217.0, -2.5};
  float f[8];
  store(f, cast<Pack<float, 8>>(load<Pack<double, 8>>(d)));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(same(f[i], static_cast<float>(d[i]))) << i;
  double back[8];
  store(back, cast<Pack<double, 8>>(load<Pack<float, 8>>(f)));
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(same(back[i], static_cast<double>(f[i]))) << i;
  const auto mask = load<Pack<double, 8>>(d) > 0.1;
  store(f, select(cast_mask<Pack<float, 8>>(mask), Pack<float, 8>(1.0f), Pack<float, 8>(0.0f)));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(f[i], d[i] > 0.1 ? 1.0f : 0.0f) << i;
}

template <class L, class Stored>
void rows_convert() {
  using T = scalar_t<L>;
  constexpr int W = lane_width<L>;
  std::vector<Stored> memory(3 * kTile, Stored(-7));
  Rows<L, Stored> rows{memory.data() + 0, kTile};
  T v[W], out[W];
  for (int i = 0; i < W; ++i) v[i] = T(1) / T(i + 3);
  rows.from(1).set(1, load<L>(v));
  for (int i = 0; i < 3 * kTile; ++i) {
    const bool written = i >= 2 * kTile && i < 2 * kTile + W;
    EXPECT_EQ(memory[i], written ? static_cast<Stored>(v[i - 2 * kTile]) : Stored(-7)) << i;
  }
  store(out, rows[2]);
  for (int i = 0; i < W; ++i) EXPECT_EQ(out[i], static_cast<T>(static_cast<Stored>(v[i])));
}
TEST(Rows, StoreAndReadInEitherPrecision) {
  rows_convert<float, float>();
  rows_convert<double, float>();
  rows_convert<Pack<float, 16>, float>();
  rows_convert<Pack<double, 16>, float>();
  rows_convert<Pack<double, 4>, float>();
  rows_convert<Pack<float, 32>, double>();
  rows_convert<Pack<double, 8>, double>();
}
TEST(Rows, LocalsAreIndexedAlike) {
  Locals<double, 4> local{};
  const auto view = local.view();
  view.from(1).set(2, 5.0);
  EXPECT_EQ(view[3], 5.0);
  EXPECT_EQ(local.v[3], 5.0);
}
TEST(Rows, ExtentPrefersTheCompileTimeDimension) {
  EXPECT_EQ(extent<2>(7), 2);
  EXPECT_EQ(extent<0>(7), 7);
}

}  // namespace
