// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Makes Ctrl-C, TERM and HUP set a flag, from the first call of interrupted() on; before it they end the
/// process, for nobody asks yet and there is nothing to keep. A second one ends it at once, and TERM and HUP
/// end it after ten seconds in which nobody has asked. HUP that `nohup` keeps away stays away.
void catch_interrupts();
/// Has the user asked to stop? Whoever hears so goes on to save what there is, however long that takes.
bool interrupted();
/// Was it by TERM or HUP, behind which a kill may follow: is even a round that has begun to be left?
bool terminated();

/// Thrown where an interrupted run has nothing to keep: before its first recorded iteration.
struct Interrupted {};

}  // namespace lockstep
