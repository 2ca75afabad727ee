// SPDX-License-Identifier: Apache-2.0
#include "host/formats/toml_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

// toml++ 3.3 assumes, where NDEBUG is set, what its next lines find to be wrong and report, such as the key
// of
// [=]: to the compiler that is undefined behaviour, and to its assertions the end of the program.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_MAX_NESTED_VALUES 64  // brackets in each other, as kMostNested
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <sstream>

#include "host/util/errors.hpp"
#include "host/util/json_text.hpp"
#include "host/util/user_file.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Pointer = Settings::json_pointer;

[[noreturn]] void refuse_nested(const fs::path& path, std::size_t line) {
  throw UserError(
      fmt::format("{}, line {}: more than {} tables or arrays in each other (no option has so many). Correct "
                  "the line.",
                  path.string(), line, kMostNested));
}

/// Behind the quoted text that begins at `i`: one line, or several between three quotes.
std::size_t skip_quoted(const std::string& text, std::size_t i) {
  const std::string quote(1, text[i]);
  const bool several = text.compare(i, 3, quote + quote + quote) == 0;
  for (i += several ? 3 : 1; i < text.size(); ++i) {
    if (text[i] == '\\' && quote == "\"") {
      ++i;
    } else if (!several && (text[i] == quote[0] || text[i] == '\n')) {
      return i + 1;
    } else if (several && text.compare(i, 3, quote + quote + quote) == 0) {
      i += 3;
      for (int more = 0; more < 2 && i < text.size() && text[i] == quote[0]; ++more)
        ++i;  // of the text itself
      return i;
    }
  }
  return text.size();
}

/// Each dot of a key is a table in the last one, and toml++ calls itself for each; it limits brackets only.
/// Throws UserError for a key with more dots than kMostNested.
void check_keys(const std::string& text, const fs::path& path) {
  int dots = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = skip_quoted(text, i);
      continue;
    }
    if (c == '#') i = std::min(text.find('\n', i), text.size());
    if (std::string_view("=,[]{}#\n").find(c) != std::string_view::npos) dots = 0;
    if (c == '.' && ++dots > kMostNested)
      refuse_nested(path, 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + i, '\n')));
    ++i;
  }
}

Settings to_json(const toml::node& node, const Pointer& at, TomlFile& file, int depth = 0) {
  if (depth > kMostNested) refuse_nested(file.path, node.source().begin.line);
  file.lines[at.to_string()] = node.source().begin.line;
  if (const toml::table* table = node.as_table()) {
    Settings object = Settings::object();
    for (const auto& [key, value] : *table)
      object[std::string(key.str())] = to_json(value, at / std::string(key.str()), file, depth + 1);
    return object;
  }
  if (const toml::array* array = node.as_array()) {
    Settings list = Settings::array();
    for (const toml::node& entry : *array) list.push_back(to_json(entry, at / list.size(), file, depth + 1));
    return list;
  }
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  std::ostringstream text;  // a date or a time
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// A string as JSON quotes it is a TOML string too, but for the character DEL.
std::string toml_quoted(const std::string& text) {
  std::string quoted = Settings(text).dump(-1, ' ', false, Settings::error_handler_t::replace);
  for (std::size_t at = quoted.find('\x7F'); at != std::string::npos; at = quoted.find('\x7F'))
    quoted.replace(at, 1, "\\u007F");
  return quoted;
}

}  // namespace

std::string TomlFile::name(const std::string& pointer, const std::string& key) const {
  const auto line = lines.find(pointer);
  if (line == lines.end()) return fmt::format("{} ({})", key, path.string());
  return fmt::format("{} ({}, line {})", key, path.string(), line->second);
}

TomlFile read_toml(const fs::path& path) {
  TomlFile file;
  file.path = path;
  try {
    constexpr double memory_per_byte = 200;  // of toml++, of JSON and of the line of each value
    const std::string text = read_user_text(path, memory_per_byte);
    check_keys(text, path);
    const toml::table table = toml::parse(text, path.string());
    file.values = to_json(table, Pointer(), file);
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw UserError(fmt::format("{}, line {}: this is not TOML ({}). Correct the line.", path.string(),
                                error.source().begin.line, reason));
  }
  return file;
}

std::string toml_key(const std::string& key) {
  const auto is_bare = [](unsigned char c) { return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-'); };
  return !key.empty() && std::all_of(key.begin(), key.end(), is_bare) ? key : toml_quoted(key);
}

std::string toml_text(const Settings& value) {
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const auto& item : value.items())
      parts.push_back(fmt::format("{} = {}", toml_key(item.key()), toml_text(item.value())));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (value.is_array()) {
    for (const Settings& entry : value) parts.push_back(toml_text(entry));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (value.is_string()) return toml_quoted(value.get<std::string>());
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());  // nan, inf and -inf, the same words in TOML
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > largest)
    return fmt::format("\"{}\"", value.get<std::uint64_t>());  // beyond TOML's integers: in quotes
  return value.is_null() ? "\"\"" : value.dump();
}

}  // namespace lockstep
