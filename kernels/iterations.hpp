// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whose iteration numbers are whose: random numbers are functions of them (philox.hpp), so that no two stages of a run may
// share any.
#include <cstdint>

namespace lockstep {

/// A scout's rounds, before anything is recorded, begin at multiples of this.
inline constexpr std::uint32_t kScoutIterations = 1u << 24;
/// Recorded iterations are numbered from 0, at most so many of a chain: those asked for, and those that a budget pays.
inline constexpr std::int64_t kMostIterations = (std::int64_t(1) << 31) - 64, kMostPaid = std::int64_t(1)
                                                                                          << 30;
/// Those of pilots of a path, which has no run of that length.
inline constexpr std::uint32_t kPilotIterations = 0x60000000u;
/// Those of the particles that find out what a warm-up flattens (path_profile.hpp).
inline constexpr std::uint32_t kProfileIterations = 0x70000000u;
/// Trials of step sizes before a warm-up, and the warm-up.
inline constexpr std::uint32_t kTrialIterations = 0x80000000u - 64, kWarmupIterations = 0x80000000u;

}  // namespace lockstep
