// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Makes Ctrl-C (and a polite kill) set a flag instead of ending the process; a second one, not within a
/// second of the first, ends it at once.
void catch_interrupts();
/// Has the user asked to stop?
bool interrupted();

/// Thrown where an interrupted run has nothing to keep: before its first recorded iteration.
struct Interrupted {};

}  // namespace lockstep
