// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lockstep {

/// Whether a script of bench/plot is there; says on standard error, unless quiet, where it is looked for when
/// it is not.
bool can_plot(const std::string& script, bool quiet);

/// Runs it by Python; says on standard error, unless quiet, what it needs when it fails, and returns whether
/// it did not.
bool run_plot(const std::string& script, const std::vector<std::string>& arguments, bool quiet);

}  // namespace lockstep
