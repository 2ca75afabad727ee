// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep {

/// Settings of a target or a sampler: a flat JSON object, KEY -> number, string, boolean or array.
using Settings = nlohmann::json;

/// A typed, checked view of settings. Ask for every key with its default, then call finish():
///
///     SettingsReader settings(run.sampler_settings, "sampler pe");
///     const double step_size = settings.positive("step_size", 0.1);
///     const auto copies = settings.integer("pseudo_samples", 2, 1, 64);
///     settings.finish();   // names what nobody asked for
///
/// A key that is absent yields its default, which is not checked. Every other complaint is a UserError.
class SettingsReader {
 public:
  /// How errors name keys: as these say, and a key that is not among them by itself.
  using KeyNames = std::map<std::string, std::string>;
  static constexpr std::int64_t any_integer = std::numeric_limits<std::int64_t>::max();

  /// `what`: whose settings these are, such as "target mixture20" or "sampler pe". Without `names` a key is
  /// "setting KEY of WHAT". Throws UserError when `settings` is no JSON object (null counts as empty).
  SettingsReader(Settings settings, std::string what, std::optional<KeyNames> names = {});

  /// Is the key given? Counts as asking for it.
  bool has(const std::string& key);

  /// T: double (finite), int, int64_t, bool, string, vector<double> or vector<string>.
  /// A whole number may be written 1e6; a text is never made of a number, nor a number of a text.
  template <class T>
  T get(const std::string& key, const T& fallback);

  std::string get(const std::string& key, const char* fallback);

  /// Squares of these are numbers in single precision.
  static constexpr double kLeastPositive = 1e-15, kMostPositive = 1e15;
  double positive(const std::string& key, double fallback);      ///< from kLeastPositive to kMostPositive
  double non_negative(const std::string& key, double fallback);  ///< >= 0
  double in_range(const std::string& key, double fallback, double low, double high);  ///< low <= x <= high
  /// As many numbers from `low` to `high`, given as an array or as one for all of them.
  std::vector<double> numbers(const std::string& key, double fallback, int count, double low, double high);
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t low,
                       std::int64_t high = any_integer);
  std::uint64_t seed(const std::string& key,
                     std::uint64_t fallback);  ///< 0 to 2^64 - 1; digits in quotes too
  std::string one_of(const std::string& key, const std::string& fallback,
                     const std::vector<std::string>& names);
  Settings object(const std::string& key);  ///< a nested table; {} when absent

  /// Throws a UserError where one of these keys is given, which others make idle: "NAME has no effect
  /// (because)".
  void no_effect(const std::vector<std::string>& keys, const std::string& because);

  /// Throws a UserError naming the first key that no call asked for, and the near known ones.
  void finish() const;

  std::vector<std::string> known() const { return {known_.begin(), known_.end()}; }
  /// What was asked for, as it will be used: given values, and defaults for the rest. For summaries.
  const Settings& effective() const { return effective_; }
  /// The UserError for a value of `key` that is not acceptable: "NAME is VALUE (need). Correct it, ...".
  [[noreturn]] void refuse(const std::string& key, const std::string& need) const;

 private:
  const Settings* find(const std::string& key);
  std::string name(const std::string& key) const;
  double number(const std::string& key, const Settings& value) const;
  template <class T>
  T remember(const std::string& key, T value) {
    effective_[key] = value;
    return value;
  }

  Settings settings_;
  std::string what_;
  std::optional<KeyNames> names_;
  std::set<std::string> known_;
  Settings effective_ = Settings::object();
};

template <>
double SettingsReader::get(const std::string& key, const double& fallback);
template <>
std::int64_t SettingsReader::get(const std::string& key, const std::int64_t& fallback);
template <>
int SettingsReader::get(const std::string& key, const int& fallback);
template <>
bool SettingsReader::get(const std::string& key, const bool& fallback);
template <>
std::string SettingsReader::get(const std::string& key, const std::string& fallback);
template <>
std::vector<double> SettingsReader::get(const std::string& key, const std::vector<double>& fallback);
template <>
std::vector<std::string> SettingsReader::get(const std::string& key,
                                             const std::vector<std::string>& fallback);

inline std::string SettingsReader::get(const std::string& key, const char* fallback) {
  return get<std::string>(key, std::string(fallback));
}

/// One `--set target.KEY=VALUE`.
struct SetOption {
  std::string scope;  ///< "target" or "sampler"
  std::string key;
  Settings value;
};

/// VALUE as JSON where it is a number, true, false, an array or a quoted text; otherwise the text itself.
Settings parse_value(std::string_view text);

/// Takes "target.KEY=VALUE" or "sampler.KEY=VALUE" apart. Throws UserError on any other form.
SetOption parse_set(std::string_view text);

/// A JSON value on one short line, for messages.
std::string shown(const Settings& value);

}  // namespace lockstep
