// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "host/options.hpp"
#include "host/study_results.hpp"

namespace lockstep {

/// What the replicates of one setting say about one quantity, with R finite estimates x_r, truths t_r and
/// errors e_r = x_r - t_r. NaN where something is undefined (truth unknown, too few replicates).
struct QuantityStatistics {
  int replicates = 0;  // all of them
  int finite = 0;   // R: those with a finite estimate; the others are left out below and counted in the table
  double truth;     // the truth of all replicates; NaN when unknown or when it differs between them
  double mean, sd;  // of x; sd with R - 1
  double rmse;      // sqrt(mean of e^2)
  double rmse_se;   // sd of the rmse over 1000 bootstrap resamples of the replicates; fixed seed
  double bias_z;    // mean(e) / (sd(e) / sqrt(R))
};

/// Computes the statistics; `estimates` and `truths` have one entry for each replicate. The same numbers give
/// the same result on every platform.
QuantityStatistics replicate_statistics(const std::vector<double>& estimates,
                                        const std::vector<double>& truths);

/// Cells as text, for Markdown and HTML alike; rows[0] is the header, the first column the label. Rows of
/// truth and of published values have a label that starts with two spaces.
struct StudyTable {
  std::string title;
  std::vector<std::vector<std::string>> rows;
};

/// The tables of a study, in order: one for each group of settings (those that share the text before the
/// first space of their label; settings that share it with nobody come together), with one row for each label
/// and, for each quantity that `study` shows, the columns "mean ± sd", "RMSE ± standard error" and "z" of the
/// bias. The truth stands in the first row (below each label where it differs), what a paper printed below
/// the label. Columns without any text are left out. A table wider than `width` characters (cells and three
/// characters between them) is split by quantities. `verdicts` (by label) adds a column where it has entries.
std::vector<StudyTable> study_tables(const Study& study, const std::vector<ResultRow>& rows,
                                     const std::map<std::string, std::string>& verdicts, std::size_t width);

/// Number of characters that a terminal shows for UTF-8 text (no wide or combining ones expected).
std::size_t display_width(const std::string& text);

}  // namespace lockstep
