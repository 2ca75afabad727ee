// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/studies/study_results.hpp"

namespace lockstep {

/// Text of results.csv: columns label, replicate, quantity, estimate, se, truth, error, gradients, with
/// error = estimate - truth. NaN is written empty (so an unknown truth leaves truth and error empty), numbers
/// in the shortest form that reads back to the same bits, labels quoted where RFC 4180 asks for it, lines
/// ended by a newline alone. The same rows give the same bytes.
std::string results_text(const std::vector<ResultRow>& rows);

/// Text of timings.csv: columns label, seconds, gradients_per_s.
std::string timings_text(const std::vector<TimingRow>& rows);

/// Writes results_text(rows) to `file`, atomically.
void write_results(const std::filesystem::path& file, const std::vector<ResultRow>& rows);

/// Writes timings_text(rows) to `file`, atomically.
void write_timings(const std::filesystem::path& file, const std::vector<TimingRow>& rows);

/// What one finished setting leaves behind while its study runs on: DIR/parts/<index>.csv.
struct StudyPart {
  std::string fingerprint;  // everything the rows depend on, in any form the caller likes
  std::vector<ResultRow> rows;
  TimingRow timing;
  std::string verdict;  // "pass", "fail: rhat", ...; empty: none
};

/// Writes the part of setting number `index` to DIR/parts/<index>.csv, atomically: one comment line with the
/// fingerprint, timing and verdict as JSON, then the rows as in results.csv, then one comment line with the
/// checksum of all that.
void write_part(const std::filesystem::path& folder, int index, const StudyPart& part);

/// The part of setting number `index`, or nothing when there is none or when its fingerprint is another one
/// (the study file was edited): such a setting has to be run again. Throws UserError when the file is
/// damaged.
std::optional<StudyPart> read_part(const std::filesystem::path& folder, int index,
                                   const std::string& fingerprint);

/// The labels of the settings that are there, of whatever study, by their numbers; damaged parts apart.
std::map<int, std::string> labels_of_parts(const std::filesystem::path& folder);

/// Removes DIR/parts/<number>.csv, for a study that starts afresh; other files stay.
void clear_parts(const std::filesystem::path& folder);

/// All finished settings of a study.
struct StudyResults {
  std::vector<ResultRow> rows;
  std::vector<TimingRow> timings;
  std::map<std::string, std::string> verdicts;  // by label; settings without a verdict are left out
};

/// Collects the parts whose fingerprints match, in the order of `fingerprints` (one for each setting), writes
/// results.csv and timings.csv into `folder` and returns them. To be called at the end of a study and when it
/// is interrupted; settings that have not finished are left out.
StudyResults assemble_results(const std::filesystem::path& folder,
                              const std::vector<std::string>& fingerprints);

}  // namespace lockstep
