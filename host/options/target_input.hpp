// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/options.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// The target a run asks for, built from its settings and data. `relative_to`: the folder that data paths are
/// first looked for in (of a study file; empty: none). Throws UserError for an unknown target or setting, or
/// bad data.
std::unique_ptr<TargetInstance> build_target(const RunOptions& run,
                                             const std::filesystem::path& relative_to = {});

/// The registry's entry, or a UserError naming the near ones.
const TargetEntry& require_target(const std::string& name);

}  // namespace lockstep
