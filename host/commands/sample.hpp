// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "host/options/options.hpp"

namespace lockstep {

/// `show`, which also throws Interrupted when the user wants to stop and nothing has been recorded yet.
std::function<void(const std::string&, double)> interruptible(
    std::function<void(const std::string&, double)> show);

/// `lockstep sample`: runs, writes the files of --out, returns the summary (contracts.md). Throws UserError,
/// and Interrupted.
nlohmann::ordered_json sample(const RunOptions& run, bool& interrupted);

}  // namespace lockstep
