// SPDX-License-Identifier: Apache-2.0
#include "targets/bases.hpp"

namespace lockstep {

LOCKSTEP_MIXTURES()

}  // namespace lockstep
