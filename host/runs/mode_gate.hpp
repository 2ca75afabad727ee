// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run's draws say of the modes that were found before it.
#include <optional>
#include <string>
#include <vector>

#include "host/estimators/weighted_moments.hpp"
#include "host/modes/mode_moments.hpp"
#include "host/runs/chain_result.hpp"
#include "host/runs/run_result.hpp"

namespace lockstep {

struct ModesVerdict {
  /// The gate that failed: `modes`, where a mode was not visited as it should be; `modes_mass`, where nobody knows how
  /// much each should hold, or most were not visited, or no draws are kept (then the verdict is not established); or "".
  std::string failed;
  std::vector<std::string> warnings;
  ModesSummary summary;
  MomentErrors least;  // that the run has; empty where nobody knows
};

/// A warning where a search ended before it could look as far away as what it found calls for (`widened`); else "".
std::string beyond_starts(const SearchResult& found);

/// One-sided: every mode that should hold over 1 % of Z is visited at least a third as often as it should be. What a mode
/// should hold is its mass by importance sampling over the run's own Z; where that is a guess (Mode::mass_known), its mass by
/// Laplace's approximation says only whether it should be visited at all. `log_z`: the run's; a
/// sampler that has none takes the library's total, if that is within a factor of 2 of the scout's Z. A draw visits the
/// mode whose normal is densest there; one of unknown mass where it is the nearest.
/// And of draws at home in a mode a third of what its core should hold lie there (Mode::core_log_mass). Of one mode beside no
/// log Z that is its share of the scout's Z and its mass together: a sixth at least; where there is no scout, one draw.
/// Fails too where the masses known come to over 1.2 Z and 4 of their errors more; where second moments lack what over 32
/// modes hold of them (MomentsByModes: many rare modes, each too small to be missed); and nothing is established where most of
/// the modes were not visited, though the draws are too few to call that a fault. `second_se`: as the run has them, to be told
/// where they are too small.
ModesVerdict judge_modes(const SearchResult& found, const SeenDraws& draws, std::optional<LogZ> log_z,
                         std::optional<double> scout_log_z, int threads,
                         const std::vector<double>& second_se = {});

/// Of a run's unit, by the overview of its chains and its estimates.
ModesVerdict judge_modes(const ChainRunResult& run, std::size_t unit, const WeightedMoments& moments,
                         int threads);

}  // namespace lockstep
