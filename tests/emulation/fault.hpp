// SPDX-License-Identifier: Apache-2.0
#pragma once
// What mutate.cmake writes into copies of the launch code asks here whether a fault is to be made.
#include <cstdlib>
#include <cstring>

namespace emulated {
/// Whether the environment names this fault in LOCKSTEP_FAULT.
inline bool fault(const char* name) {
  static const char* const chosen = std::getenv("LOCKSTEP_FAULT");
  return chosen != nullptr && std::strcmp(name, chosen) == 0;
}
}  // namespace emulated
