// SPDX-License-Identifier: Apache-2.0
#include "host/runs/stages.hpp"

namespace lockstep {

Stages::Stages(CheckpointPlan plan) : plan_(std::move(plan)) {
  if (plan_.resume) saved_.emplace(plan_.file, plan_.identity);
}

}  // namespace lockstep
