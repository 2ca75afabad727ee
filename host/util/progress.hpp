// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <memory>
#include <string>

namespace lockstep {

/// How a run does, for whoever shows its progress; nothing that is computed depends on it.
struct RunHealth {
  double gradients = 0, divergences = 0;  // over all chains; NaN: nobody counts them
  double rhat = NAN;                      // the largest of any mean; NaN: not looked at now
};

/// A round of a whole that is shown as one stage.
struct ProgressRound {
  std::string name, when_last;  // when_last: the name where the user has asked to stop after it
  double begin = 0, end = 1;    // shares of the whole
  int ways = 1;                 // times that it goes its way from 0 to 1
};

/// Whom a run tells between launches how far it is. This one shows nothing, and never stops it.
class Progress {
 public:
  virtual ~Progress() = default;
  /// The share done of a stage: whether show() is to follow. Throws Interrupted to stop.
  virtual bool tell(const std::string& /*stage*/, double /*share*/) { return false; }
  virtual void show(const RunHealth& /*health*/) {}
  /// What is told from here on is of this round.
  virtual void begin(const ProgressRound& /*round*/) {}
};

/// One that prints on standard error: on a terminal a bar, and elsewhere a line for every tenth, with the
/// gradients per second, the time left and the health so far. Nothing in the first two seconds of a run, and
/// nothing where it is to be quiet. `what`: the name of the run. Where it `stops` the run, it does so when the
/// user wants to stop and nothing has been recorded yet; of rounds, in their midst only where a kill may follow.
/// Several processes go through it alike, by the clock of the first, which prints: what a run says of its health
/// may take all of them.
std::shared_ptr<Progress> progress_printer(bool quiet, std::string what, bool stops = true);

}  // namespace lockstep
