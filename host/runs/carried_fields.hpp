// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the chains of a sampler carry beside their positions (the saved fields of its transition).
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// Whether they do. Such a sampler is whole: its chains do not jump between modes after its transition, which would
/// leave behind what they carry, and go on with it from warm-up.
bool carries_fields(const TransitionInfo& transition);

/// Of an engine with this transition alone, [row][chain].
std::vector<double> carried_fields(Engine& engine, const TransitionInfo& transition);
/// Call after `initialize`.
void set_carried_fields(Engine& engine, const TransitionInfo& transition, const std::vector<double>& rows);

}  // namespace lockstep
