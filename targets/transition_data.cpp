// SPDX-License-Identifier: Apache-2.0
#include "targets/transition_data.hpp"

namespace lockstep {

PlacedLists place_lists(const std::vector<UnitList>& lists, const std::vector<std::uint32_t>& unit_of_chain) {
  PlacedLists placed;
  const std::size_t chains = unit_of_chain.size();
  placed.places.resize(2 * lists.size() * chains);
  for (std::size_t k = 0; k < lists.size(); ++k) {
    std::map<std::uint32_t, std::size_t> first;
    for (const auto& [unit, numbers] : lists[k]) {
      first[unit] = placed.values.size();
      placed.values.insert(placed.values.end(), numbers.begin(), numbers.end());
    }
    if (placed.values.size() > std::size_t(std::numeric_limits<std::int32_t>::max()))
      throw std::length_error("the lists that chains share have 2^31 numbers or more");
    for (std::size_t c = 0; c < chains; ++c) {
      const auto of = lists[k].find(unit_of_chain[c]);
      if (of == lists[k].end()) continue;
      placed.places[2 * k * chains + c] = std::int32_t(first[of->first]);
      placed.places[(2 * k + 1) * chains + c] = std::int32_t(of->second.size());
    }
  }
  return placed;
}

TransitionPart data_before(const std::vector<const TransitionInfo*>& transitions, std::size_t count,
                           int rows) {
  TransitionPart all{.number = std::uint32_t(count)};
  for (std::size_t k = 0; k < count; ++k) {
    for (const TransitionField& field : transitions[k]->fields) all.field += field.rows(rows);
    all.counter += int(transitions[k]->counters.size());
    all.list += int(transitions[k]->shared.size());
  }
  return all;
}

TransitionPart part_of(const EngineSpec& spec, std::size_t k, int rows) {
  const auto transitions = transitions_of(spec);
  TransitionPart part = data_before(transitions, k, rows);
  std::vector<double> settings;
  if (k < spec.settings.size()) settings = spec.settings[k];
  if (settings.empty())
    for (const TransitionSetting& s : transitions[k]->settings) settings.push_back(s.standard);
  if (settings.size() > std::size(part.settings))
    throw std::invalid_argument(transitions[k]->name + " declares over 8 settings");
  if (settings.size() != transitions[k]->settings.size())
    throw std::invalid_argument(transitions[k]->name + " has other settings");
  std::copy(settings.begin(), settings.end(), part.settings);
  return part;
}

}  // namespace lockstep
