// SPDX-License-Identifier: Apache-2.0
#include "host/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace lockstep {
namespace {
std::atomic<bool> flag{false};
void raise_flag(int signal) {
  flag = true;
  std::signal(signal, SIG_DFL);
}
}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, raise_flag);
  std::signal(SIGTERM, raise_flag);
}
bool interrupted() { return flag; }

}  // namespace lockstep
