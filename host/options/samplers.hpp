// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// A sampler, or a method, as `lockstep samplers NAME` shows it.
struct SamplerInfo {
  std::string name, summary, formula;
  std::vector<std::pair<std::string, std::string>> settings;
  std::string source;
  std::vector<std::string> gates = {};  // of its transition
};

/// The settings that a transition declares: name, and what it does.
std::vector<std::pair<std::string, std::string>> own_settings(const TransitionInfo& transition);

using Transitions = std::vector<const TransitionInfo*>;
std::vector<std::string> names_of(const Transitions& transitions);

/// Each transition, the first of which is HMC, and what is made of them.
std::vector<SamplerInfo> samplers_of(const Transitions& transitions);
/// Those of the library.
const std::vector<SamplerInfo>& sampler_registry();

/// What to do about a name that is none of these: whose setting it is, or which are near, or known.
std::string instead_of_sampler(const std::string& name, const std::vector<std::string>& names);

/// The settings that say how long trajectories are.
inline const std::vector<std::string> kTrajectoryKeys = {"num_leapfrog", "trajectory_time", "jitter"};

/// Whether a transition measures distances by a metric of its own, and takes none.
bool has_own_metric(const TransitionInfo& transition);

inline constexpr double kExtendedAcceptance = 0.75;  // of HMC on the extended space

}  // namespace lockstep
