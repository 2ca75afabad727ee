// SPDX-License-Identifier: Apache-2.0
#include "host/formats/data.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "host/util/errors.hpp"
#include "host/util/json_text.hpp"
#include "host/util/settings.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Values take up to 20 times the memory of their text ("[]," and "1," are the worst), and a target makes
/// copies of them.
constexpr double kMemoryPerByte = 4 * 20;

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
      table.rows.push_back(std::move(row));
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

/// Does the cell stand for a number, if only for one that is missing?
bool is_numeric(const std::string& text) {
  const json cell = cell_value(text);
  if (cell.is_number()) return true;
  const auto& word = cell.get_ref<const std::string&>();
  const char* end = word.data() + word.size();
  double number = 0;
  const char* stop = std::from_chars(word.data(), end, number).ptr;  // not finite, or beyond the doubles
  return word == "NA" || (!word.empty() && stop == end);
}

/// Where the numbers of a matrix begin: after a line of names, if there is one.
std::size_t first_row(const Table& table, const fs::path& path) {
  const std::vector<std::string>& row = table.rows[0];
  const auto numeric = std::count_if(row.begin(), row.end(), is_numeric);
  if (numeric == static_cast<std::ptrdiff_t>(row.size())) return 0;
  const bool unnamed =
      std::any_of(row.begin(), row.end(), [](const auto& text) { return cell_value(text) == ""; });
  if (numeric > 0 || unnamed)
    throw UserError(fmt::format(
        "{}, line {}: some cells hold names and others do not (so it is neither a header nor a row "
        "of numbers). Correct the line.",
        path.string(), table.lines[0]));
  if (table.rows.size() == 1)
    throw UserError(fmt::format("{} ends after its header (a matrix needs rows). Give some.", path.string()));
  return 1;
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
  Table table = parse_csv(read_user_text(path, kMemoryPerByte), path);
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

/// A matrix [row][column], or a vector where it has a single row or column.
json load_matrix(const fs::path& path) {
  json rows = load_rows(path);
  if (rows.size() == 1) return rows[0];
  if (rows[0].size() > 1) return rows;
  json column = json::array();
  for (const json& row : rows) column.push_back(row[0]);
  return column;
}

DataSet load_folder(const fs::path& folder) {
  DataSet data;
  for (const fs::path& path : files_in(folder)) {
    const std::string name = path.stem().string(), ending = path.extension().string();
    if (ending == ".csv") data.values[name] = load_matrix(path);
    if (ending == ".npy") data.arrays[name] = load_npy(path);
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

json load_json(const fs::path& path) {
  const std::string text = read_user_text(path, kMemoryPerByte), name = path.string();
  json data;
  try {
    data = parse_json(text);
  } catch (const BadJson& bad) {
    using Fault = BadJson::Fault;
    if (bad.fault == Fault::range)
      throw UserError(
          fmt::format("{} holds a number beyond the range of a double (1.8e308). Rescale the data.", name));
    if (bad.fault == Fault::nested)
      throw UserError(
          fmt::format("{} nests more than {} arrays or objects in each other (no data have so many indices). "
                      "Correct it.",
                      name, kMostNested));
    if (bad.fault == Fault::repeated)
      throw UserError(
          fmt::format("{} gives '{}' twice (one of them would be ignored). Remove one.", name, bad.key));
    const std::string before = text.substr(0, bad.at);
    const std::size_t line_end = before.find_last_of('\n');
    throw UserError(
        fmt::format("{}, line {}, column {}: this is not JSON (note that JSON has no NaN or Infinity, no "
                    "comments and no comma before a bracket). Correct it.",
                    name, 1 + std::count(before.begin(), before.end(), '\n'),
                    1 + bad.at - (line_end == std::string::npos ? 0 : line_end + 1)));
  }
  if (data.is_object()) return data;
  throw UserError(
      fmt::format("{} holds {} (data are read by name). Make it an object: {{ \"NAME\": VALUE, ... }}.", name,
                  shown(data)));
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
  for (const std::string& place : looked)
    if (const std::string packed = place + ".gz"; fs::exists(packed, ignored))
      throw UserError(fmt::format(
          "the data {} are compressed, {} (lockstep reads plain files). Unpack them: gunzip -k {}",
          path.string(), packed, packed));
  const bool named_in_file = !relative_to.empty() && !fs::is_directory(relative_to, ignored);
  throw UserError(fmt::format(
      "the data {} were not found (looked for {}). Check the name, or give their folder with "
      "--data-dir or $LOCKSTEP_DATA{}.",
      path.string(), fmt::join(looked, ", "),
      named_in_file
          ? fmt::format("; what makes them, {} may say in its first lines", relative_to.filename().string())
          : ""));
}

json load_rows(const fs::path& path) {
  const Table table = read_table(path);
  return cell_values(table, first_row(table, path));
}

DataSet load_data(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw UserError(
        fmt::format("{} does not exist (there are no data to read). Check the name.", path.string()));
  if (fs::is_directory(path, ignored)) return load_folder(path);
  const std::string ending = path.extension().string();
  if (ending == ".json") return {load_json(path), {}};
  if (ending == ".csv") {
    const Table table = read_table(path);
    if (std::all_of(table.rows[0].begin(), table.rows[0].end(), is_numeric))
      return {json{{"table", cell_values(table, 0)}}, {}};
    return {load_columns(table, path), {}};
  }
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
