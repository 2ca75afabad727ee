// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/paths/method_result.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

/// What particles drift at beta = 1, [row][block] (differences of block_means), beyond chance, neither weights nor groups
/// show, for all lack it: estimates err by about as much, measured on radon. Widens the errors of moments and, where
/// `widens_log_z` (Delta's are not far larger than log Z's own), of log Z, and fails gate `drift`.
void judge_drift(MethodResult& f, const BlockMeans& drifts, const TargetInstance& target, bool widens_log_z);

}  // namespace lockstep
