// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

namespace lockstep {

/// A message on standard error, as one_line leaves it; of the first of several processes.
void say(const std::string& text);

/// Lets the process keep what is freed. Rows of many chains come and go with every iteration of a warm-up: memory that
/// goes back to the system in between takes longer to get than to fill.
void keep_memory();

/// Runs the body of a program and returns its exit status. A UserError (2), another exception (1) and a
/// standard output that could not be written (1) each give one line on standard error, unless another process
/// speaks for this one.
int run_program(const char* name, const std::function<int()>& body, bool speaks = true);

}  // namespace lockstep
