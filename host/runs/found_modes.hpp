// SPDX-License-Identifier: Apache-2.0
#pragma once
// The modes that an adaptation goes by.
#include <vector>

#include "host/runs/chain_result.hpp"
#include "host/runs/scout.hpp"

namespace lockstep {

/// [unit], with what warm-ups have cost that did not know of them all.
struct FoundModes {
  std::vector<SearchResult> of;
  std::vector<double> warm_ups;
  template <class Archive>
  void fields(Archive& archive) {
    archive("of", of);
    archive("warm_ups", warm_ups);
  }
};

/// Those of `--modes`, or what is searched for within the budget that the options plan; the scout's particles are starts too.
FoundModes found_modes(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                       const ScoutResult& scouted, const std::vector<std::uint32_t>& units);

/// Whether there are modes, of more than a hundredth of what is known, that the search before this warm-up did not find:
/// chains are in them now; or it finds them gone on with, where what iterations cost was not known before; and another
/// warm-up pays. Adds what is found in any case: jumps of the run go by it too.
bool more_modes(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                const ScoutResult& scouted, const Adapted& out, FoundModes& modes);

}  // namespace lockstep
