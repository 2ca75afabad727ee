// SPDX-License-Identifier: Apache-2.0
#include "host/util/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"
#include "host/util/program.hpp"

namespace lockstep {
namespace {

constexpr double kSilence = 2;            // seconds
constexpr double kBetweenBars = 0.2;      // seconds
constexpr double kBetweenLines = 0.0999;  // of a stage: a tenth, but for rounding

std::string shown_time(double s) {
  if (s < 100) return fmt::format("{:.0f} s", s);
  return s < 6000 ? fmt::format("{:.0f} min", s / 60) : fmt::format("{:.1f} h", s / 3600);
}

class Printer : public Progress {
 public:
  Printer(bool quiet, std::string what, bool stops)
      : what_(std::move(what)), quiet_(Processes::all().of_first(quiet) != 0), stops_(stops) {
    if (stops) interrupted();  // from here on somebody asks
  }
  ~Printer() override {
    if (bar_ && Processes::all().first()) std::fputs("\r\033[K", stderr);
  }

  void begin(const ProgressRound& round) override {
    round_ = round;
    way_ = 0;
    of_way_ = 0;
  }

  bool tell(const std::string& stage, double share) override {
    Processes& processes = Processes::all();
    if (!round_) {
      if (stops_ && stage != "sampling" && processes.interrupted()) throw Interrupted();
      const bool asks = turns(stage, share);
      // Whoever is to stop is first saved: nothing new is heard between that and the question above.
      if (stops_) processes.agree();
      return asks;
    }
    processes.agree();
    if (stops_ && processes.terminated()) throw Interrupted();
    if (share < of_way_) way_ = std::min(way_ + 1, round_->ways - 1);
    of_way_ = share;
    const double of_round = (way_ + share) / round_->ways;
    return turns(processes.interrupted() ? round_->when_last : round_->name,
                 round_->begin + (round_->end - round_->begin) * of_round);
  }

  void show(const RunHealth& health) override {
    if (begins_) gradients_before_ = health.gradients;
    if (!std::isnan(health.rhat)) rhat_ = health.rhat;
    if (!is_due()) return;
    shown_ = now();
    told_ = share_;
    bar_ = terminal_;
    const int full = int(30 * std::min(1.0, share_));
    if (!terminal_)
      say(fmt::format("{} {} {:.0f} %{}", what_, stage_, 100 * share_, state(health)));
    else if (Processes::all().first())
      fmt::print(stderr, "\r\033[K{} {} [{:#<{}}{:.<{}}] {:.0f} %{}", what_, stage_, "", full, "", 30 - full,
                 100 * share_, state(health));
    std::fflush(stderr);
  }

 private:
  static double now() { return Processes::all().now(); }
  static double since(double time) { return now() - time; }
  /// Takes in where the run is; whether its health is of interest there.
  bool turns(const std::string& stage, double share) {
    if (quiet_) return false;
    begins_ = stage != stage_ || share < told_;  // another, or the same once more
    share_ = share;
    if (begins_) {
      stage_ = stage;
      stage_start_ = now();
      told_ = begun_ = share;
    }
    return begins_ || is_due();
  }
  bool is_due() const {
    return since(start_) >= kSilence &&
           (terminal_ ? since(shown_) >= kBetweenBars : share_ - told_ >= kBetweenLines);
  }

  /// ", 1.2e+08 gradients/s, 35 s left, 0 divergences, worst r_hat 1.012": as much of it as there is.
  std::string state(const RunHealth& health) const {
    const double seconds = since(stage_start_), gradients = health.gradients - gradients_before_;
    std::string text;
    if (gradients > 0) text += fmt::format(", {:.2g} gradients/s", gradients / seconds);
    if (share_ - begun_ > 0.01 && share_ < 1)
      text += ", " + shown_time(seconds * (1 - share_) / (share_ - begun_)) + " left";
    if (gradients > 0 && !std::isnan(health.divergences))
      text += fmt::format(", {:.0f} divergences", health.divergences);
    if (std::isfinite(rhat_)) text += fmt::format(", worst r_hat {:.3f}", rhat_);
    return text;
  }

  const std::string what_;
  const bool quiet_, stops_, terminal_ = Processes::all().of_first(isatty(2)) != 0;
  const double start_ = now();
  double shown_ = start_, stage_start_ = start_;
  std::string stage_;
  bool begins_ = false;
  double share_ = 0;
  double told_ = 0;   // the share of the stage that was told last
  double begun_ = 0;  // the share at which it began here: of a run that goes on, or after a pilot, not 0
  double gradients_before_ = 0;  // this stage, or all that an interrupted run had already
  double rhat_ = NAN;
  bool bar_ = false;
  std::optional<ProgressRound> round_;
  int way_ = 0;
  double of_way_ = 0;  // what of it is done
};

}  // namespace

std::shared_ptr<Progress> progress_printer(bool quiet, std::string what, bool stops) {
  return std::make_shared<Printer>(quiet, std::move(what), stops);
}

}  // namespace lockstep
