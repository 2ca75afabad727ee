// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "host/estimators/study_statistics.hpp"
#include "host/studies/study_pooled.hpp"

namespace lockstep {
namespace {

using Verdicts = std::map<std::string, std::string>;
using Column = std::vector<std::string>;  // header first, then one cell for each line of the table

/// `value ± error`, both to two significant digits of the error.
std::string with_error(double value, double error) {
  if (std::isnan(value)) return "";
  if (!std::isfinite(error)) return fmt::format("{:.6g}", value);
  if (error <= 0) return fmt::format("{:.6g} ± {:.2g}", value, error);
  const double decimals = 1 - std::floor(std::log10(error));
  if (decimals > 9 || std::abs(value) >= 1e9 || error >= 1e9) {
    return fmt::format("{:.4g} ± {:.2g}", value, error);
  }
  const int places = std::max(0, static_cast<int>(decimals));
  return fmt::format("{:.{}f} ± {:.{}f}", value, places, error, places);
}

// ---- cells ------------------------------------------------------------------------------------------------

/// Everything the tables need about one label.
struct Setting {
  std::string label;
  nlohmann::json published = nlohmann::json::object(), published_rmse = nlohmann::json::object();
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> samples;  // estimates and truths
  std::map<std::string, QuantityStatistics> statistics;
  std::map<int, double> gradients;  // by replicate
};

enum class Kind { setting, truth, published };

/// One line below the header: the setting itself, or what belongs to it.
struct TableLine {
  Kind kind;
  const Setting* setting;
};

std::string truth_text(const Setting& setting, const std::string& quantity) {
  const auto found = setting.statistics.find(quantity);
  if (found == setting.statistics.end() || std::isnan(found->second.truth)) return "";
  return fmt::format("{:.6g}", found->second.truth);
}

/// A published value, given as a number, [mean] or [mean, sd], both with the same number of decimals (JSON
/// does not keep the zero of a printed 4.90). Empty for anything else.
std::string published_text(const Setting& setting, const nlohmann::json& published,
                           const std::string& quantity) {
  if (!published.contains(quantity) || !setting.statistics.contains(quantity)) return "";
  nlohmann::json value = published[quantity];
  if (!value.is_array()) value = nlohmann::json::array({value});
  std::vector<std::string> numbers;
  std::size_t decimals = 0;
  const auto decimals_of = [](const std::string& digits) {
    return digits.find('.') == std::string::npos ? 0 : digits.size() - digits.find('.') - 1;
  };
  for (const nlohmann::json& number : value) {
    if (!number.is_number()) return "";
    numbers.push_back(fmt::format("{}", number.get<double>()));
    if (numbers.back().find('e') == std::string::npos) {
      decimals = std::max(decimals, decimals_of(numbers.back()));
    }
  }
  for (std::string& digits : numbers) {
    if (digits.find('e') != std::string::npos) continue;
    const std::size_t missing = decimals - decimals_of(digits);
    if (missing > 0 && missing == decimals) digits += '.';
    digits.append(missing, '0');
  }
  return fmt::format("{}", fmt::join(numbers, " ± "));
}

std::string mean_text(const QuantityStatistics& value) {
  std::string text = value.finite > 0 ? with_error(value.mean, value.sd) : "none";
  if (value.finite == value.replicates) return text;
  return fmt::format("{} ({} of {} finite)", text, value.finite, value.replicates);
}

/// Gradients per replicate, averaged over the replicates.
std::string gradients_text(const Setting& setting) {
  double sum = 0;
  for (const auto& [replicate, count] : setting.gradients) sum += count;
  return fmt::format("{:.4g}", sum / static_cast<double>(setting.gradients.size()));
}

/// One column of a table; `text` gives the cell of a line.
template <class Text>
Column make_column(const std::string& header, const std::vector<TableLine>& lines, const Text& text) {
  Column column{header};
  for (const TableLine& line : lines) column.push_back(text(line));
  return column;
}

/// The columns of one quantity: mean ± sd with truth and published value, RMSE, z of the bias.
std::vector<Column> quantity_columns(const std::string& quantity, const std::vector<TableLine>& lines) {
  std::vector<Column> columns{{quantity}, {"RMSE"}, {"z"}};
  for (const TableLine& line : lines) {
    const auto found = line.setting->statistics.find(quantity);
    std::string first, rmse, z;
    if (line.kind == Kind::truth) first = truth_text(*line.setting, quantity);
    if (line.kind == Kind::published) {
      first = published_text(*line.setting, line.setting->published, quantity);
      rmse = published_text(*line.setting, line.setting->published_rmse, quantity);
    }
    if (line.kind == Kind::setting && found != line.setting->statistics.end()) {
      const QuantityStatistics& value = found->second;
      first = mean_text(value);
      rmse = with_error(value.rmse, value.rmse_se);
      const bool has_sign = !quantity.ends_with("_error");  // what is the size of an error has none
      if (has_sign && !std::isnan(value.bias_z)) z = fmt::format("{:+.1f}", value.bias_z);
    }
    columns[0].push_back(first);
    columns[1].push_back(rmse);
    columns[2].push_back(z);
  }
  return columns;
}

// ---- tables -----------------------------------------------------------------------------------------------

/// The settings that have rows, in the order of the study, then of the rows.
std::vector<Setting> collect(const Study& study, const std::vector<ResultRow>& rows) {
  std::vector<Setting> settings;
  std::map<std::string, std::size_t> index;
  const auto setting_of = [&](const std::string& label) -> Setting& {
    const auto [position, is_new] = index.try_emplace(label, settings.size());
    if (is_new) settings.emplace_back().label = label;
    return settings[position->second];
  };
  for (const StudySetting& setting : study.settings) {
    setting_of(setting.label).published = setting.published;
    setting_of(setting.label).published_rmse = setting.published_rmse;
  }
  for (const ResultRow& row : rows) {
    Setting& setting = setting_of(row.label);
    setting.gradients.try_emplace(row.replicate, row.gradients);
    auto& [estimates, truths] = setting.samples[row.quantity];
    estimates.push_back(row.estimate);
    truths.push_back(row.truth);
  }
  std::erase_if(settings, [](const Setting& setting) { return setting.samples.empty(); });
  for (Setting& setting : settings) {
    for (const auto& [quantity, sample] : setting.samples) {
      setting.statistics[quantity] = replicate_statistics(sample.first, sample.second);
    }
  }
  return settings;
}

/// The lines of one group: the common truth, the settings, below each what belongs to it alone.
std::vector<TableLine> lines_of(const std::vector<Setting>& settings,
                                const std::vector<std::string>& quantities) {
  const auto any = [&](const Setting& setting, const auto& text) {
    return std::any_of(quantities.begin(), quantities.end(),
                       [&](const std::string& quantity) { return !text(setting, quantity).empty(); });
  };
  const bool shared = std::all_of(settings.begin(), settings.end(), [&](const Setting& setting) {
    return std::all_of(quantities.begin(), quantities.end(), [&](const std::string& quantity) {
      return truth_text(setting, quantity) == truth_text(settings[0], quantity);
    });
  });
  std::vector<TableLine> lines;
  if (shared && any(settings[0], truth_text)) lines.push_back({Kind::truth, &settings[0]});
  for (const Setting& setting : settings) {
    lines.push_back({Kind::setting, &setting});
    if (!shared && any(setting, truth_text)) lines.push_back({Kind::truth, &setting});
    const auto published = [](const Setting& s, const std::string& quantity) {
      return published_text(s, s.published, quantity) + published_text(s, s.published_rmse, quantity);
    };
    if (any(setting, published)) lines.push_back({Kind::published, &setting});
  }
  return lines;
}

/// Whether a column has text below its header, or a row beside its label.
bool has_text(const std::vector<std::string>& cells) {
  return std::any_of(cells.begin() + 1, cells.end(), [](const std::string& cell) { return !cell.empty(); });
}

std::size_t total_width(const std::vector<Column>& columns) {
  std::size_t sum = 1;  // Markdown: "| " before the first cell, " |" after the last, " | " between them
  for (const Column& column : columns) {
    std::size_t most = 0;
    for (const std::string& cell : column) most = std::max(most, display_width(cell));
    sum += most + 3;
  }
  return sum;
}

void append_group(std::vector<StudyTable>& tables, const std::string& title,
                  const std::vector<Setting>& settings, const std::vector<std::string>& quantities,
                  const Verdicts& verdicts, std::size_t width) {
  const std::vector<TableLine> lines = lines_of(settings, quantities);
  const Column labels = make_column("setting", lines, [](const TableLine& line) -> std::string {
    if (line.kind == Kind::setting) return line.setting->label;
    return line.kind == Kind::truth ? "  truth" : "  published";
  });
  const Column gradients = make_column("gradients", lines, [](const TableLine& line) {
    return line.kind == Kind::setting ? gradients_text(*line.setting) : "";
  });
  const Column verdict = make_column("verdict", lines, [&](const TableLine& line) {
    const auto found = verdicts.find(line.setting->label);
    return line.kind == Kind::setting && found != verdicts.end() ? found->second : "";
  });

  std::vector<Column> columns{labels, gradients};
  if (has_text(verdict)) columns.push_back(verdict);
  bool is_first = true, has_quantity = false;
  const auto finish = [&] {
    StudyTable table{is_first ? title : title + " (continued)", {}};
    for (std::size_t i = 0; i <= lines.size(); ++i) {
      std::vector<std::string> row;
      row.reserve(columns.size());
      for (const Column& column : columns) row.push_back(column[i]);
      // Truth and published values of the other tables of this group would be empty lines here.
      if (i == 0 || lines[i - 1].kind == Kind::setting || has_text(row)) table.rows.push_back(std::move(row));
    }
    tables.push_back(std::move(table));
    columns = {labels};
    is_first = has_quantity = false;
  };
  for (const std::string& quantity : quantities) {
    std::vector<Column> block = quantity_columns(quantity, lines);
    std::erase_if(block, [](const Column& column) { return !has_text(column); });
    if (block.empty()) continue;
    if (has_quantity && total_width(columns) + total_width(block) - 1 > width) finish();
    columns.insert(columns.end(), block.begin(), block.end());
    has_quantity = true;
  }
  finish();
}

}  // namespace

std::vector<StudyTable> study_tables(const Study& study, const std::vector<ResultRow>& rows,
                                     const Verdicts& verdicts, std::size_t width) {
  std::vector<std::string> quantities = study.quantities;
  std::set<std::string> known;
  for (const ResultRow& row : rows) {
    if (study.quantities.empty() && !row.quantity.starts_with("base_") && known.insert(row.quantity).second)
      quantities.push_back(row.quantity);
  }
  const std::vector<Setting> settings = collect(study, rows);
  const auto first_word = [](const Setting& setting) {
    return setting.label.substr(0, setting.label.find(' '));
  };
  std::map<std::string, int> sharing;
  for (const Setting& setting : settings) ++sharing[first_word(setting)];

  std::vector<std::pair<std::string, std::vector<Setting>>> groups;
  for (const Setting& setting : settings) {
    const std::string name = sharing[first_word(setting)] > 1 ? first_word(setting) : "";
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& some) { return some.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(setting);
  }
  std::vector<StudyTable> tables;
  if (!study.pooled.empty() && !rows.empty()) tables.push_back(pooled_table(study, rows));
  for (const auto& [name, members] : groups) {
    const std::string title = !name.empty() ? name : groups.size() > 1 ? "Other settings" : "All settings";
    append_group(tables, title, members, quantities, verdicts, width);
  }
  return tables;
}

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace lockstep
