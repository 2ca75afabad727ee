// SPDX-License-Identifier: Apache-2.0
#include "host/util/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace lockstep {
namespace {
constexpr unsigned kPatience = 10;   // seconds
constexpr double kOneRequest = 0.5;  // likewise
std::atomic<bool> heeded{false};     // somebody asks
std::atomic<int> request{0};         // the first signal
std::atomic<double> first{0};        // when it came
static_assert(std::atomic<double>::is_always_lock_free);

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// One request may come twice in an instant (`timeout` signals the process and then its group); only a second
/// one by hand ends the process.
void on_signal(int signal) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double seconds = double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
  double before = 0;
  if (heeded && first.compare_exchange_strong(before, seconds)) {
    request = signal;
    if (signal != SIGINT) alarm(kPatience);
  } else if (!heeded || seconds - before > kOneRequest) {
    end_by(signal);
  }
}

void on_alarm(int) { end_by(request); }
}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGALRM, on_alarm);
}

bool interrupted() {
  heeded = true;
  if (request == 0) return false;
  alarm(0);
  return true;
}

bool terminated() { return interrupted() && request != SIGINT; }

}  // namespace lockstep
