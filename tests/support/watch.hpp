// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "host/util/progress.hpp"

namespace lockstep::testing {

/// Keeps all that a run tells.
struct Watch : Progress {
  struct Told {
    std::string stage;
    RunHealth health;
  };
  std::vector<Told> told;

  bool tell(const std::string& stage, double) override {
    told.push_back({stage, {}});
    return true;
  }
  void show(const RunHealth& health) override { told.back().health = health; }
  /// The health at the end of a stage.
  RunHealth last(const std::string& stage) const {
    RunHealth found;
    for (const Told& t : told)
      if (t.stage == stage) found = t.health;
    return found;
  }
};

}  // namespace lockstep::testing
