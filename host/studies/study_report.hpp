// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "host/options/options.hpp"
#include "host/studies/study_results.hpp"

namespace lockstep {

/// Text of table.md: one section for each group of settings (those that share the text before the first space
/// of their label; settings that share it with nobody come together), in it one row for each label and, for
/// each quantity that `study` shows, the columns "mean ± sd", "RMSE ± standard error" and "z" of the bias.
/// The truth stands in the first row (below each label where it differs), what a paper printed below the
/// label. Sections wider than 160 columns are split into several tables. `verdicts` (by label) adds a column
/// when not empty. Depends on nothing but its arguments.
std::string study_table(const Study& study, const std::vector<ResultRow>& rows,
                        const std::map<std::string, std::string>& verdicts = {});

/// Text of report.html: one page that needs no other file and no network, with title, description, pictures
/// (.png and .svg files, embedded; missing ones are left out), the tables of study_table, timings and
/// `environment` (such as device, compiler, version, command). Depends on nothing but its arguments and the
/// content of the pictures.
std::string study_report(const Study& study, const std::vector<ResultRow>& rows,
                         const std::vector<TimingRow>& timings,
                         const std::map<std::string, std::string>& verdicts,
                         const std::vector<std::filesystem::path>& pictures,
                         const std::map<std::string, std::string>& environment);

}  // namespace lockstep
