// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "host/options/options.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// `lockstep evidence`: runs, writes the files of --out, returns the summary (contracts.md). Throws
/// UserError, and Interrupted when there is nothing to keep. A study gives each replicate a label, and with
/// it random numbers, of its own, and its target: enumerating a truth again for each would take longer than
/// short runs.
nlohmann::ordered_json evidence(const RunOptions& run, bool& interrupted, const std::string& label = "",
                                const TargetInstance* built = nullptr);

}  // namespace lockstep
