// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// Bytes of memory that this process can still have: what the machine has left, and no more than the limits
/// of the process (ulimit -v) and of its control group leave. Infinite where none of it can be found out.
double available_memory();

}  // namespace lockstep
