// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/engines/base_density.hpp"
#include "host/engines/units.hpp"
#include "host/modes/search_result.hpp"
#include "host/options/sampler_config.hpp"

namespace lockstep {

/// Jumps that are accepted less often are not worth their gradients.
inline constexpr double kIdleJumps = 0.005;

/// As kernels/mode_mixture.hpp reads it: the normals of the largest modes by their shares of the mass, covariances so many
/// times as wide; the other number is yet to be set. Empty where there is none.
std::vector<double> mixture_list(const ModeLibrary& library, double widened);

/// The context of a run whose engines jump between these modes (kernels/mode_jump.hpp) after each transition: one library
/// for each unit, or one for all; and to draws of their bases ([unit]), where these are made of modes. The same context where
/// there is nothing to go to, and nothing will be learned.
RunContext with_jumps(RunContext context, const std::vector<std::uint32_t>& units,
                      const std::vector<SearchResult>& modes, const std::vector<BaseDensity>& bases = {},
                      bool learns = false);
/// `base`: of the path that they are on, made of modes; or null.
RunContext with_jumps(RunContext context, const ModeLibrary& library, const BaseDensity* base = nullptr);

/// The context of a run whose transition finds in its lists what it goes by of these modes: "network" of wormholes. Jumps
/// become darts where the sampler has them.
RunContext with_lists(RunContext context, const SamplerConfig& config,
                      const std::vector<std::uint32_t>& units, const std::vector<SearchResult>& modes);

/// The context of a run whose chains begin anew where they can be said to (kernels/regeneration.hpp), if the sampler asks
/// for it and modes are known or may be learned. q: their normals by shares of mass, covariances times s = 1 + spread / sqrt(d), so that
/// beside a normal mode E log w / q is the same in any dimension; c is the typical w of chains in such a mode,
///
///   log c = log of the modes' mass + d/2 (log s - 1 + 1/s) + level.
RunContext with_regeneration(RunContext context, const SamplerConfig& config,
                             const std::vector<std::uint32_t>& units, const std::vector<SearchResult>& modes);

/// How many jumps were proposed and accepted, of an engine's statistics (Engine::stats) of so many chains, where its first
/// transition is this one.
struct JumpCounts {
  double proposed = 0, accepted = 0;
  void add(const std::vector<double>& stats, const TransitionInfo& first, int chains);
};

}  // namespace lockstep
