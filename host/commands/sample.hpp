// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "host/commands/sample_result.hpp"
#include "host/options/options.hpp"

namespace lockstep {

/// `show`, which also throws Interrupted when the user wants to stop and nothing has been recorded yet.
std::function<void(const std::string&, double)> interruptible(
    std::function<void(const std::string&, double)> show);

/// `lockstep sample`: runs, and writes the files of --out. Throws UserError, and Interrupted when there is
/// nothing to keep.
SampleResult sample(const RunOptions& run);

}  // namespace lockstep
