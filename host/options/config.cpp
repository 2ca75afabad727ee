// SPDX-License-Identifier: Apache-2.0
#include "host/options/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "host/util/errors.hpp"
#include "host/util/settings.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Pointer = Settings::json_pointer;

bool is_init_word(const std::string& init) { return init == "scout" || init.starts_with("uniform"); }

/// `scout`, `uniform:R` with R > 0, or a file that is there.
void check_init(const std::string& init, const std::string& name) {
  if (init == "scout") return;
  if (init.starts_with("uniform")) {
    double radius = 0;
    const char* begin = init.data() + std::min(init.size(), std::string("uniform:").size());
    const char* end = init.data() + init.size();
    const auto [stop, error] = std::from_chars(begin, end, radius);
    const bool good = init.starts_with("uniform:") && error == std::errc() && stop == end;
    if (good && radius > 0 && std::isfinite(radius)) return;
    throw UserError(
        fmt::format("{} is '{}' (starts are drawn uniformly from [-R, R] in each coordinate, R > 0). "
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
    if (value.is_string() && ((key == "init" && !is_init_word(value)) || (key == "data" && data_too))) {
      const fs::path beside = file.path.parent_path() / value.get<std::string>();
      std::error_code ignored;
      if (fs::exists(beside, ignored)) value = beside.string();
    }
    given.set(key, value, name);
  }
  return given;
}

void apply_run_options(const GivenOptions& given, RunOptions& run) {
  constexpr int any_int = std::numeric_limits<int>::max();
  SettingsReader reader(given.values, "the run", given.names);
  const auto read_int = [&](const char* key, int& field, int low, int high) {
    field = static_cast<int>(reader.integer(key, field, low, high));
  };
  const auto read_path = [&](const char* key, fs::path& field) { field = reader.get(key, field.string()); };
  run.command = reader.one_of("command", run.command, {"sample", "evidence", "check"});
  run.target = reader.get("target", run.target);
  run.sampler = reader.get("sampler", run.sampler);
  run.target_settings.update(reader.object("target_settings"));
  run.sampler_settings.update(reader.object("sampler_settings"));
  read_path("data", run.data);
  read_path("data_dir", run.data_dir);
  if (run.command == "evidence" && !reader.has("chains")) run.chains = 0;  // by the budget
  read_int("chains", run.chains, 1, any_int);
  run.warmup = reader.integer("warmup", run.warmup, 0);
  const bool has_iterations = reader.has("iterations"), has_gradients = reader.has("gradients");
  const bool has_se = reader.has("se");
  if (has_iterations && has_gradients)
    throw UserError(
        fmt::format("{} and {} are both given (they are two ways to say how long a run is). Keep one.",
                    given.name("iterations"), given.name("gradients")));
  run.iterations = reader.integer("iterations", run.iterations, 1);
  run.gradients = reader.in_range("gradients", has_iterations ? 0 : run.gradients, 1, 1e18);
  run.se = reader.positive("se", run.se);
  run.usual_length = run.command == "sample" && !has_iterations && !has_gradients && !has_se;
  if (run.command == "evidence" && !has_iterations && !has_gradients) {
    run.unbounded = !has_se;
    if (!has_se) run.se = 0.02;
    run.gradients = 1e8;
  }
  run.seed = reader.seed("seed", run.seed);
  run.init = reader.get("init", run.init);
  if (reader.has("init")) check_init(run.init, given.name("init"));
  run.init_scale = reader.positive("init_scale", run.init_scale);
  run.device = reader.one_of("device", run.device, {"auto", "cpu", "cuda"});
  read_int("threads", run.threads, 0, kMostThreads);
  run.precision = reader.one_of("precision", run.precision, {"single", "mixed", "double"});
  read_path("out", run.out);
  if (reader.has("draws")) {
    const Settings& wanted = given.values["draws"];
    if (wanted.is_boolean())
      run.draws = wanted.get<bool>() ? kUsualDraws : 0;
    else if (wanted == "all")
      run.draws = kAllDraws;
    else if (!wanted.is_number())
      reader.refuse("draws", "it must be a whole number from 1, or all");
    else
      run.draws = reader.integer("draws", run.draws, 1);
  }
  run.weighted_draws = reader.get("weighted_draws", run.weighted_draws);
  run.warmup_draws = reader.get("warmup_draws", run.warmup_draws);
  run.pictures = reader.get("pictures", run.pictures);
  read_int("thin", run.thin, 1, any_int);
  run.checkpoint = reader.non_negative("checkpoint", run.checkpoint);
  run.resume = reader.get("resume", run.resume);
  run.force = reader.get("force", run.force);
  run.paper_settings = reader.get("paper_settings", run.paper_settings);
  run.json = reader.get("json", run.json);
  run.quiet = reader.get("quiet", run.quiet);
  reader.finish();
}

void load_run_config(const fs::path& path, RunOptions& run) {
  apply_run_options(options_in(read_toml(path), "", true), run);
}

nlohmann::ordered_json run_option_values(const RunOptions& run) {
  return {{"command", run.command},
          {"target", run.target},
          {"sampler", run.sampler},
          {"data", run.data.string()},
          {"data_dir", run.data_dir.string()},
          {"paper_settings", run.paper_settings},
          {"chains", run.chains},
          {"warmup", run.warmup},
          {"iterations", run.iterations},
          {"gradients", run.gradients},
          {"se", run.se},
          {"seed", run.seed},
          {"init", run.init},
          {"init_scale", run.init_scale},
          {"device", run.device},
          {"threads", run.threads},
          {"precision", run.precision},
          {"out", run.out.string()},
          {"draws", run.draws == 0           ? nlohmann::ordered_json(false)
                    : run.draws == kAllDraws ? nlohmann::ordered_json("all")
                                             : nlohmann::ordered_json(run.draws)},
          {"weighted_draws", run.weighted_draws},
          {"warmup_draws", run.warmup_draws},
          {"pictures", run.pictures},
          {"thin", run.thin},
          {"checkpoint", run.checkpoint},
          {"resume", run.resume},
          {"force", run.force},
          {"json", run.json},
          {"quiet", run.quiet},
          {"target_settings", run.target_settings},
          {"sampler_settings", run.sampler_settings}};
}

std::string write_run_toml(const RunOptions& run) {
  nlohmann::ordered_json values = run_option_values(run);
  values["data"] = absolute_if_there(run.data);
  values["data_dir"] = absolute_if_there(run.data_dir);
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
