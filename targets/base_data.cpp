// SPDX-License-Identifier: Apache-2.0
#include "targets/base_data.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace lockstep {

PlacedBase place_base(const UnitList& of_unit, const std::vector<std::uint32_t>& unit_of_chain) {
  PlacedBase placed;
  static const std::vector<double> none = {0};
  const auto numbers = [&](std::uint32_t unit) -> const std::vector<double>& {
    const auto found = of_unit.find(unit);
    return found == of_unit.end() ? none : found->second;
  };
  std::map<std::uint32_t, int> first;  // of units that have a tile of their own
  for (std::size_t c = 0; c < unit_of_chain.size(); c += kTile) {
    const std::uint32_t* unit = unit_of_chain.data() + c;
    const bool one = std::all_of(unit, unit + kTile, [&](std::uint32_t u) { return u == *unit; });
    if (one && first.count(*unit) > 0) {
      placed.places.insert(placed.places.end(), {first[*unit], 1});
      continue;
    }
    const std::size_t at = placed.values.size();
    if (at > std::size_t(std::numeric_limits<int>::max()))
      throw std::length_error("the bases of all units have 2^31 numbers or more");
    if (one) {
      first[*unit] = int(at);
      const auto& own = numbers(*unit);
      placed.values.insert(placed.values.end(), own.begin(), own.end());
    } else {
      std::size_t length = 0;
      for (int i = 0; i < kTile; ++i) length = std::max(length, numbers(unit[i]).size());
      placed.values.resize(at + length * kTile);
      for (int i = 0; i < kTile; ++i) {
        const auto& own = numbers(unit[i]);
        for (std::size_t k = 0; k < own.size(); ++k) placed.values[at + k * kTile + i] = own[k];
      }
    }
    placed.places.insert(placed.places.end(), {int(at), one ? 1 : kTile});
  }
  return placed;
}

}  // namespace lockstep
