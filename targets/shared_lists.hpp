// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the lists that the chains of a unit share lie in memory (kernels/rows.hpp, SharedLists).
#include "targets/engine.hpp"

namespace lockstep {

struct PlacedLists {
  std::vector<double> values;
  std::vector<std::int32_t> places;  // [list][first, size][chain]
};

/// Of chains of these units. Throws std::length_error where there are 2^31 numbers or more.
PlacedLists place_lists(const std::vector<UnitList>& lists, const std::vector<std::uint32_t>& unit_of_chain);

}  // namespace lockstep
