// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/commands/sample_result.hpp"
#include "host/options/options.hpp"

namespace lockstep {

/// `lockstep sample`: runs, and writes the files of --out. Throws UserError, and Interrupted when there is
/// nothing to keep.
SampleResult sample(const RunOptions& run);

}  // namespace lockstep
