// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "host/studies/study_tables.hpp"
#include "host/util/files.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Verdicts = std::map<std::string, std::string>;

constexpr std::size_t terminal_width = 160;

std::string legend(const Study& study) {
  std::string text =
      "Each quantity: mean ± standard deviation over the replicates; RMSE against the truth ± its "
      "standard error (bootstrap over\nreplicates); z: mean error / (sd / sqrt(replicates)), as the normal "
      "deviate that is as rare as this is of so many replicates.\ngradients: of the target, mean per "
      "replicate.";
  const bool published = std::any_of(study.settings.begin(), study.settings.end(), [](const StudySetting& s) {
    return !s.published.empty() || !s.published_rmse.empty();
  });
  return published ? text + " published: mean ± standard\ndeviation as printed in the paper." : text;
}

constexpr const char* style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0;font-size:13px;font-variant-numeric:tabular-nums}"
    "th,td{padding:.2em .7em;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child{text-align:left}tr.aside td{color:#666}"
    "tr.aside td:first-child{padding-left:2em}th{border-bottom:2px solid #888}"
    ".wide{overflow-x:auto}img{max-width:100%;height:auto}";

std::string title_of(const Study& study) { return study.title.empty() ? study.name : study.title; }

/// How many replicates there are, and which settings have not run.
std::string coverage(const Study& study, const std::vector<ResultRow>& rows) {
  std::map<std::string, std::set<int>> replicates;
  for (const ResultRow& row : rows) replicates[row.label].insert(row.replicate);
  std::size_t least = std::numeric_limits<std::size_t>::max(), most = 0;
  for (const auto& [label, numbers] : replicates) {
    least = std::min(least, numbers.size());
    most = std::max(most, numbers.size());
  }
  std::string missing;
  for (const StudySetting& setting : study.settings) {
    if (!replicates.contains(setting.label)) missing += (missing.empty() ? "" : "; ") + setting.label;
  }
  std::string text = "No results yet.";
  if (most > 0) {
    text = fmt::format("{} setting{}, ", replicates.size(), replicates.size() == 1 ? "" : "s");
    text += least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    text += most == 1 ? " replicate each." : " replicates each.";
  }
  return missing.empty() ? text : text + " Not run: " + missing + ".";
}

// ---- Markdown ---------------------------------------------------------------------------------------------

/// Text that must stay one cell.
std::string markdown_cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? "\\|" : std::string(1, c == '\n' ? ' ' : c);
  return result;
}

std::string markdown(const StudyTable& table) {
  std::vector<std::vector<std::string>> rows = table.rows;
  std::vector<std::size_t> widths(rows[0].size(), 3);
  for (auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      row[j] = markdown_cell(row[j]);
      widths[j] = std::max(widths[j], display_width(row[j]));
    }
  }
  std::string text = fmt::format("## {}\n\n", table.title);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < widths.size(); ++j) {
      const std::string space(widths[j] - display_width(rows[i][j]), ' ');
      text += "| " + (j == 0 ? rows[i][j] + space : space + rows[i][j]) + " ";
    }
    text += "|\n";
    for (std::size_t j = 0; i == 0 && j < widths.size(); ++j) {
      text += j == 0 ? "|" + std::string(widths[j] + 2, '-') : "|" + std::string(widths[j] + 1, '-') + ":";
    }
    if (i == 0) text += "|\n";
  }
  return text + "\n";
}

// ---- HTML -------------------------------------------------------------------------------------------------

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string html(const StudyTable& table) {
  std::string text = table.title.empty() ? "" : fmt::format("<h2>{}</h2>\n", escaped(table.title));
  text += "<div class=\"wide\"><table>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const bool aside = table.rows[i][0].starts_with("  ");
    text += aside ? "<tr class=\"aside\">" : "<tr>";
    const char* tag = i == 0 ? "th" : "td";
    for (const std::string& cell : table.rows[i]) text += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

/// RFC 4648, with padding.
std::string base64(const std::string& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned block = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      block = block << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? digits[block >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

std::string embedded(const fs::path& picture) {
  if (!fs::is_regular_file(picture)) return "";
  const char* type = picture.extension() == ".svg" ? "image/svg+xml" : "image/png";
  return fmt::format("<p><img alt=\"{}\" src=\"data:{};base64,{}\"></p>\n", escaped(picture.stem().string()),
                     type, base64(read_text(picture)));
}

}  // namespace

std::string study_table(const Study& study, const std::vector<ResultRow>& rows, const Verdicts& verdicts) {
  std::string text = fmt::format("# {}\n\n", title_of(study));
  if (!study.description.empty()) text += study.description + "\n\n";
  text += coverage(study, rows) + "\n\n" + legend(study) + "\n\n";
  for (const StudyTable& table : study_tables(study, rows, verdicts, terminal_width)) text += markdown(table);
  text.pop_back();
  return text;
}

std::string study_report(const Study& study, const std::vector<ResultRow>& rows,
                         const std::vector<TimingRow>& timings, const Verdicts& verdicts,
                         const std::vector<fs::path>& pictures,
                         const std::map<std::string, std::string>& environment) {
  const std::string title = escaped(title_of(study));
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>{}</title>\n<style>{}</style>\n</head>\n"
      "<body>\n<h1>{}</h1>\n",
      title, style, title);
  if (!study.description.empty()) text += "<p>" + escaped(study.description) + "</p>\n";
  text += "<p>" + escaped(coverage(study, rows)) + "</p>\n";
  for (const fs::path& picture : pictures) text += embedded(picture);
  text += "<p>" + escaped(legend(study)) + "</p>\n";
  for (const StudyTable& table : study_tables(study, rows, verdicts, terminal_width)) text += html(table);
  if (!timings.empty()) {
    StudyTable table{"Timings", {{"setting", "seconds", "gradients per second"}}};
    for (const TimingRow& row : timings) {
      table.rows.push_back(
          {row.label, fmt::format("{:.3g}", row.seconds), fmt::format("{:.3g}", row.gradients_per_s)});
    }
    text += html(table);
  }
  if (!environment.empty()) {
    StudyTable table{"Environment", {{"what", "value"}}};
    for (const auto& [key, value] : environment) table.rows.push_back({key, value});
    text += html(table);
  }
  return text + "</body>\n</html>\n";
}

}  // namespace lockstep
