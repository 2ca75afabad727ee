// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "host/commands/run_files.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view results_header = "label,replicate,quantity,estimate,se,truth,error,gradients";
constexpr std::string_view timings_header = "label,seconds,gradients_per_s";

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string number(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

/// Splits CSV text into records and fields and turns fields into numbers; every error names file and line.
class CsvReader {
 public:
  CsvReader(const fs::path& file, std::string_view text) : file_(file), text_(text) {}

  void expect_header(std::string_view header) {
    std::vector<std::string> names;
    const bool found = next(names);
    if (!found || fmt::format("{}", fmt::join(names, ",")) != header) {
      fail(fmt::format("the header is not '{}'", header));
    }
    columns_ = names.size();
  }

  /// Reads one record into `fields`; false at the end of the text.
  bool next(std::vector<std::string>& fields) {
    if (at_ == text_.size()) return false;
    record_line_ = line_;
    fields.assign(1, "");
    while (true) {
      const bool is_quoted = read_field(fields.back());
      const char end = at_ < text_.size() ? text_[at_++] : '\0';
      if (end == '\0') fail("the file ends inside a line");
      if (end == '\n') break;
      if (end != ',') fail(is_quoted ? "text follows a closing quote" : "a quote stands inside a field");
      fields.emplace_back();
    }
    ++line_;
    if (columns_ > 0 && fields.size() != columns_) {
      fail(fmt::format("{} fields instead of {}", fields.size(), columns_));
    }
    return true;
  }

  template <class T>
  T value(const std::string& field) const {
    if (std::is_floating_point_v<T> && field.empty()) return std::numeric_limits<T>::quiet_NaN();
    T result{};
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), result);
    if (error != std::errc{} || end != field.data() + field.size()) {
      fail(fmt::format("'{}' is not a number", field));
    }
    return result;
  }

 private:
  bool read_field(std::string& field) {
    if (at_ == text_.size() || text_[at_] != '"') {
      while (at_ < text_.size() && std::string_view(",\"\n").find(text_[at_]) == std::string_view::npos) {
        field += text_[at_++];
      }
      return false;
    }
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '"' && (at_ + 1 == text_.size() || text_[at_ + 1] != '"')) break;
      if (text_[at_] == '"') ++at_;
      field += text_[at_];
    }
    if (at_ == text_.size()) fail("a quote is never closed");
    ++at_;
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(
        fmt::format("{}, line {}: {} (the file is damaged or was not written by this program). "
                    "Delete it and run again",
                    file_.string(), record_line_, what));
  }

  fs::path file_;
  std::string_view text_;
  std::size_t at_ = 0, columns_ = 0;
  int line_ = 2, record_line_ = line_;  // after the part's comment
};

std::vector<ResultRow> parse_results(const fs::path& file, std::string_view text) {
  CsvReader csv(file, text);
  csv.expect_header(results_header);
  std::vector<ResultRow> rows;
  for (std::vector<std::string> fields; csv.next(fields);) {
    ResultRow row;
    row.label = fields[0];
    row.replicate = csv.value<int>(fields[1]);
    row.quantity = fields[2];
    row.estimate = csv.value<double>(fields[3]);
    row.se = csv.value<double>(fields[4]);
    row.truth = csv.value<double>(fields[5]);
    csv.value<double>(fields[6]);
    row.gradients = csv.value<double>(fields[7]);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The end of a part's text.
std::string last_line(std::string_view text) { return fmt::format("# checksum {}\n", checksum(text)); }

fs::path part_file(const fs::path& folder, int index) {
  return folder / "parts" / fmt::format("{}.csv", index);
}

}  // namespace

std::string results_text(const std::vector<ResultRow>& rows) {
  std::string text = std::string(results_header) + "\n";
  for (const ResultRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{}\n", quoted(row.label), row.replicate, quoted(row.quantity),
                        number(row.estimate), number(row.se), number(row.truth),
                        number(row.estimate - row.truth), number(row.gradients));
  }
  return text;
}

