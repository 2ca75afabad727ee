// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/studies/study_args.hpp"

namespace lockstep {

/// `lockstep study`: runs every setting, all its replicates at once, and writes results.csv, timings.csv,
/// table.md, the picture and report.html. True: interrupted. Throws UserError before anything runs when a
/// setting cannot.
bool run_study(const StudyArgs& command);

}  // namespace lockstep
