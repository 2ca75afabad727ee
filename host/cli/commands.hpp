// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/cli/cli.hpp"

namespace lockstep {

/// Whether several processes may share the command: of others one does it.
bool is_run(const std::string& command);

/// Runs a parsed command line and returns the exit status: 0 done, 3 a gate failed, 130 interrupted.
int run_command(const CommandLine& line);

}  // namespace lockstep
