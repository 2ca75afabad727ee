// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// beta Delta, and 0 at beta = 0 even where Delta is infinite (outside the target's support).
inline double tempered(double beta, double delta) { return beta == 0 ? 0 : beta * delta; }

}  // namespace lockstep
