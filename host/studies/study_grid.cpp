// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_grid.hpp"

#include <fmt/format.h>

#include <cmath>

#include "host/util/errors.hpp"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

/// Keys that may be arrays, and what stands for each in a label.
const std::vector<std::pair<std::string, Names>> axes = {{"data", {"{data}"}},
                                                         {"sampler", {"{method}", "{sampler}"}},
                                                         {"gradients", {"{gradients}"}},
                                                         {"chains", {"{chains}"}}};

/// A key, or settings of the target below its own, and where it stands.
struct Axis {
  std::string key;
  Settings::json_pointer at;
  Names placeholders;
};
std::vector<Axis> axes_of(const Settings& setting) {
  std::vector<Axis> all;
  all.reserve(std::size(axes));
  for (const auto& [key, placeholders] : axes)
    all.push_back({key, Settings::json_pointer("/" + key), placeholders});
  if (const auto target = setting.find("target_settings"); target != setting.end() && target->is_object())
    for (const auto& item : target->items())
      if (item.value().is_array())
        all.push_back({"target_settings",
                       Settings::json_pointer("/target_settings") / item.key(),
                       {"{" + item.key() + "}"}});
  return all;
}

/// 1e6, 2.5e7: as studies write budgets.
std::string short_number(double value) {
  if (!(value > 0) || !std::isfinite(value)) return fmt::format("{}", value);
  auto exponent = int(std::floor(std::log10(value)));
  if (value / std::pow(10.0, exponent) >= 10) ++exponent;  // log10 rounds
  return fmt::format("{:.6g}e{}", value / std::pow(10.0, exponent), exponent);
}

std::string label_text(const std::string& key, const Settings& value) {
  if (key == "gradients" && value.is_number()) return short_number(value.get<double>());
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  if (key != "data") return text;
  const std::filesystem::path path(text);
  return (path.has_filename() ? path : path.parent_path()).stem().string();
}

/// Whether there was something to replace.
bool replace_all(std::string& text, const std::string& from, const std::string& to) {
  bool found = false;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    found = true;
  }
  return found;
}

}  // namespace

std::vector<GivenOptions> combinations(const GivenOptions& setting) {
  std::vector<GivenOptions> all = {setting};
  const auto label = setting.values.find("label");
  if (label == setting.values.end() || !label->is_string()) return all;  // that is complained about elsewhere
  for (const auto& [key, at, placeholders] : axes_of(setting.values)) {
    if (!setting.values.contains(at)) continue;
    const Settings& given = setting.values.at(at);
    const Settings entries = given.is_array() ? given : Settings::array({given});
    if (entries.empty())
      throw UserError(fmt::format("{} is [] (there is one setting for each entry). Give one at least.",
                                  setting.name(key)));
    std::vector<GivenOptions> next;
    for (const GivenOptions& one : all)
      for (const Settings& entry : entries) {
        GivenOptions made = one;
        made.values[at] = entry;
        auto text = made.values["label"].get<std::string>();
        bool named = false;
        for (const auto& placeholder : placeholders)
          named |= replace_all(text, placeholder, label_text(key, entry));
        if (given.is_array() && !named)
          throw UserError(
              fmt::format("{} is '{}', without {} (each entry of {} is a setting, which needs a "
                          "label of its own). Write {} into it.",
                          setting.name("label"), label->get<std::string>(), placeholders.front(),
                          setting.name(key), placeholders.front()));
        made.values["label"] = text;
        next.push_back(std::move(made));
      }
    all = std::move(next);
  }
  return all;
}

}  // namespace lockstep
