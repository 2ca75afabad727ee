// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/paths/annealed_evidence.hpp"

namespace lockstep {

/// Runs the method on the path from a fitted base, after its pilot. `gradients` is what may still be spent.
MethodResult run_method(const RunContext& context, const PathBase& base, const Pilot& pilot,
                        const EvidenceJob& job, double gradients);

/// Base, pilot and method, with all that they spent and what the report says of them.
MethodResult run_on_path(const RunContext& context, const EvidenceJob& job);

/// The pseudo-extended chain of `sample`, with all it takes counted in the budget.
MethodResult run_pseudo_extended(const RunContext& context, const EvidenceJob& job);

}  // namespace lockstep
