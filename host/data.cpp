// SPDX-License-Identifier: Apache-2.0
#include "host/data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "host/errors.hpp"
#include "host/files.hpp"
#include "host/settings.hpp"

namespace lockstep {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A cell of a table: a finite number where the whole cell reads as one, otherwise its text.
json cell_value(std::string text) {
  const std::size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  text = first == std::string::npos ? "" : text.substr(first, last - first + 1);
  const char* begin = text.data() + (text.starts_with("+") ? 1 : 0);  // from_chars knows no plus sign
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, whole); error == std::errc() && stop == end)
    return whole;
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end && std::isfinite(number)) return number;
  return text;
}

struct Table {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  // where each row begins, from 1
};

/// Rows and cells of a CSV text (RFC 4180: quoted cells may hold commas, line ends and doubled quotes); empty
/// lines are skipped.
Table parse_csv(const std::string& text, const fs::path& path) {
  Table table;
  std::vector<std::string> row;
  std::string cell;
  bool quoted = false;
  std::size_t line = 1, row_line = 1, quote_line = 0;
  const auto end_row = [&] {
    row.push_back(std::exchange(cell, {}));
    const bool blank = row.size() == 1 && row[0].find_first_not_of(" \t") == std::string::npos;
    if (!blank) {
      table.rows.push_back(row);
      table.lines.push_back(row_line);
    }
    row.clear();
    row_line = line;
  };
  for (std::size_t i = text.starts_with("\xEF\xBB\xBF") ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c == '"' && !doubled)
        quoted = false;
      else
        cell += c;
      if (doubled) ++i;
    } else if (c == '"') {
      quoted = true;
      quote_line = line;
    } else if (c == ',') {
      row.push_back(std::exchange(cell, {}));
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      cell += c;
    }
  }
  if (quoted)
    throw UserError(
        fmt::format("{}, line {}: a quoted cell never ends (the rest of the file would be one cell). "
                    "Add the closing quote.",
                    path.string(), quote_line));
  if (!cell.empty() || !row.empty()) end_row();
  for (std::size_t i = 1; i < table.rows.size(); ++i)
    if (table.rows[i].size() != table.rows[0].size())
      throw UserError(
          fmt::format("{}, line {}: {} cells where the first line has {} (a table needs equal rows). "
                      "Complete or remove the line.",
                      path.string(), table.lines[i], table.rows[i].size(), table.rows[0].size()));
  return table;
}

bool all_numbers(const std::vector<std::string>& row) {
  return std::all_of(row.begin(), row.end(),
                     [](const std::string& cell) { return cell_value(cell).is_number(); });
}

json load_columns(const Table& table, const fs::path& path) {
  json columns = json::object();
  for (std::size_t j = 0; j < table.rows[0].size(); ++j) {
    const json name_cell = cell_value(table.rows[0][j]);
    const std::string name = name_cell.is_string() ? name_cell.get<std::string>() : "";
    if (name.empty() || columns.contains(name))
      throw UserError(
          fmt::format("{}, line {}: column {} of the header is '{}' (each column needs a name of its own, "
                      "no number). Name it.",
                      path.string(), table.lines[0], j + 1, table.rows[0][j]));
    json& column = columns[name] = json::array();
    for (std::size_t i = 1; i < table.rows.size(); ++i) column.push_back(cell_value(table.rows[i][j]));
  }
  return columns;
}

Table read_table(const fs::path& path) {
  Table table = parse_csv(read_text(path), path);
  if (table.rows.empty())
    throw UserError(fmt::format("{} is empty (there is nothing to read). Give a table.", path.string()));
  return table;
}

json cell_values(const Table& table, std::size_t first_row) {
  json rows = json::array();
  for (std::size_t i = first_row; i < table.rows.size(); ++i) {
    json& row = rows.emplace_back(json::array());
    for (const std::string& cell : table.rows[i]) row.push_back(cell_value(cell));
  }
  return rows;
}

json load_csv(const fs::path& path, bool may_lack_header) {
  const Table table = read_table(path);
  if (!may_lack_header || !all_numbers(table.rows[0])) return load_columns(table, path);
  json rows = cell_values(table, 0);
  if (rows.size() == 1) return rows[0];
  if (rows[0].size() > 1) return rows;
  json column = json::array();
  for (const json& row : rows) column.push_back(row[0]);
  return column;
}

