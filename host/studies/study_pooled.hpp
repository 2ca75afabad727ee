// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "host/options/options.hpp"
#include "host/studies/study_results.hpp"
#include "host/studies/study_table.hpp"

namespace lockstep {

/// Errors of the quantities `study.pooled` over all data sets together: one row for the settings whose labels
/// differ in their first word alone. RMSE: root of the mean over data sets, replicates and, for a vector such
/// as `mean`, its entries, with a standard error over replicates; beside it the ratio to the RMSE of the
/// bases that the runs began with, which is the first row. Columns without any text are left out.
StudyTable pooled_table(const Study& study, const std::vector<ResultRow>& rows);

/// The rows of results.csv that say how far a path's base is from the truth: base_log_z, base_mean_error,
/// base_covariance_error (root mean squares over the entries, whose truth is 0), base_starts (no truth).
std::string base_quantity(const std::string& vector);

/// Root mean square of the differences of two vectors of one length.
double rms_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lockstep
