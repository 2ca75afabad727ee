// SPDX-License-Identifier: Apache-2.0
#include "host/options/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "host/util/errors.hpp"
#include "host/util/settings.hpp"

namespace lockstep {

bool is_init_word(const std::string& init) { return init == "scout" || init.starts_with("uniform"); }

namespace {

namespace fs = std::filesystem;
using Pointer = Settings::json_pointer;

/// `scout`, `uniform:R` with R > 0, or a file that is there.
void check_init(const std::string& init, const std::string& name) {
  if (init == "scout") return;
  if (init.starts_with("uniform")) {
    double radius = 0;
    const char* begin = init.data() + std::min(init.size(), std::string("uniform:").size());
    const char* end = init.data() + init.size();
    const auto [stop, error] = std::from_chars(begin, end, radius);
    const bool good = init.starts_with("uniform:") && error == std::errc() && stop == end;
    if (good && radius > 0 && radius <= SettingsReader::kMostPositive) return;
    throw UserError(
        fmt::format("{} is '{}' (starts are drawn uniformly from [-R, R] in each coordinate, 0 < R <= 1e15). "
                    "Write uniform:R, such as uniform:2.",
                    name, init));
  }
  std::error_code ignored;
  if (!fs::is_regular_file(init, ignored))
    throw UserError(
        fmt::format("{} is '{}' (it must be scout, uniform:R or a file of starting positions, and there is "
                    "no such file). Correct it.",
                    name, init));
}

/// A member of RunOptions, as given or as it is.
struct ReadField {
  SettingsReader& reader;
  const Settings& given;

  void operator()(const char* key, std::string& member, Text) const { member = reader.get(key, member); }
  void operator()(const char* key, fs::path& member, Text) const {
    member = reader.get(key, member.string());
  }
  void operator()(const char* key, bool& member, Toggle) const { member = reader.get(key, member); }
  void operator()(const char* key, Settings& member, Table) const { member.update(reader.object(key)); }
  void operator()(const char* key, std::uint64_t& member, Seed) const { member = reader.seed(key, member); }
  void operator()(const char* key, double& member, Positive) const { member = reader.positive(key, member); }
  void operator()(const char* key, double& member, NonNegative) const {
    member = reader.non_negative(key, member);
  }
  void operator()(const char* key, double& member, const Real& range) const {
    member = reader.in_range(key, member, range.low, range.high);
  }
  void operator()(const char* key, std::string& member, const OneOf& of) const {
    member = reader.one_of(key, member, of.names);
  }
  template <class T>
  void operator()(const char* key, T& member, const Whole& range) const {
    const std::int64_t high = std::min<std::int64_t>(range.high, std::numeric_limits<T>::max());
    member = static_cast<T>(reader.integer(key, member, range.low, high));
  }
  void operator()(const char* key, std::int64_t& member, Draws) const {
    if (!reader.has(key)) return;
    const Settings& wanted = given[key];
    if (wanted.is_boolean())
      member = wanted.get<bool>() ? kUsualDraws : 0;
    else if (wanted == "all")
      member = kAllDraws;
    else if (!wanted.is_number())
      reader.refuse(key, "it must be a whole number from 1, or all");
    else
      member = reader.integer(key, member, 1);
  }
};

struct WriteField {
  nlohmann::ordered_json& values;

