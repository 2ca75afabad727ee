// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace lockstep {

/// How a run does, for whoever shows its progress, who asks when there is something to show; nothing that is
/// computed depends on it.
struct RunHealth {
  struct Counts {
    double gradients = 0, divergences = 0;  // over all chains; NaN: nobody counts them
  };
  std::function<Counts()> counts = [] { return Counts(); };
  std::function<double()> rhat = {};  // the largest of any mean so far; or none
};

/// A progress printer on standard error, of the share done of a stage: on a terminal a bar, and elsewhere a
/// line for every tenth, with the gradients per second, the time left and the health so far. Nothing in the
/// first two seconds of a run, and nothing where it is to be quiet. `what`: the name of the run.
std::function<void(const std::string&, double)> progress_printer(
    bool quiet, std::string what, std::shared_ptr<const RunHealth> health = std::make_shared<RunHealth>());

}  // namespace lockstep
