// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/options.hpp"

namespace lockstep {

/// `lockstep modes`: searches for the modes of a target, or takes those of --modes, and prints them; with --out also
/// modes.json and modes.png. Throws UserError.
void show_modes(const RunOptions& run);

}  // namespace lockstep
