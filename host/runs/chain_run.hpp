// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/chain_result.hpp"

namespace lockstep {

/// Scout, warm-up, record: every unit on its own (unless pooled), all in lock step. A run that was
/// interrupted and resumed gives the same bits as one that was not.
ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options);

}  // namespace lockstep