DataSet load_folder(const fs::path& folder) {
  DataSet data;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().stem().string(), ending = entry.path().extension().string();
    if (ending == ".csv") data.values[name] = load_csv(entry.path(), true);
    if (ending == ".npy") data.arrays[name] = load_npy(entry.path());
    if (data.values.contains(name) && data.arrays.contains(name))
      throw UserError(
          fmt::format("{} holds {}.csv and {}.npy (one of them would be ignored). Remove or rename one.",
                      folder.string(), name, name));
  }
  if (data.values.empty() && data.arrays.empty())
    throw UserError(
        fmt::format("{} is a folder without .csv or .npy files (a folder stands for the tables in it). "
                    "Give a folder of them, or a .json, .csv, .npz or .npy file.",
                    folder.string()));
  return data;
}

json parse_json(const std::string& text, const fs::path& path) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string repeated;
  const json::parser_callback_t watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      repeated = value.get<std::string>();
    return true;
  };
  json data;
  try {
    data = json::parse(text, watch);
  } catch (const json::parse_error& error) {
    const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const std::string before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t column =
        at - (before.find_last_of('\n') == std::string::npos ? 0 : before.find_last_of('\n') + 1);
    throw UserError(
        fmt::format("{}, line {}, column {}: this is not JSON (note that JSON has no NaN or Infinity, no "
                    "comments and no comma before a bracket). Correct it.",
                    path.string(), line, column + 1));
  } catch (const json::out_of_range&) {
    throw UserError(fmt::format("{} holds a number beyond the range of a double (1.8e308). Rescale the data.",
                                path.string()));
  }
  if (!data.is_object())
    throw UserError(
        fmt::format("{} holds {} (data are read by name). Make it an object: {{ \"NAME\": VALUE, ... }}.",
                    path.string(), shown(data)));
  if (!repeated.empty())
    throw UserError(fmt::format("{} gives '{}' twice (one of them would be ignored). Remove one.",
                                path.string(), repeated));
  return data;
}

}  // namespace

fs::path resolve_data_path(const fs::path& path, const fs::path& data_dir, const fs::path& relative_to) {
  if (path.empty())
    throw UserError("the data file has an empty name (nothing can be read). Give a file with --data.");
  std::error_code ignored;
  std::vector<fs::path> places;
  if (!relative_to.empty())
    places.push_back((fs::is_directory(relative_to, ignored) ? relative_to : relative_to.parent_path()) /
                     path);
  places.push_back(path);
  if (path.is_relative()) {
    if (!data_dir.empty()) places.push_back(data_dir / path);
    if (const char* folder = std::getenv("LOCKSTEP_DATA"); folder && *folder)
      places.push_back(fs::path(folder) / path);
  }
  std::vector<std::string> looked;
  for (const fs::path& place : places) {
    if (fs::exists(place, ignored)) return place;
    if (std::find(looked.begin(), looked.end(), place.string()) == looked.end())
      looked.push_back(place.string());
  }
  throw UserError(
      fmt::format("the data {} were not found (looked for {}). Check the name, or give their folder with "
                  "--data-dir or $LOCKSTEP_DATA.",
                  path.string(), fmt::join(looked, ", ")));
}

json load_rows(const fs::path& path) {
  const Table table = read_table(path);
  return cell_values(table, all_numbers(table.rows[0]) ? 0 : 1);
}

DataSet load_data(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw UserError(
        fmt::format("{} does not exist (there are no data to read). Check the name.", path.string()));
  if (fs::is_directory(path, ignored)) return load_folder(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return {parse_json(read_text(path), path), {}};
  if (ending == ".csv") return {load_csv(path, false), {}};
  if (ending == ".npz") return {json::object(), load_npz(path)};
  if (ending == ".npy") {
    DataSet data;
    data.arrays.emplace(path.stem().string(), load_npy(path));
    return data;
  }
  if (ending == ".zip" || ending == ".gz")
    throw UserError(
        fmt::format("{} is compressed (compressed files are not read). Unpack it first.", path.string()));
  throw UserError(fmt::format(
      "{} has the unknown ending '{}' (the ending tells the format). Use .json, .csv, .npz or .npy.",
      path.string(), ending));
}

}  // namespace lockstep
