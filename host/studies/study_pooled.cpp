// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_pooled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep {
namespace {

std::string vector_of(const std::string& quantity) { return quantity.substr(0, quantity.find('[')); }

std::string without_first_word(const std::string& label) {
  const auto space = label.find(' ');
  return space == std::string::npos ? label : label.substr(space + 1);
}

/// Squared errors of one line: by setting, then by replicate, over the entries of a vector.
class Squares {
 public:
  void add(const std::string& label, int replicate, double error) {
    auto& [sum, count] = of_[label][replicate];
    sum += error * error;
    ++count;
  }
  /// RMSE, and its standard error: data sets are no random draws, replicates are.
  std::pair<double, double> rmse() const {
    double total = 0, variance = 0;
    for (const auto& [label, replicates] : of_) {
      double sum = 0, square = 0;
      for (const auto& [replicate, entry] : replicates) {
        const double mean = entry.first / entry.second;
        sum += mean;
        square += mean * mean;
      }
      const double n = double(replicates.size());
      total += sum / n;
      variance += n > 1 ? (square - sum * sum / n) / (n - 1) / n : NAN;
    }
    const double sets = double(of_.size()), value = std::sqrt(total / sets);
    if (value == 0) return {0, 0};
    return {value, std::sqrt(variance < 0 ? 0 : variance) / sets / (2 * value)};
  }

 private:
  std::map<std::string, std::map<int, std::pair<double, int>>> of_;
};

struct Line {
  std::string name;
  std::map<std::string, Squares> squares;  // by vector
  double gradients = 0;
  int replicates = 0;
};

}  // namespace

std::string base_quantity(const std::string& vector) {
  if (vector == "log_z") return "base_log_z";
  return vector.ends_with("_error") ? "base_" + vector : fmt::format("base_{}_error", vector);
}

double rms_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / double(a.size()));
}

StudyTable pooled_table(const Study& study, const std::vector<ResultRow>& rows) {
  Line base{"the base alone", {}};
  std::vector<Line> lines;
  double starts = 0;
  std::set<std::pair<std::string, int>> counted;
  for (const ResultRow& row : rows) {
    const std::string name = without_first_word(row.label);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (line == lines.end()) line = lines.insert(lines.end(), {name, {}});
    if (counted.emplace(row.label, row.replicate).second) {
      line->gradients += row.gradients;
      ++line->replicates;
    }
    if (row.quantity == "base_starts") starts = std::max(starts, row.estimate);
    const double error = row.estimate - row.truth;
    if (!std::isfinite(error)) continue;
    for (const std::string& vector : study.pooled) {
      if (vector_of(row.quantity) == vector) line->squares[vector].add(row.label, row.replicate, error);
      if (row.quantity == base_quantity(vector)) base.squares[vector].add(row.label, row.replicate, error);
    }
  }
  if (starts > 0) base.name += fmt::format(", {:.0f} starts", starts);
  if (!base.squares.empty()) lines.insert(lines.begin(), base);

  StudyTable table{"All data sets together", {{"setting", "gradients"}}};
  for (const Line& line : lines)
    table.rows.push_back(
        {line.name, line.replicates > 0 ? fmt::format("{:.4g}", line.gradients / line.replicates) : ""});
  for (const std::string& vector : study.pooled) {
    if (std::none_of(lines.begin(), lines.end(), [&](const Line& l) { return l.squares.contains(vector); }))
      continue;
    const auto found_base = base.squares.find(vector);
    const double of_base = found_base == base.squares.end() ? 0 : found_base->second.rmse().first;
    table.rows[0].push_back(vector + " RMSE");
    if (of_base > 0) table.rows[0].push_back("over the base's");
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto found = lines[i].squares.find(vector);
      const bool has = found != lines[i].squares.end();
      const auto [rmse, se] = has ? found->second.rmse() : std::pair{0.0, 0.0};
      table.rows[i + 1].push_back(!has                ? ""
                                  : std::isfinite(se) ? fmt::format("{:.3g} ± {:.1g}", rmse, se)
                                                      : fmt::format("{:.3g}", rmse));
      if (of_base > 0) table.rows[i + 1].push_back(has ? fmt::format("{:.2g}", rmse / of_base) : "");
    }
  }
  return table;
}

}  // namespace lockstep
