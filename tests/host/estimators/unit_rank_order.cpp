// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/rank_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace lockstep {
namespace {

TEST(RankOrder, SortsEveryRangeOfKeys) {
  // Few bits apart, whole range of doubles, ties, one value, infinities and both zeros.
  for (const double scale : {1e-300, 1e-9, 1.0, 1e300})
    for (const double offset : {0.0, 1.0}) {
      std::vector<double> values{-0.0, 0.0, INFINITY, -INFINITY, 5e-324, -5e-324, offset};
      std::mt19937_64 random(13);
      for (int i = 0; i < 3000; ++i) {
        const double uniform = static_cast<double>(random() >> 40) * 0x1p-24 - 0.5;
        values.push_back(offset + scale * (i % 2 == 0 ? uniform : std::round(4 * uniform)));
      }
      for (const std::size_t first : {0, 7}) {  // with and without the special values
        std::vector<Ranked> items, scratch;
        for (std::size_t i = first; i < values.size(); ++i)
          items.push_back({ordered_bits(values[i]), static_cast<std::uint32_t>(i)});
        radix_sort(items, scratch);
        ASSERT_EQ(items.size(), values.size() - first);
        std::vector<double> expected(values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
        std::sort(expected.begin(), expected.end());
        for (std::size_t i = 0; i < items.size(); ++i) {
          ASSERT_EQ(from_ordered_bits(items[i].key), expected[i]) << scale << " at " << i;
          ASSERT_EQ(values[items[i].index], expected[i]);
        }
      }
    }
  EXPECT_EQ(ordered_bits(-0.0), ordered_bits(0.0));
  std::vector<Ranked> one{{1, 0}}, scratch;
  radix_sort(one, scratch);
  EXPECT_EQ(one.front().key, 1U);
}

}  // namespace
}  // namespace lockstep
