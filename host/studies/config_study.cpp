// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/options/config.hpp"
#include "host/options/evidence_config.hpp"
#include "host/studies/config_plot.hpp"
#include "host/studies/study_grid.hpp"
#include "host/studies/study_pictures.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

using Pointer = Settings::json_pointer;

/// Keys that a whole study may set for all its settings; one setting overrides them.
const std::vector<std::string> default_keys = {"chains", "warmup", "iterations", "gradients", "precision"};

/// Keys of RunOptions that one setting may give. The rest (device, threads, files) belongs to the command
/// line.
const std::vector<std::string> run_keys = {"command",    "target",           "target_settings", "data",
                                           "sampler",    "sampler_settings", "chains",          "warmup",
                                           "iterations", "gradients",        "precision",       "se",
                                           "init",       "init_scale",       "paper_settings"};

const std::vector<std::string> own_keys = {"label", "adaptation", "published", "published_rmse"};

bool contains(const std::vector<std::string>& list, const std::string& key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

/// A file system takes names of 255 bytes, and what is written first has a longer one than what remains.
constexpr std::size_t kLongestName = 200;

bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         name.find('/') == std::string::npos && std::none_of(name.begin(), name.end(), is_control);
}

bool finite(const Settings& number) { return number.is_number() && std::isfinite(number.get<double>()); }

/// Quantity -> [mean, sd] as a paper printed them.
void check_published(const Settings& published, const GivenOptions& given) {
  for (const auto& item : published.items()) {
    const Settings& pair = item.value();
    if (!pair.is_array() || pair.size() != 2 || !finite(pair[0]) || !finite(pair[1]) ||
        pair[1].get<double>() < 0)
      throw UserError(
          fmt::format("{}: {} is {} (a published value is [mean, sd] with sd >= 0). Give both numbers.",
                      given.name("published"), item.key(), shown(pair)));
  }
}

/// Quantity -> RMSE over the replicates as a paper printed it.
void check_published_rmse(const Settings& published, const GivenOptions& given) {
  for (const auto& item : published.items())
    if (!finite(item.value()) || item.value().get<double>() < 0)
      throw UserError(fmt::format("{}: {} is {} (an RMSE is one number, at least 0). Correct it.",
                                  given.name("published_rmse"), item.key(), shown(item.value())));
}

StudySetting read_setting(const TomlFile& file, const std::string& pointer, const GivenOptions& all,
                          const GivenOptions& defaults, std::uint64_t seed) {
  GivenOptions own, run = defaults, of_run;
  for (const auto& item : all.values.items()) {
    const std::string& key = item.key();
    if (!contains(run_keys, key) && !contains(own_keys, key)) {
      std::vector<std::string> known = run_keys;
      known.insert(known.end(), own_keys.begin(), own_keys.end());
      known.push_back("method");
      throw UserError(fmt::format("{} is unknown in a setting (it would have no effect). {}", all.name(key),
                                  near_or_known(key, known, "keys")));
    }
    (contains(own_keys, key) ? own : of_run).set(key, item.value(), all.name(key));
  }
  // What the study sets for all is for those that take it.
  const auto text = [&](const char* key, const char* standard) {
    const auto found = of_run.values.find(key);
    return found != of_run.values.end() && found->is_string() ? found->get<std::string>() : standard;
  };
  const bool items = text("target", "") == "decoder";  // each image gets the same runs
  if (text("command", "sample") == "evidence")
    for (const std::string& key : default_keys)
      if (items ? key != "precision" : !method_takes(text("sampler", "auto"), key)) run.values.erase(key);
  run.override_with(of_run);

  StudySetting setting;
  SettingsReader reader(own.values, "a study", own.names);
  setting.label = reader.get("label", "");
  if (setting.label.empty())
    throw UserError(
        fmt::format("{} has no label (results.csv tells settings apart by it). Add label = \"...\".",
                    file.name(pointer, "a setting")));
  if (std::any_of(setting.label.begin(), setting.label.end(), is_control))
    throw UserError(
        fmt::format("{} holds a line end or another control character (it is one cell of results.csv). "
                    "Write it on one line.",
                    own.name("label")));
  if (file_key(setting.label).size() > kLongestName)
    throw UserError(
        fmt::format("{} is '{}' (its files bear it, with a length of {} bytes at most, 3 for each "
                    "special character). Shorten it.",
                    own.name("label"), one_line(setting.label, 60), kLongestName));
  setting.adaptation = reader.one_of("adaptation", setting.adaptation, {"replicate", "pooled"});
  setting.published = reader.object("published");
  check_published(setting.published, own);
  setting.published_rmse = reader.object("published_rmse");
  check_published_rmse(setting.published_rmse, own);

  const std::string where = file.name(pointer, fmt::format("setting '{}'", setting.label));
  setting.run.seed = seed;
  apply_run_options(run, setting.run);
  if (setting.run.command == "check")
    throw UserError(
        fmt::format("{} is \"check\" (a study collects estimates, a check has none). Write sample or "
                    "evidence.",
                    run.name("command")));
  if (setting.run.target.empty())
    throw UserError(
        fmt::format("{} has no target (there is nothing to sample). Add target = \"NAME\".", where));
  if (setting.run.sampler.empty() && setting.run.command == "evidence") setting.run.sampler = "auto";
  if (setting.run.sampler.empty())
    throw UserError(fmt::format(
        "{} has no sampler (a target can be sampled in many ways). Add sampler = \"NAME\".", where));
  return setting;
}

}  // namespace

