// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/base_density.hpp"
#include "host/runs/mode_search.hpp"
#include "host/runs/units.hpp"

namespace lockstep {

/// Jumps that are accepted less often are not worth their gradients.
inline constexpr double kIdleJumps = 0.005;
/// As many modes as chains jump between: those of the largest mass.
inline constexpr int kMostJumpModes = 32;

/// The context of a run whose engines jump between these modes (kernels/mode_jump.hpp) after each transition: one library
/// for each unit, or one for all. The same context where none has two modes.
RunContext with_jumps(RunContext context, const std::vector<std::uint32_t>& units,
                      const std::vector<SearchResult>& modes);
/// `base`: of the path that they are on; chains at beta = 0 then go to new draws of it. It may be null.
RunContext with_jumps(RunContext context, const ModeLibrary& library, const BaseDensity* base = nullptr);

/// How many jumps were proposed and accepted, of an engine's statistics (Engine::stats) of so many chains, where its first
/// transition is this one.
struct JumpCounts {
  double proposed = 0, accepted = 0;
  void add(const std::vector<double>& stats, const TransitionInfo& first, int chains);
};

}  // namespace lockstep
