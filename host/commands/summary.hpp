// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/options/options.hpp"
#include "host/runs/units.hpp"
#include "targets/registry.hpp"

namespace lockstep {

// What summary.json says whatever the command (contracts: one schema for sample and evidence).

/// The members that come first, verdict and warnings still empty.
nlohmann::ordered_json summary_head(const RunOptions& run, const TargetInstance& target,
                                    const RunContext& context, const std::string& command);
/// What is known exactly of the target.
nlohmann::ordered_json truth_json(const TargetInstance& target);
/// Moments with their errors and, of the means, intervals. What never varied has no error: it is named under
/// not_visited, and `warnings` says so.
nlohmann::ordered_json estimates_json(const WeightedMoments& moments, const TargetInstance& target,
                                      std::vector<std::string>& warnings);
/// Estimate, standard error and intervals.
nlohmann::ordered_json log_z_json(const LogZ& log_z);
/// interval95, interval997 and df alone.
void add_intervals(nlohmann::ordered_json& to, const LogZ& z);
/// [d][d] numbers as an array of rows.
nlohmann::ordered_json matrix_json(const std::vector<double>& values, int d);
/// Without what is not finite; a warning says so of means, and of log Z and its error.
nlohmann::ordered_json finish_summary(nlohmann::ordered_json summary);

}  // namespace lockstep
