// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace lockstep {

/// Bits of a double, rearranged to sort as the double does; -0 and 0 must tie, hence the addition.
inline std::uint64_t ordered_bits(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x + 0.0);
  return bits ^ ((bits >> 63) != 0 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

/// Inverse of ordered_bits.
inline double from_ordered_bits(std::uint64_t key) {
  return std::bit_cast<double>(key ^ ((key >> 63) != 0 ? std::uint64_t{1} << 63 : ~std::uint64_t{0}));
}

/// A value on its way to a rank.
struct Ranked {
  std::uint64_t key;    // ordered_bits of the value; equal keys are tied values
  std::uint32_t index;  // where the value came from
};

/// Sorts items, at least one, by key; tied items in no particular order. `scratch` is room to work in.
///
/// A radix sort by the upper 33 bits of the range of keys, in three digits, then each run of items that agree
/// in them by itself. Ranking is much of the cost of diagnostics, and std::sort takes several times as long.
inline void radix_sort(std::vector<Ranked>& items, std::vector<Ranked>& scratch) {
  constexpr int digit_bits = 11, num_digits = 3, num_values = 1 << digit_bits;
  const auto by_key = [](const Ranked& a, const Ranked& b) { return a.key < b.key; };
  const auto [lowest, highest] = std::minmax_element(items.begin(), items.end(), by_key);
  const std::uint64_t base = lowest->key;
  const int unsorted_bits = std::max(0, static_cast<int>(std::bit_width(highest->key - base)) - 33);
  const auto digit = [=](const Ranked& item, int d) {
    return ((item.key - base) >> (unsorted_bits + d * digit_bits)) & (num_values - 1);
  };
  std::array<std::array<std::uint32_t, num_values>, num_digits> start{};
  for (const Ranked& item : items)
    for (int d = 0; d < num_digits; ++d) ++start[d][digit(item, d)];
  scratch.resize(items.size());
  for (int d = 0; d < num_digits; ++d) {
    std::exclusive_scan(start[d].begin(), start[d].end(), start[d].begin(), std::uint32_t{0});
    for (const Ranked& item : items) scratch[start[d][digit(item, d)]++] = item;
    items.swap(scratch);
  }
  const auto prefix = [=](const Ranked& item) { return (item.key - base) >> unsorted_bits; };
  for (auto first = items.begin(), end = first; first != items.end(); first = end) {
    while (end != items.end() && prefix(*end) == prefix(*first)) ++end;
    if (end - first > 1 && unsorted_bits > 0) std::sort(first, end, by_key);
  }
}

}  // namespace lockstep
