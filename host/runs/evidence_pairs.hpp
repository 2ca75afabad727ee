// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "host/estimators/pe_evidence.hpp"
#include "targets/engine.hpp"

namespace lockstep {

/// Adds the present pairs of all pseudo-samples to the evidence of their units, [unit] as the engine has
/// them; `block` of a unit's chain: where they go, -1: nowhere.
void add_pairs(std::vector<PseudoExtendedEvidence>& evidence, Engine& engine, int threads,
               const std::function<int(std::size_t unit, int chain)>& block);

}  // namespace lockstep
