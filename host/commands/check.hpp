// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/options.hpp"

namespace lockstep {

/// `lockstep check`: gradient against finite differences, packs against the scalar reference, invariance of
/// every transition from exact draws. Prints a line each; true if all hold.
bool check_target(const RunOptions& run);

}  // namespace lockstep
