// SPDX-License-Identifier: Apache-2.0
// Random numbers: known answers, agreement with Random123's own header, extremes of uniforms and normals.
#include "kernels/philox.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "tests/support/statistics.hpp"

namespace {
using namespace lockstep;
using Words = std::array<std::uint32_t, 4>;

Words ours(Words c, StreamKey key) {
  std::uint32_t w[4] = {c[0], c[1], c[2], c[3]};
  philox(w, key);
  return {w[0], w[1], w[2], w[3]};
}

Words random123(Words c, StreamKey key) {
  const philox4x32_ctr_t counter = {{c[0], c[1], c[2], c[3]}};
  const philox4x32_key_t k = {{key.k0, key.k1}};
  const philox4x32_ctr_t r = philox4x32(counter, k);
  return {r.v[0], r.v[1], r.v[2], r.v[3]};
}

/// Philox on a pack of W different counters, one to a lane.
template <int W>
std::vector<Words> pack_philox(const std::vector<Words>& counters, StreamKey key) {
  using I = Pack<std::uint32_t, W>;
  std::vector<Words> out(counters.size());
  for (std::size_t first = 0; first < counters.size(); first += W) {
    std::uint32_t rows[4][W];
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < W; ++i) rows[r][i] = counters[first + i][r];
    I w[4] = {load<I>(rows[0]), load<I>(rows[1]), load<I>(rows[2]), load<I>(rows[3])};
    philox(w, key);
    for (int r = 0; r < 4; ++r) store(rows[r], w[r]);
    for (int r = 0; r < 4; ++r)
      for (int i = 0; i < W; ++i) out[first + i][r] = rows[r][i];
  }
  return out;
}

std::vector<Words> random_counters(int count) {
  std::mt19937 random(11);
  std::vector<Words> c(count);
  for (Words& w : c)
    for (auto& v : w) v = static_cast<std::uint32_t>(random());
  c[0] = {0, 0, 0, 0};
  c[1] = {~0u, ~0u, ~0u, ~0u};
  c[2] = {0, ~0u, 0x80000000u, 0x7fffffffu};
  return c;
}

