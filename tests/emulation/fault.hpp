// SPDX-License-Identifier: Apache-2.0
#pragma once
// What mutate.cmake writes into copies of the launch code asks here whether a fault is to be made.
#include <cstdlib>
#include <string>

namespace emulated {
/// Whether the environment names this fault in LOCKSTEP_FAULT.
inline bool fault(const std::string& name) {
  static const char* const chosen = std::getenv("LOCKSTEP_FAULT");
  return chosen != nullptr && name == chosen;
}
}  // namespace emulated
