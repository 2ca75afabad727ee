// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lockstep {

/// Whether a script of plot/ is there; says on standard error, unless quiet, where it is looked for when
/// it is not.
bool can_plot(const std::string& script, bool quiet);

/// Runs it by Python and returns whether it ended well. Unless quiet, its own lines (which begin with its name)
/// are passed on to standard error, and one line says why where it fails without one.
bool run_plot(const std::string& script, const std::vector<std::string>& arguments, bool quiet);

}  // namespace lockstep