TEST(Philox, PublishedKnownAnswers) {
  // Salmon et al., Random123's kat_vectors for philox4x32 with 10 rounds.
  EXPECT_EQ(ours({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  EXPECT_EQ(ours({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(ours({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

TEST(Philox, AgreesWithRandom123OnEveryLaneType) {
  const auto counters = random_counters(4096);
  for (StreamKey key : {StreamKey{42, 0}, StreamKey{0xdeadbeefu, 0x12345678u}, StreamKey{~0u, ~0u}}) {
    std::vector<Words> expected;
    for (const Words& c : counters) expected.push_back(random123(c, key));
    for (std::size_t i = 0; i < counters.size(); ++i) ASSERT_EQ(ours(counters[i], key), expected[i]) << i;
    EXPECT_EQ(pack_philox<4>(counters, key), expected);
    EXPECT_EQ(pack_philox<8>(counters, key), expected);
    EXPECT_EQ(pack_philox<16>(counters, key), expected);
    EXPECT_EQ(pack_philox<32>(counters, key), expected);
  }
}

TEST(Philox, PurposesKeepTheirNumbers) {
  // Append only: a line here never changes.
  const std::map<Purpose, std::uint32_t> numbers = {
      {Purpose::start, 0},        {Purpose::momentum, 1}, {Purpose::accept, 2},
      {Purpose::trajectory, 3},   {Purpose::select, 4},   {Purpose::proposal, 5},
      {Purpose::resample, 6},     {Purpose::scout, 7},    {Purpose::scout_momentum, 8},
      {Purpose::scout_accept, 9}, {Purpose::exact, 10},   {Purpose::bootstrap, 11},
      {Purpose::pseudo_start, 12}};
  EXPECT_EQ(numbers.size(), 13u);
  for (const auto& [purpose, number] : numbers) EXPECT_EQ(static_cast<std::uint32_t>(purpose), number);
}

TEST(Philox, KeysOfRunsDifferAndStay) {
  constexpr StreamKey key = make_stream_key(1, "mixture20");
  static_assert(key.k0 != 0 || key.k1 != 0);
  std::set<std::pair<std::uint32_t, std::uint32_t>> keys;
  for (std::uint64_t seed : {0ull, 1ull, 2ull, 1ull << 32, ~0ull})
    for (const char* label : {"", "a", "b", "ab", "ba", "a PE N=2"}) {
      const StreamKey k = make_stream_key(seed, label);
      keys.insert({k.k0, k.k1});
    }
  EXPECT_EQ(keys.size(), 30u);
}

/// The words of a draw are those of the documented counter, for every lane by its own chain and unit.
TEST(Philox, CounterIsPurposeBlockIterationChainUnit) {
  using L = Pack<float, 8>;
  std::uint32_t chain[8], unit[8], out[8];
  for (std::uint32_t i = 0; i < 8; ++i) {
    chain[i] = 100 + 7 * i;
    unit[i] = 3 * i;
  }
  const StreamKey key{5, 6};
  const Draw<L> draw{key, 77, load_int<L>(chain), load_int<L>(unit)};
  Pack<std::uint32_t, 8> w[4];
  draw.words(Purpose::proposal, 9, w);
  for (int r = 0; r < 4; ++r) {
    store(out, w[r]);
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(out[i], random123({(5u << 24) | 9u, 77, chain[i], unit[i]}, key)[r]);
  }
}

template <class T>
class Draws : public ::testing::Test {};
using LaneTypes = ::testing::Types<float, double, Pack<float, 4>, Pack<float, 8>, Pack<float, 16>,
                                   Pack<float, 32>, Pack<double, 4>, Pack<double, 8>, Pack<double, 16>>;
TYPED_TEST_SUITE(Draws, LaneTypes);

template <class L>
double first_lane(L a) {
  scalar_t<L> v[lane_width<L>];
  store(v, a);
  return static_cast<double>(v[0]);
}

TYPED_TEST(Draws, UniformIsInTheOpenInterval) {
  using L = TypeParam;
  using I = int_lane_t<L>;
  EXPECT_EQ(first_lane(Draw<L>::uniform(I(0u))), 0.5 / 8388608);
  EXPECT_EQ(first_lane(Draw<L>::uniform(I(~0u))), 1 - 0.5 / 8388608);
  EXPECT_LT(first_lane(Draw<L>::uniform(I(~0u))), 1);
  EXPECT_GT(first_lane(Draw<L>::uniform(I(0u))), 0);
  EXPECT_NEAR(first_lane(Draw<L>::uniform(I(0x80000000u))), 0.5, 1e-7);
}

TYPED_TEST(Draws, NormalsAreFiniteAtEveryExtreme) {
  using L = TypeParam;
  using I = int_lane_t<L>;
  double largest = 0;
  for (std::uint32_t a : {0u, 1u, 2u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, ~0u})
    for (std::uint32_t b : {0u, 1u, 0x3fffffffu, 0x40000000u, 0x7fffffffu, 0x80000000u, 0xc0000000u, ~0u}) {
      L x, y;
      Draw<L>::normals(I(a), I(b), x, y);
      ASSERT_TRUE(std::isfinite(first_lane(x)) && std::isfinite(first_lane(y))) << a << " " << b;
      largest = std::max({largest, std::abs(first_lane(x)), std::abs(first_lane(y))});
    }
  EXPECT_GT(largest, 6.6);
  EXPECT_LT(largest, 6.7);
}

/// The normals of one lane do not depend on the lane type of its precision beyond a rounding, and not at all
/// on the width of the pack (the scalar lanes take the C library's functions).
TEST(NormalDraws, PackWidthsAgreeBitForBit) {
  auto all = []<class L>(std::type_identity<L>) {
    constexpr int W = lane_width<L>;
    std::vector<scalar_t<L>> out;
    for (std::uint32_t first = 0; first < 64; first += W) {
      std::uint32_t chain[W];
      for (int i = 0; i < W; ++i) chain[i] = first + i;
      const Draw<L> draw{{1, 2}, 3, load_int<L>(chain), int_lane_t<L>(4u)};
      std::vector<L> z(7);
      draw.normals(Purpose::momentum, 7, [&](int k, L v) { z[k] = v; });
      z.push_back(draw.uniform(Purpose::accept));
      for (int i = 0; i < W; ++i)
        for (const L& v : z) {
          scalar_t<L> s[W];
          store(s, v);
          out.push_back(s[i]);
        }
    }
    return out;
  };
  const auto f8 = all(std::type_identity<Pack<float, 8>>());
  EXPECT_EQ(all(std::type_identity<Pack<float, 4>>()), f8);
  EXPECT_EQ(all(std::type_identity<Pack<float, 16>>()), f8);
  EXPECT_EQ(all(std::type_identity<Pack<float, 32>>()), f8);
  const auto d8 = all(std::type_identity<Pack<double, 8>>());
  EXPECT_EQ(all(std::type_identity<Pack<double, 4>>()), d8);
  EXPECT_EQ(all(std::type_identity<Pack<double, 16>>()), d8);
  const auto f1 = all(std::type_identity<float>());
  const auto d1 = all(std::type_identity<double>());
  for (std::size_t i = 0; i < f8.size(); ++i) {
    EXPECT_NEAR(f1[i], f8[i], 4e-6);
    EXPECT_NEAR(d1[i], d8[i], 4e-15);
    EXPECT_NEAR(d1[i], f8[i], 1e-5);
  }
}

/// Moments of 2^20 normals and uniforms, and no correlation between neighbours of a block. 11 tests at a
/// family rate of 1e-3; the seed is fixed.
TEST(NormalDraws, MomentsOfNormalsAndUniforms) {
  using namespace lockstep::testing;
  using L = Pack<float, 16>;
  RunningMean z[4], z2[4], pair, z4, u;
  for (std::uint32_t iteration = 0; iteration < 16384; ++iteration) {
    std::uint32_t chain[16];
    for (std::uint32_t i = 0; i < 16; ++i) chain[i] = i;
    const Draw<L> draw{{9, 9}, iteration, load_int<L>(chain), int_lane_t<L>(0u)};
    float v[4][16], w[16];
    draw.normals(Purpose::momentum, 4, [&](int k, L a) { store(v[k], a); });
    store(w, draw.uniform(Purpose::accept));
    for (int i = 0; i < 16; ++i) {
      for (int k = 0; k < 4; ++k) {
        z[k].add(v[k][i]);
        z2[k].add(v[k][i] * v[k][i]);
      }
      pair.add(v[0][i] * v[1][i]);
      z4.add(std::pow(v[0][i], 4));
      u.add(w[i]);
    }
  }
  const double limit = family_quantile(1e-3, 11);
  for (int k = 0; k < 4; ++k) {
    EXPECT_LT(std::abs(z[k].z(0)), limit);
    EXPECT_LT(std::abs(z2[k].z(1)), limit);
  }
  EXPECT_LT(std::abs(pair.z(0)), limit);
  EXPECT_LT(std::abs(z4.z(3)), limit);
  EXPECT_LT(std::abs(u.z(0.5)), limit);
}

}  // namespace
