// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modes that no start of the search led to, and chains came upon.
#include <Eigen/Core>

#include "host/modes/mode_moments.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {

/// What a search has found, and what descents find beside it from places where chains are: one that has been hot comes where
/// gradients do not point. From as many of the columns, evenly spread, as a twenty-fifth of plan.gradients
/// pays for, 64 to 1,024. Of no known mode, or many (SearchResult::full), nothing is asked.
SearchResult with_modes_met(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                            const SearchResult& found, const PointEngine::Rows& places);

/// The same from draws that count, the last of all chains first.
SearchResult with_modes_met(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                            const SearchResult& found, const SeenDraws& draws);

}  // namespace lockstep
