// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of a result that do not depend on the command.
#include "host/commands/sample_result.hpp"
#include "host/engines/units.hpp"
#include "host/estimators/log_sums.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/options/options.hpp"
#include "host/runs/draw_figures.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// Who ran what, where. `command`: sample or evidence.
void describe(RunResult& result, const RunOptions& run, const TargetInstance& target,
              const RunContext& context, const std::string& command);
/// The verdict that failed gates come to.
void judge(RunResult& result, std::vector<std::string> failed_gates);
/// What is known exactly of the target.
TruthSummary truth_of(const TargetInstance& target);
/// Moments with their errors and, of the means, intervals. What never varied has no error: it is named under
/// not_visited, and `warnings` says so.
EstimatesSummary estimates_of(const WeightedMoments& moments, const TargetInstance& target,
                              std::vector<std::string>& warnings);
/// Adds quantiles to the estimates and returns R-hat and effective sizes, of coordinates and quantities. What
/// is NaN for a single chain is taken from its batches.
DrawsSummary add_figures(EstimatesSummary& summary, const TargetInstance& target, const Estimates& estimates,
                         const DrawFigures& figures);
/// Estimate, standard error and intervals.
LogZSummary log_z_of(const LogZ& log_z);
/// interval95, interval997 and df alone.
void add_intervals(LogZSummary& to, const LogZ& z);

/// How a warning that the known truth contradicts a result says so.
inline constexpr const char* kFromTruth = "standard errors from the truth";
/// How many standard errors `found` is from what is `known`, and what to do; empty where it is not more than
/// `most`, or nothing is known.
std::string far_from_truth(const std::string& name, const LogZ& found, double known, double most,
                           const std::string& advice);
/// The same of means, second moments and the target's own quantities; of each of the three one is enough where it is asked for.
std::vector<std::string> moments_far_from_truth(const WeightedMoments& moments, const TargetInstance& target,
                                                double most, const std::string& advice, bool one_of_each);
/// Warns of numbers that are left out of the summary, for they are not finite.
void warn_unless_finite(std::vector<std::string>& warnings, const std::string& name,
                        const std::vector<double>& values);
/// A result as whoever reads summary.json has it: a run shows the same when it ends and when it is met again.
template <class Result>
Result settled(const Result& result) {
  auto kept = from_json<Result>(to_json(result));
  kept.interrupted = result.interrupted;
  return kept;
}

}  // namespace lockstep
