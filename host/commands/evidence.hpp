// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <variant>

#include "host/commands/evidence_result.hpp"
#include "host/options/options.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// `lockstep evidence`: runs, and writes the files of --out. An ItemResult of a target with items. Throws
/// UserError, and Interrupted when there is nothing to keep. A study gives each replicate a label, and with
/// it random numbers, of its own, and its target: enumerating a truth again for each would take longer than
/// short runs.
std::variant<EvidenceResult, ItemResult> evidence(const RunOptions& run, const std::string& label = "",
                                                  const TargetInstance* built = nullptr);

}  // namespace lockstep