Study load_study(const std::filesystem::path& path) {
  const TomlFile file = read_toml(path);
  const GivenOptions given = options_in(file, "", false);
  SettingsReader reader(given.values, "a study", given.names);

  Study study;
  study.source = path;
  study.name = reader.get("name", path.stem().string());
  study.title = reader.get("title", "");
  study.description = reader.get("description", "");
  study.replicates = static_cast<int>(reader.integer("replicates", study.replicates, 1, kMostReplicates));
  study.seed = reader.seed("seed", study.seed);
  study.quantities = reader.get("quantities", std::vector<std::string>{});
  study.pooled = reader.get("pooled", std::vector<std::string>{});
  study.plot = reader.object("plot");
  if (!is_file_name(study.name))
    reader.refuse("name",
                  fmt::format("the study's files bear it: 1 to {} bytes, no '/', no control characters, "
                              "not . or ..",
                              kLongestName));

  GivenOptions defaults;
  for (const std::string& key : default_keys)
    if (reader.has(key)) defaults.set(key, given.values.at(key), given.name(key));
  const Settings list = reader.has("setting") ? given.values.at("setting") : Settings::array();
  reader.finish();
  RunOptions unused;
  apply_run_options(defaults, unused);  // complains about them even when every setting overrides them

  const auto is_table = [](const Settings& entry) { return entry.is_object(); };
  if (!list.is_array() || list.empty() || !std::all_of(list.begin(), list.end(), is_table))
    throw UserError(
        fmt::format("{} has no [[setting]] (there is nothing to run). Add one with label, target and "
                    "sampler.",
                    path.string()));
  std::map<std::string, std::string> labels;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string pointer = (Pointer("/setting") / i).to_string();
    const std::string name = file.name(pointer + "/label", "label");
    for (const GivenOptions& one : combinations(options_in(file, pointer, false))) {
      study.settings.push_back(read_setting(file, pointer, one, defaults, study.seed));
      const auto [first, added] = labels.emplace(study.settings.back().label, name);
      if (!added)
        throw UserError(
            fmt::format("{} is '{}' like {} (results.csv tells settings apart by it). Rename one.", name,
                        study.settings.back().label, first->second));
    }
  }
  std::vector<std::string> all_labels;
  for (const auto& setting : study.settings) all_labels.push_back(setting.label);
  check_plot(study.plot, file, all_labels);
  return study;
}

}  // namespace lockstep
