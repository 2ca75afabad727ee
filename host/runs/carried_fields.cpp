// SPDX-License-Identifier: Apache-2.0
#include "host/runs/carried_fields.hpp"

#include <algorithm>
#include <stdexcept>

namespace lockstep {
namespace {

/// Where they stand in Engine::state(): before its last row.
std::size_t first_of(const Engine& engine, const TransitionInfo& transition, std::size_t state_size) {
  std::size_t rows = 1;
  for (const TransitionField& field : transition.fields)
    if (field.saved) rows += std::size_t(field.rows(engine.rows()));
  return state_size - rows * engine.chains();
}

}  // namespace

bool carries_fields(const TransitionInfo& transition) {
  return transition.alone && std::any_of(transition.fields.begin(), transition.fields.end(),
                                         [](const TransitionField& field) { return field.saved; });
}

std::vector<double> carried_fields(Engine& engine, const TransitionInfo& transition) {
  if (!carries_fields(transition)) return {};
  const auto state = engine.state();
  return {state.begin() + std::ptrdiff_t(first_of(engine, transition, state.size())),
          state.end() - engine.chains()};
}

void set_carried_fields(Engine& engine, const TransitionInfo& transition, const std::vector<double>& rows) {
  if (!carries_fields(transition)) return;
  auto state = engine.state();
  const std::size_t first = first_of(engine, transition, state.size());
  if (first + rows.size() + engine.chains() != state.size())
    throw std::invalid_argument("fields of other chains");
  std::copy(rows.begin(), rows.end(), state.begin() + std::ptrdiff_t(first));
  engine.set_state(state);
}

}  // namespace lockstep