std::string timings_text(const std::vector<TimingRow>& rows) {
  std::string text = std::string(timings_header) + "\n";
  for (const TimingRow& row : rows) {
    text += fmt::format("{},{},{}\n", quoted(row.label), number(row.seconds), number(row.gradients_per_s));
  }
  return text;
}

void write_results(const fs::path& file, const std::vector<ResultRow>& rows) {
  write_atomically(file, results_text(rows));
}

void write_timings(const fs::path& file, const std::vector<TimingRow>& rows) {
  write_atomically(file, timings_text(rows));
}

void write_part(const fs::path& folder, int index, const StudyPart& part) {
  const nlohmann::ordered_json head = {{"fingerprint", part.fingerprint},
                                       {"label", part.timing.label},
                                       {"seconds", part.timing.seconds},
                                       {"gradients_per_s", part.timing.gradients_per_s},
                                       {"verdict", part.verdict}};
  fs::create_directories(folder / "parts");
  const std::string text = "# " + head.dump() + "\n" + results_text(part.rows);
  write_atomically(part_file(folder, index), text + last_line(text));
}

std::optional<StudyPart> read_part(const fs::path& folder, int index, const std::string& fingerprint) {
  const fs::path file = part_file(folder, index);
  if (!fs::exists(file)) return std::nullopt;
  std::string text = read_text(file);
  const std::size_t size = text.size() - std::min(text.size(), last_line("").size());
  if (text.substr(size) != last_line(std::string_view(text).substr(0, size)))
    throw UserError(
        fmt::format("{} is damaged, or of an older version (its numbers cannot be trusted). Delete it and "
                    "run again with --resume",
                    file.string()));
  text.resize(size);
  const std::size_t end = std::min(text.find('\n'), text.size() - 1);
  StudyPart part;
  try {
    if (!text.starts_with("# ")) throw std::runtime_error("no comment line");
    const auto head = nlohmann::json::parse(text.substr(2, end - 2));
    const auto finite = [&](const char* key) {
      return head.at(key).is_null() ? std::numeric_limits<double>::quiet_NaN() : head.at(key).get<double>();
    };
    part.fingerprint = head.at("fingerprint");
    part.timing = {head.at("label"), finite("seconds"), finite("gradients_per_s")};
    part.verdict = head.at("verdict");
  } catch (const std::exception&) {
    throw UserError(
        fmt::format("{}, line 1: no fingerprint of the setting (it cannot be known whether the "
                    "results belong to this study). Delete the file and run again",
                    file.string()));
  }
  if (part.fingerprint != fingerprint) return std::nullopt;
  part.rows = parse_results(file, std::string_view(text).substr(end + 1));
  return part;
}

void clear_parts(const fs::path& folder) {
  for (const fs::path& file : part_files(folder)) fs::remove(file);
}

std::map<int, std::string> labels_of_parts(const fs::path& folder) {
  std::map<int, std::string> labels;
  for (const fs::path& file : part_files(folder)) {
    const std::string text = read_text(file);
    const auto head = nlohmann::json::parse(text.substr(0, text.find('\n')).erase(0, 2), nullptr, false);
    if (head.is_object() && head.contains("label")) labels[std::stoi(file.stem().string())] = head["label"];
  }
  return labels;
}

StudyResults assemble_results(const fs::path& folder, const std::vector<std::string>& fingerprints) {
  StudyResults results;
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    const auto part = read_part(folder, static_cast<int>(i), fingerprints[i]);
    if (!part) continue;
    results.rows.insert(results.rows.end(), part->rows.begin(), part->rows.end());
    results.timings.push_back(part->timing);
    if (!part->verdict.empty()) results.verdicts[part->timing.label] = part->verdict;
  }
  write_results(folder / "results.csv", results.rows);
  write_timings(folder / "timings.csv", results.timings);
  return results;
}

}  // namespace lockstep
