// SPDX-License-Identifier: Apache-2.0
#include "host/util/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "host/util/processes.hpp"
#include "host/util/program.hpp"

namespace lockstep {
namespace {

constexpr double kSilence = 2;            // seconds
constexpr double kBetweenBars = 0.2;      // seconds
constexpr double kBetweenLines = 0.0999;  // of a stage: a tenth, but for rounding
constexpr double kBetweenRhats = 2;       // seconds: it takes a pass over all sums

std::string shown_time(double s) {
  if (s < 100) return fmt::format("{:.0f} s", s);
  return s < 6000 ? fmt::format("{:.0f} min", s / 60) : fmt::format("{:.1f} h", s / 3600);
}

/// Several processes go through it alike, by the clock of the first, which prints: what health says of a run
/// may take all of them.
struct Printer {
  static double now() { return Processes::all().now(); }
  static double since(double time) { return now() - time; }

  std::string what;
  std::shared_ptr<const RunHealth> health;
  bool terminal = Processes::all().of_first(isatty(2)) != 0;
  double start = now(), shown = start, stage_start = start, rhat_at = start;
  std::string stage;
  double gradients_before = 0;  // this stage, or all that an interrupted run had already
  double rhat = NAN;
  double told = 0;   // the share of the stage that was told last
  double begun = 0;  // the share at which it began here: of a run that goes on, or after a pilot, not 0
  bool bar = false;

  ~Printer() {
    if (bar && Processes::all().first()) std::fputs("\r\033[K", stderr);
  }

  void operator()(const std::string& next, double share) {
    if (next != stage || share < told) {  // another, or the same once more
      stage = next;
      stage_start = now();
      gradients_before = health->counts().gradients;
      told = begun = share;
    }
    if (since(start) < kSilence) return;
    if (terminal ? since(shown) < kBetweenBars : share - told < kBetweenLines) return;
    shown = now();
    told = share;
    bar = terminal;
    const int full = int(30 * std::min(1.0, share));
    const std::string how = state(share);
    if (!terminal)
      say(fmt::format("{} {} {:.0f} %{}", what, stage, 100 * share, how));
    else if (Processes::all().first())
      fmt::print(stderr, "\r\033[K{} {} [{:#<{}}{:.<{}}] {:.0f} %{}", what, stage, "", full, "", 30 - full,
                 100 * share, how);
    std::fflush(stderr);
  }

  /// ", 1.2e+08 gradients/s, 35 s left, 0 divergences, worst r_hat 1.012": as much of it as there is.
  std::string state(double share) {
    const double seconds = since(stage_start);
    std::string text;
    const auto counts = health->counts();
    const double gradients = counts.gradients - gradients_before;
    if (gradients > 0) text += fmt::format(", {:.2g} gradients/s", gradients / seconds);
    if (share - begun > 0.01 && share < 1)
      text += ", " + shown_time(seconds * (1 - share) / (share - begun)) + " left";
    if (gradients > 0 && !std::isnan(counts.divergences))
      text += fmt::format(", {:.0f} divergences", counts.divergences);
    if (health->rhat && (!terminal || since(rhat_at) > kBetweenRhats)) {
      rhat = health->rhat();
      rhat_at = now();
    }
    if (std::isfinite(rhat)) text += fmt::format(", worst r_hat {:.3f}", rhat);
    return text;
  }
};

}  // namespace

std::function<void(const std::string&, double)> progress_printer(bool quiet, std::string what,
                                                                 std::shared_ptr<const RunHealth> health) {
  if (quiet) return [](const std::string&, double) {};
  auto printer = std::make_shared<Printer>();
  printer->what = std::move(what);
  printer->health = std::move(health);
  return [printer](const std::string& stage, double share) { (*printer)(stage, share); };
}

}  // namespace lockstep
