// SPDX-License-Identifier: Apache-2.0
#include "host/interrupt.hpp"

#include <atomic>
#include <csignal>
#include <ctime>

namespace lockstep {
namespace {
std::atomic<bool> flag{false};
volatile std::sig_atomic_t first_second = -1;

/// One request may come twice in an instant (`timeout` signals the process and then its group); only a second
/// one by hand ends the process.
void raise_flag(int signal) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto second = static_cast<std::sig_atomic_t>(now.tv_sec);
  if (flag && second > first_second + 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  } else if (!flag) {
    first_second = second;
    flag = true;
  }
}
}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, raise_flag);
  std::signal(SIGTERM, raise_flag);
}
bool interrupted() { return flag; }

}  // namespace lockstep
