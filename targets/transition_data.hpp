// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the data of transitions lies in memory (kernels/transition.hpp).
#include <stdexcept>

#include "kernels/driver.hpp"
#include "targets/engine.hpp"

namespace lockstep {

struct PlacedLists {
  std::vector<double> values;
  std::vector<std::int32_t> places;  // [list][first, size][chain]
};

/// Of chains of these units. Throws std::length_error where there are 2^31 numbers or more.
PlacedLists place_lists(const std::vector<UnitList>& lists, const std::vector<std::uint32_t>& unit_of_chain);

/// The number of the first `count` transitions, and what data they have before the next one's.
TransitionPart data_before(const std::vector<const TransitionInfo*>& transitions, std::size_t count,
                           int rows);

/// The k-th transition of a spec, with its place and its settings. Throws std::invalid_argument where the spec has others
/// for it than it declares.
TransitionPart part_of(const EngineSpec& spec, std::size_t k, int rows);

/// The transitions of a spec, each with its place, for positions of so many rows. Throws std::invalid_argument where they
/// cannot follow one another in an iteration.
template <class Transition>
TransitionParts<Transition> compose(const EngineSpec& spec, const std::vector<const Transition*>& transitions,
                                    int rows) {
  if (transitions.size() > 16) throw std::invalid_argument("over 16 transitions in an iteration");
  TransitionParts<Transition> parts;
  for (const Transition* t : transitions) {
    if (t->self_ending && transitions.size() > 1)
      throw std::invalid_argument("a transition that ends when it sees fit is the only one of an iteration");
    parts.push_back({t, part_of(spec, parts.size(), rows)});
  }
  return parts;
}

}  // namespace lockstep
