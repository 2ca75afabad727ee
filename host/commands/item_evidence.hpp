// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "host/commands/item_result.hpp"
#include "host/options/options.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// `lockstep evidence` for a target with items: bounds of log Z of each, and their means. Batches of items
/// are as large as keeps every thread of every process busy: numbers do not depend on how many there are.
/// After each the checkpoint is saved where one is asked for. Throws UserError, Interrupted when there is
/// nothing to keep, and FirstSpeaks in other processes than the first, but for those of a study (`label`).
ItemResult item_evidence(const RunOptions& run, const TargetInstance& target, const std::string& label);

}  // namespace lockstep
