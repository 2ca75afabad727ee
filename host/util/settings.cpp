// SPDX-License-Identifier: Apache-2.0
#include "host/util/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "host/util/errors.hpp"
#include "host/util/json_text.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

/// The whole number a JSON number stands for, if it does: 20, 2e1 and 20.0 alike.
std::optional<std::int64_t> whole_number(const Settings& value) {
  constexpr double exact_limit = 9007199254740992.0;  // 2^53: beyond it a double skips whole numbers
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(SettingsReader::any_integer)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= exact_limit) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string shown(const Settings& value) {
  constexpr std::size_t longest = 48;
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());  // JSON would say null
  std::string text = value.dump(-1, ' ', false, Settings::error_handler_t::replace);
  if (text.size() > longest) {
    std::size_t end = longest - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;  // not inside a UTF-8 letter
    text = text.substr(0, end) + "...";
  }
  return text;
}

SettingsReader::SettingsReader(Settings settings, std::string what, std::optional<KeyNames> names)
    : settings_(std::move(settings)), what_(std::move(what)), names_(std::move(names)) {
  if (settings_.is_null()) settings_ = Settings::object();
  if (!settings_.is_object())
    throw UserError(
        fmt::format("the settings of {} are {} (they must be a table of KEY = VALUE). "
                    "Write them as one.",
                    what_, shown(settings_)));
}

std::string SettingsReader::name(const std::string& key) const {
  if (!names_) return fmt::format("setting {} of {}", key, what_);
  const auto found = names_->find(key);
  return found == names_->end() ? key : found->second;
}

const Settings* SettingsReader::find(const std::string& key) {
  known_.insert(key);
  const auto found = settings_.find(key);
  return found == settings_.end() ? nullptr : &*found;
}

bool SettingsReader::has(const std::string& key) { return find(key) != nullptr; }

void SettingsReader::refuse(const std::string& key, const std::string& need) const {
  const auto found = settings_.find(key);
  throw UserError(fmt::format("{} is {} ({}). Correct it, or leave it out for its default.", name(key),
                              found == settings_.end() ? "missing" : shown(*found), need));
}

double SettingsReader::number(const std::string& key, const Settings& value) const {
  if (!value.is_number()) refuse(key, "it must be a number");
  const double result = value.get<double>();
  if (!std::isfinite(result)) refuse(key, "it must be a finite number");
  return result;
}

template <>
double SettingsReader::get(const std::string& key, const double& fallback) {
  const Settings* value = find(key);
  return remember(key, value ? number(key, *value) : fallback);
}

template <>
std::int64_t SettingsReader::get(const std::string& key, const std::int64_t& fallback) {
  return integer(key, fallback, std::numeric_limits<std::int64_t>::min());
}

