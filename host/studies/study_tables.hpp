// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "host/options/options.hpp"
#include "host/studies/study_results.hpp"
#include "host/studies/study_table.hpp"

namespace lockstep {

/// The tables of a study, in order: pooled_table where the study asks for it, then one for each group of
/// settings (those that share the text before the first space of their label; settings that share it with
/// nobody come together), with one row for each label and, for each quantity that `study` shows, the columns
/// "mean ± sd", "RMSE ± standard error" and "z" of the bias. The truth stands in the first row (below each
/// label where it differs), what a paper printed below the label. Columns without any text are left out. A
/// table wider than `width` characters (cells and three characters between them) is split by quantities.
/// `verdicts` (by label) adds a column where it has entries.
std::vector<StudyTable> study_tables(const Study& study, const std::vector<ResultRow>& rows,
                                     const std::map<std::string, std::string>& verdicts, std::size_t width);

/// Number of characters that a terminal shows for UTF-8 text (no wide or combining ones expected).
std::size_t display_width(const std::string& text);

}  // namespace lockstep
