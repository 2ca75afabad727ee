// SPDX-License-Identifier: Apache-2.0
#include "host/engines/stages.hpp"

namespace lockstep {

Stages::Stages(CheckpointPlan plan) : plan_(std::move(plan)) {
  if (!plan_.resume) return;
  saved_.emplace(plan_.file, plan_.identity);
  (*saved_)("seconds", seconds_before_);
}

}  // namespace lockstep
