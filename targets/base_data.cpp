// SPDX-License-Identifier: Apache-2.0
#include "targets/base_data.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "kernels/base.hpp"

namespace lockstep {

PlacedBase place_base(const UnitList& of_unit, const std::vector<std::uint32_t>& unit_of_chain, int dim,
                      int base) {
  PlacedBase placed;
  for (const auto& [unit, list] : of_unit)
    if (list.empty() || !(list[0] >= 1 && list[0] <= NormalMixture::kMost) ||
        list.size() != mixture_length(base, int(list[0]), dim))
      throw std::invalid_argument("the numbers of a base are those of 1 to 64 components");
  for (const std::uint32_t unit : unit_of_chain)
    if (!of_unit.empty() && of_unit.count(unit) == 0) throw std::invalid_argument("a unit has no base");
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
    if (placed.values.size() > std::size_t(std::numeric_limits<int>::max()))
      throw std::length_error("the bases of all units have 2^31 numbers or more");
    placed.places.insert(placed.places.end(), {int(at), one ? 1 : kTile});
  }
  return placed;
}

}  // namespace lockstep
