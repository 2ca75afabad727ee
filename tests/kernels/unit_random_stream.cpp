// SPDX-License-Identifier: Apache-2.0
// Streams of draws on the host: their words are Philox's, whatever was drawn before, from any stream.
#include "kernels/random_stream.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/support/statistics.hpp"

namespace {
using namespace lockstep;
using lockstep::testing::family_quantile;
using lockstep::testing::RunningMean;

constexpr StreamKey kKey{5, 6};

double uniform_of(std::uint32_t a, std::uint32_t b) {
  return (double((std::uint64_t(a) << 32 | b) >> 12) + 0.5) / double(1ull << 52);
}

TEST(RandomStreamTest, WordsAreThoseOfTheDocumentedCounter) {
  std::uint32_t first[4] = {10u << 24, 0, 8, 7}, second[4] = {(10u << 24) | 1, 0, 8, 7};
  philox(first, kKey);
  philox(second, kKey);
  RandomStream stream(Purpose::exact, kKey, (7ull << 32) | 8);
  EXPECT_EQ(stream.uniform(), uniform_of(first[0], first[1]));
  double x, y;
  Draw<double>::normals(first[2], first[3], x, y);
  EXPECT_EQ(stream.normal(), x);
  EXPECT_EQ(stream.uniform(),
            uniform_of(second[0], second[1]));  // of the next words; the second normal waits
  EXPECT_EQ(stream.normal(), y);
  EXPECT_EQ(stream.below(1000), std::size_t(1000 * uniform_of(second[2], second[3])));
}

/// From a Philox written apart, in Python.
TEST(RandomStreamTest, KnownAnswers) {
  RandomStream stream(Purpose::exact, StreamKey{}, 0);
  EXPECT_EQ(stream.uniform(), 0x1.4374b3c20778cp-3);  // words 286e9678 40ef1fc0 0af37e95 85b1322a
  EXPECT_NEAR(stream.normal(), 2.4862085748960414, 1e-14);
  EXPECT_NEAR(stream.normal(), 0.3496181064458857, 1e-14);
}

/// Beyond 2^20 blocks the iteration counts on: no words come twice.
TEST(RandomStreamTest, BlocksCarry) {
  RandomStream stream(Purpose::exact, kKey, 3);
  for (int i = 0; i < 2 << 20; ++i) stream.uniform();
  std::uint32_t w[4] = {10u << 24, 1, 3, 0};
  philox(w, kKey);
  EXPECT_EQ(stream.uniform(), uniform_of(w[0], w[1]));
}

TEST(RandomStreamTest, StreamsDoNotDependOnEachOther) {
  const auto three_of = [](std::uint64_t number) {
    RandomStream s(Purpose::exact, kKey, number);
    return std::vector<double>{s.normal(), s.uniform(), s.normal()};
  };
  std::vector<std::vector<double>> upwards, downwards(100);
  for (int i = 0; i < 100; ++i) upwards.push_back(three_of(std::uint64_t(i)));
  for (int i = 99; i >= 0; --i) downwards[std::size_t(i)] = three_of(std::uint64_t(i));
  EXPECT_EQ(upwards, downwards);
  EXPECT_EQ(std::set(upwards.begin(), upwards.end()).size(), 100u);
  EXPECT_NE(RandomStream(Purpose::bootstrap, kKey).uniform(), RandomStream(Purpose::exact, kKey).uniform());
}

/// Over 2^16 streams of eight draws: 13 tests at a family rate of 1e-3, and the same key ever after.
TEST(RandomStreamTest, MomentsWithinAndAcrossStreams) {
  RunningMean u[2], z[2], z2[2], z4, within, across, mixed, low, third, chosen;
  double last = 0;
  for (std::uint64_t number = 0; number < 1 << 16; ++number) {
    RandomStream s(Purpose::exact, kKey, number);
    for (auto& mean : u) mean.add(s.uniform());
    double v[2];
    for (int k = 0; k < 2; ++k) {
      v[k] = s.normal();
      z[k].add(v[k]);
      z2[k].add(v[k] * v[k]);
    }
    z4.add(std::pow(v[0], 4));
    within.add(v[0] * v[1]);
    across.add(v[0] * last);
    last = v[0];
    const double p = s.uniform();
    mixed.add((p - 0.5) * v[1]);
    low.add(p < 1e-3);
    third.add(p * p * p);
    const std::size_t i = s.below(7);
    ASSERT_LT(i, 7u);
    chosen.add(double(i));
  }
  const double limit = family_quantile(1e-3, 13);
  for (int k = 0; k < 2; ++k) {
    EXPECT_LT(std::abs(u[k].z(0.5)), limit);
    EXPECT_LT(std::abs(z[k].z(0)), limit);
    EXPECT_LT(std::abs(z2[k].z(1)), limit);
  }
  EXPECT_LT(std::abs(z4.z(3)), limit);
  EXPECT_LT(std::abs(within.z(0)), limit);
  EXPECT_LT(std::abs(across.z(0)), limit);
  EXPECT_LT(std::abs(mixed.z(0)), limit);
  EXPECT_LT(std::abs(low.z(1e-3)), limit);
  EXPECT_LT(std::abs(third.z(0.25)), limit);
  EXPECT_LT(std::abs(chosen.z(3)), limit);
}

}  // namespace
