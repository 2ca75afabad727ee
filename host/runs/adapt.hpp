// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/chain_result.hpp"

namespace lockstep {

/// Scout and warm-up alone.
Adapted adapt(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options);

}  // namespace lockstep
