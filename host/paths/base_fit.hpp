// SPDX-License-Identifier: Apache-2.0
#pragma once
// The base of a path by any of its names, before anything is recorded. None reads the target's truth.
#include "host/modes/mode_library.hpp"
#include "host/options/evidence_config.hpp"
#include "host/paths/tempered_pilot.hpp"

namespace lockstep {

/// The base that `config.base` names. `run` says where warm-up chains start, and how widely the scout and
/// ADVI do; `modes`, those known, what the scout may have got wrong. UserError where the target does not lend itself to it.
PathBase fit_base(const RunContext& context, const EvidenceConfig& config, const RunOptions& run,
                  const ModeLibrary& modes = ModeLibrary());

/// UserError where the target does not lend itself to the base that is asked for, or where starts are given
/// that this base does not use.
void check_base(const TargetInstance& target, const EvidenceConfig& config, const RunOptions& run);

/// The same run with random numbers of its own for `what`, apart from those of the chains that record.
RunContext with_own_numbers(const RunContext& context, const std::string& what);

/// The pilot's particles at beta = 1 as one weighted sample: a group counts by its own estimate of Z.
std::vector<double> pooled_weights(const Pilot& pilot);

/// The next base of a bootstrap: mean, covariance and log Z of the pilot's particles at beta = 1, the
/// standard deviations times `inflation`. Only the variances where fewer than 10 (d + 1) particles are
/// effective, (sum w)^2 / sum w^2; with fewer than 20 the old base stays, and says so. Gradients of the old
/// base and the pilot are added up.
PathBase refit_base(const PathBase& old, const Pilot& pilot, double inflation);

}  // namespace lockstep
