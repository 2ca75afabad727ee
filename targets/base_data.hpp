// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the numbers of bases lie in memory (kernels/base.hpp).
#include "targets/engine.hpp"

namespace lockstep {

struct PlacedBase {
  std::vector<double> values;
  std::vector<int> places;  // [tile][first, step]
};

/// Once for all chains of a tile where they are of one unit; else beside one another, [number][chain of the tile], with
/// zeros behind the shorter ones. Throws std::invalid_argument where a list is none of this base in so many
/// dimensions, or some units have one and others none; std::length_error where there are 2^31 numbers or more.
PlacedBase place_base(const UnitList& of_unit, const std::vector<std::uint32_t>& unit_of_chain, int dim,
                      int base);

}  // namespace lockstep
