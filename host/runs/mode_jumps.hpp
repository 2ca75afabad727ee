// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/sampler_config.hpp"
#include "host/runs/base_density.hpp"
#include "host/runs/mode_search.hpp"
#include "host/runs/units.hpp"

namespace lockstep {

/// Jumps that are accepted less often are not worth their gradients.
inline constexpr double kIdleJumps = 0.005;

/// The context of a run whose engines jump between these modes (kernels/mode_jump.hpp) after each transition: one library
/// for each unit, or one for all; and to draws of their bases ([unit]), where these are made of modes. The same context where
/// there is nothing to go to.
RunContext with_jumps(RunContext context, const std::vector<std::uint32_t>& units,
                      const std::vector<SearchResult>& modes, const std::vector<BaseDensity>& bases = {});
/// `base`: of the path that they are on, made of modes; or null.
RunContext with_jumps(RunContext context, const ModeLibrary& library, const BaseDensity* base = nullptr);

/// The context of a run whose transition finds in its lists what it goes by of these modes: "network" of wormholes.
RunContext with_lists(RunContext context, const SamplerConfig& config,
                      const std::vector<std::uint32_t>& units, const std::vector<SearchResult>& modes);

/// How many jumps were proposed and accepted, of an engine's statistics (Engine::stats) of so many chains, where its first
/// transition is this one.
struct JumpCounts {
  double proposed = 0, accepted = 0;
  void add(const std::vector<double>& stats, const TransitionInfo& first, int chains);
};

}  // namespace lockstep