  template <class T>
  void operator()(const char* key, const T& member, auto&&) const {
    values[key] = member;
  }
  void operator()(const char* key, const fs::path& member, Text) const { values[key] = member.string(); }
  void operator()(const char* key, std::int64_t member, Draws) const {
    if (member == kAllDraws)
      values[key] = "all";
    else if (member == 0)
      values[key] = false;
    else
      values[key] = member;
  }
};

std::string absolute_if_there(const fs::path& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(path, ignored) ? fs::absolute(path).lexically_normal().string()
                                                    : path.string();
}

}  // namespace

std::string GivenOptions::name(const std::string& key) const {
  const auto found = names.find(key);
  return found == names.end() ? key : found->second;
}

void GivenOptions::set(const std::string& key, Settings value, const std::string& name) {
  values[key] = std::move(value);
  names[key] = name;
}

void GivenOptions::override_with(const GivenOptions& stronger) {
  if (stronger.values.contains("iterations")) values.erase("gradients");
  if (stronger.values.contains("gradients")) values.erase("iterations");
  for (const auto& item : stronger.values.items()) {
    Settings value = item.value();
    if (item.key().ends_with("_settings") && value.is_object() && values.contains(item.key())) {
      value = values[item.key()];
      value.update(item.value());
    }
    set(item.key(), value, stronger.name(item.key()));
  }
}

GivenOptions options_in(const TomlFile& file, const std::string& pointer, bool data_too) {
  GivenOptions given;
  for (const auto& item : file.values.at(Pointer(pointer)).items()) {
    std::string key = item.key();
    std::replace(key.begin(), key.end(), '-', '_');
    if (key == "method") key = "sampler";
    const std::string name = file.name((Pointer(pointer) / item.key()).to_string(), item.key());
    if (given.values.contains(key))
      throw UserError(
          fmt::format("{} and {} say the same (one would be ignored). Keep one.", given.name(key), name));
    Settings value = item.value();
    if (value.is_string() &&
        ((key == "init" && !is_init_word(value)) || ((key == "data" || key == "modes") && data_too))) {
      const fs::path beside = file.path.parent_path() / value.get<std::string>();
      std::error_code ignored;
      if (fs::exists(beside, ignored)) value = beside.string();
    }
    given.set(key, value, name);
  }
  return given;
}

void apply_run_options(const GivenOptions& given, RunOptions& run) {
  SettingsReader reader(given.values, "the run", given.names);
  const bool has_iterations = reader.has("iterations"), has_gradients = reader.has("gradients");
  const bool has_se = reader.has("se");
  if (has_iterations && has_gradients)
    throw UserError(
        fmt::format("{} and {} are both given (they are two ways to say how long a run is). Keep one.",
                    given.name("iterations"), given.name("gradients")));
  if (has_iterations) run.gradients = 0;
  RunOptions::fields(run, ReadField{reader, given.values});
  if (reader.has("init")) check_init(run.init, given.name("init"));
  run.usual_length = run.command == "sample" && !has_iterations && !has_gradients && !has_se;
  if (run.command == "evidence") {
    if (!reader.has("chains")) run.chains = 0;  // by the budget
    if (!has_iterations && !has_gradients) {
      run.unbounded = !has_se;
      if (!has_se) run.se = 0.02;
      run.gradients = 1e8;
    }
  }
  reader.finish();
}

void load_run_config(const fs::path& path, RunOptions& run) {
  apply_run_options(options_in(read_toml(path), "", true), run);
}

nlohmann::ordered_json run_option_values(const RunOptions& run) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  RunOptions::fields(run, WriteField{values});
  return values;
}

std::string write_run_toml(const RunOptions& run) {
  nlohmann::ordered_json values = run_option_values(run);
  values["data"] = absolute_if_there(run.data);
  values["data_dir"] = absolute_if_there(run.data_dir);
  values["modes"] = absolute_if_there(run.modes);
  if (!is_init_word(run.init)) values["init"] = absolute_if_there(run.init);
  values.erase("resume");
  values.erase("force");
  values.erase(run.gradients > 0 ? "iterations" : "gradients");
  if (run.unbounded) values.erase("gradients");
  if (run.unbounded || !(run.se > 0)) values.erase("se");
  if (run.chains == 0) values.erase("chains");  // a method that has its own
  std::string text = fmt::format("# Repeats this run: lockstep {} --config run.toml\n", run.command);
  for (const auto& item : values.items()) {
    const Settings value = item.value();
    if (value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty())) continue;
    if (value.is_object()) {  // tables come last, as TOML wants it
      text += fmt::format("\n[{}]\n", item.key());
      for (const auto& setting : value.items())
        text += fmt::format("{} = {}\n", toml_key(setting.key()), toml_text(setting.value()));
    } else {
      text += fmt::format("{} = {}\n", item.key(), toml_text(value));
    }
  }
  return text;
}

}  // namespace lockstep