template <>
int SettingsReader::get(const std::string& key, const int& fallback) {
  return static_cast<int>(
      integer(key, fallback, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

template <>
bool SettingsReader::get(const std::string& key, const bool& fallback) {
  const Settings* value = find(key);
  if (value && !value->is_boolean()) refuse(key, "it must be true or false");
  return remember(key, value ? value->get<bool>() : fallback);
}

template <>
std::string SettingsReader::get(const std::string& key, const std::string& fallback) {
  const Settings* value = find(key);
  if (value && !value->is_string())
    refuse(key, "it must be a text; put it in quotes if it looks like a number");
  return remember(key, value ? value->get<std::string>() : fallback);
}

template <>
std::vector<double> SettingsReader::get(const std::string& key, const std::vector<double>& fallback) {
  const Settings* value = find(key);
  if (!value) return remember(key, fallback);
  if (!value->is_array()) refuse(key, "it must be an array of numbers such as [0.1, 0.5]");
  std::vector<double> numbers;
  for (const Settings& entry : *value) {
    if (!entry.is_number() || !std::isfinite(entry.get<double>()))
      refuse(key, fmt::format("its entry {} is {}, and all must be finite numbers", numbers.size() + 1,
                              shown(entry)));
    numbers.push_back(entry.get<double>());
  }
  return remember(key, numbers);
}

template <>
std::vector<std::string> SettingsReader::get(const std::string& key,
                                             const std::vector<std::string>& fallback) {
  const Settings* value = find(key);
  if (!value) return remember(key, fallback);
  const auto is_text = [](const Settings& entry) { return entry.is_string(); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_text))
    refuse(key, "it must be an array of texts such as [\"a\", \"b\"]");
  return remember(key, value->get<std::vector<std::string>>());
}

double SettingsReader::positive(const std::string& key, double fallback) {
  const Settings* value = find(key);
  if (value && !(number(key, *value) > 0)) refuse(key, "it must be greater than 0");
  return in_range(key, fallback, kLeastPositive, kMostPositive);
}

double SettingsReader::non_negative(const std::string& key, double fallback) {
  const Settings* value = find(key);
  if (value && !(number(key, *value) >= 0)) refuse(key, "it must not be negative");
  return get<double>(key, fallback);
}

double SettingsReader::in_range(const std::string& key, double fallback, double low, double high) {
  const Settings* value = find(key);
  if (value && !(number(key, *value) >= low && number(key, *value) <= high))
    refuse(key, fmt::format("it must be a number from {:g} to {:g}", low, high));
  return get<double>(key, fallback);
}

std::vector<double> SettingsReader::numbers(const std::string& key, double fallback, int count, double low,
                                            double high) {
  const Settings* value = find(key);
  if (!value || value->is_number())
    return std::vector<double>(std::size_t(count), in_range(key, fallback, low, high));
  auto given = get<std::vector<double>>(key, {});
  for (const double v : given)
    if (!(v >= low && v <= high)) refuse(key, fmt::format("each must be from {:g} to {:g}", low, high));
  if (given.size() == 1) return std::vector<double>(std::size_t(count), given[0]);
  if (int(given.size()) != count) refuse(key, fmt::format("it must be one number, or {} of them", count));
  return given;
}

std::int64_t SettingsReader::integer(const std::string& key, std::int64_t fallback, std::int64_t low,
                                     std::int64_t high) {
  const Settings* value = find(key);
  if (!value) return remember(key, fallback);
  const std::optional<std::int64_t> number = whole_number(*value);
  if (number && *number >= low && *number <= high) return remember(key, *number);
  if (low == std::numeric_limits<std::int64_t>::min()) refuse(key, "it must be a whole number");
  if (high == any_integer) refuse(key, fmt::format("it must be a whole number, at least {}", low));
  refuse(key, fmt::format("it must be a whole number from {} to {}", low, high));
}

std::uint64_t SettingsReader::seed(const std::string& key, std::uint64_t fallback) {
  const Settings* value = find(key);
  if (!value) return remember(key, fallback);
  if (value->is_number_unsigned()) return remember(key, value->get<std::uint64_t>());
  if (value->is_string()) {  // TOML integers end at 2^63 - 1, so a larger seed is written in quotes
    const auto& text = value->get_ref<const std::string&>();
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return remember(key, number);
  }
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number || *number < 0) refuse(key, "it must be a whole number from 0 to 18446744073709551615");
  return remember(key, static_cast<std::uint64_t>(*number));
}

std::string SettingsReader::one_of(const std::string& key, const std::string& fallback,
                                   const std::vector<std::string>& names) {
  const Settings* value = find(key);
  if (!value) return remember(key, fallback);
  if (value->is_string() && std::find(names.begin(), names.end(), value->get<std::string>()) != names.end())
    return remember(key, value->get<std::string>());
  const std::string near = value->is_string() ? did_you_mean(value->get<std::string>(), names) : "";
  throw UserError(fmt::format("{} is {} (it must be one of {}). {}", name(key), shown(*value),
                              fmt::join(names, ", "), near.empty() ? "Choose one of them." : near));
}

Settings SettingsReader::object(const std::string& key) {
  const Settings* value = find(key);
  if (value && !value->is_object()) refuse(key, "it must be a table such as { KEY = VALUE }");
  return remember(key, value ? *value : Settings::object());
}

void SettingsReader::no_effect(const std::vector<std::string>& keys, const std::string& because) {
  for (const std::string& key : keys)
    if (has(key)) throw UserError(fmt::format("{} has no effect ({}). Leave it out", name(key), because));
}

void SettingsReader::finish() const {
  for (const auto& item : settings_.items())
    if (!known_.contains(item.key()))
      throw UserError(fmt::format("{} is unknown (it would have no effect). {}", name(item.key()),
                                  near_or_known(item.key(), known(), "settings")));
}

Settings parse_value(std::string_view text) {
  try {
    Settings value = parse_json(text);
    if (value.is_number() || value.is_boolean() || value.is_array() || value.is_string()) return value;
  } catch (const BadJson& bad) {
    if (bad.fault == BadJson::Fault::nested)
      throw UserError(
          fmt::format("{} nests more than {} arrays in each other (no setting has so many indices). "
                      "Correct it.",
                      text, kMostNested));
  }
  double number = 0;  // such as .5, which JSON does not know
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && text.find('.') != std::string_view::npos)
    return Settings(number);
  return Settings(std::string(text));
}

SetOption parse_set(std::string_view text) {
  const std::size_t equals = text.find('='), dot = text.substr(0, equals).find('.');
  const std::string scope(text.substr(0, std::min(dot, equals)));
  const bool complete = equals != std::string_view::npos && dot != std::string_view::npos && dot + 1 < equals;
  if (!complete)
    throw UserError(
        fmt::format("--set {} is incomplete (a setting needs a scope, a key and a value). "
                    "Write --set target.KEY=VALUE or --set sampler.KEY=VALUE.",
                    text));
  if (scope != "target" && scope != "sampler" && scope != "search")
    throw UserError(fmt::format(
        "--set {} has the unknown scope '{}' (only targets, samplers and the search of lockstep modes "
        "have settings). Write target.KEY=VALUE, sampler.KEY=VALUE or search.KEY=VALUE.",
        text, scope));
  if (equals + 1 == text.size())
    throw UserError(
        fmt::format("--set {} has no value (an empty one means nothing). "
                    "Write {} followed by the value.",
                    text, text));
  return {scope, std::string(text.substr(dot + 1, equals - dot - 1)), parse_value(text.substr(equals + 1))};
}

}  // namespace lockstep
