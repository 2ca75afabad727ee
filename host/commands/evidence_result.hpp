// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/commands/item_result.hpp"
#include "host/paths/method_result.hpp"

namespace lockstep {

/// What `lockstep evidence` found of one density.
struct EvidenceResult : RunResult {
  std::vector<OneItem> items;  // copies of a ladder, where there are any
  EvidenceDiagnostics diagnostics;

  template <class Archive>
  void fields(Archive& archive) {
    head(archive);
    archive("chains", chains);
    archive("iterations", iterations);
    archive("cost", cost);
    archive("estimates", estimates);
    archive("log_z", log_z);
    archive("items", items);
    archive("truth", truth);
    archive("diagnostics", diagnostics);
    tail(archive);
  }
};

}  // namespace lockstep
