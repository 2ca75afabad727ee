// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Makes Ctrl-C (and a polite kill) set a flag instead of ending the process; a second one ends it at once.
void catch_interrupts();
/// Has the user asked to stop?
bool interrupted();

}  // namespace lockstep
