// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points that somebody gives: where chains start (`--init FILE`), and where modes are (`--modes`).
#include <Eigen/Core>
#include <filesystem>
#include <string>
#include <vector>

#include "host/modes/search_result.hpp"

namespace lockstep {

/// What read_starts reads; UserError where the target's log density is not finite at one of them, in single precision.
std::vector<Eigen::VectorXd> usable_starts(const std::string& init, const TargetInstance& target);

/// The places of `--modes`, none without a file; UserError as of usable_starts.
std::vector<Eigen::VectorXd> usable_places(const std::filesystem::path& modes, const TargetInstance& target);

/// Of them those that chains begin at, and scouts cover: not those where the log density is below the highest by more than any mode's
/// draws are, from where no chain arrives.
std::vector<Eigen::VectorXd> near_starts(const std::string& init, const TargetInstance& target);

/// UserError where a place leads to no mode, before anything is written.
void check_places(const RunContext& context, const std::filesystem::path& modes);

/// The library of a list of places. If they lead to two modes or more (and no more than are kept), with those of over a hundredth
/// that a search of a quarter of the usual budget finds beside them (SearchResult::met): that there are any says that the list
/// is not of all.
SearchResult modes_listed(const RunContext& context, std::uint32_t unit,
                          const std::vector<Eigen::VectorXd>& places, const SearchPlan& plan);

/// The modes that a run goes by: those of `--modes` where two or more are given (one alone would leave nothing to compare)
/// and modes_listed finds no other; else what a search finds that begins at the points of `--init` and there too.
/// `plan`: of the search, but for these points.
SearchResult find_modes(const RunContext& context, std::uint32_t unit, const std::string& init,
                        const std::filesystem::path& modes, SearchPlan plan);

/// What a user should know of the points of `--init` and the places of `--modes` after find_modes: points far below all that
/// was found, from where chains may not arrive; places of one and the same mode, or far from any; a list that lacks modes.
std::vector<std::string> judge_given(const TargetInstance& target, const std::string& init,
                                     const std::filesystem::path& modes, const SearchResult& found);

}  // namespace lockstep
