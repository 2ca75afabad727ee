// SPDX-License-Identifier: Apache-2.0
#include "host/studies/config_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

/// Keys of a study that stand below [plot] when they are written too late in the file.
const Names keys_above = {"name",   "replicates", "seed",      "description", "chains",
                          "warmup", "iterations", "gradients", "precision"};

Names words_of(const char* text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Of plot/kinds.list, set by the build: all, and those that show stored draws.
const Names kinds = words_of(LOCKSTEP_PICTURE_KINDS), kinds_of_draws = words_of(LOCKSTEP_KINDS_OF_DRAWS);

bool contains(const Names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

void check_plot(const Settings& plot, const TomlFile& file, const Names& labels) {
  const auto name = [&](const std::string& key) {
    return file.name((Settings::json_pointer("/plot") / key).to_string(), key);
  };
  for (const auto& item : plot.items())
    if (contains(keys_above, item.key()))
      throw UserError(
          fmt::format("{} stands below [plot] (there it would have no effect). Write it above [plot].",
                      name(item.key())));
  SettingsReader::KeyNames names;
  for (const auto& item : plot.items()) names[item.key()] = name(item.key());
  SettingsReader reader(plot, "[plot]", names);
  const auto require = [&](const std::string& key, const Names& given, const Names& known,
                           const char* plural) {
    for (const auto& one : given)
      if (!contains(known, one))
        throw UserError(fmt::format("{} holds '{}' (there is no such thing to draw). {}", name(key), one,
                                    near_or_known(one, known, plural)));
  };
  reader.one_of("kind", "rmse", kinds);
  if (reader.has("panels")) {
    const Names panels = reader.get("panels", Names{});
    require("panels", panels, kinds, "pictures");
    if (panels.empty()) reader.refuse("panels", "it lists pictures, such as [\"rmse\", \"scatter\"]");
    if (reader.has("kind"))
      throw UserError(fmt::format("{} and {} are both given (one picture or several). Keep one.",
                                  name("kind"), name("panels")));
  }
  reader.get("title", "");
  reader.get("quantities", Names{});
  require("labels", reader.get("labels", Names{}), labels, "labels");
  Names groups, first_words;
  const Settings headings = reader.object("groups");
  for (const auto& item : headings.items()) {
    if (!item.value().is_string()) reader.refuse("groups", "it gives each group its heading, a text");
    groups.push_back(item.key());
  }
  for (const auto& label : labels) first_words.push_back(label.substr(0, label.find(' ')));
  require("groups", groups, first_words, "groups (first words of the labels)");
  reader.one_of("cost", "seconds", {"seconds", "gradients"});
  reader.one_of("against", "gradients", {"gradients", "chains", "gradients_per_chain"});
  for (const char* key : {"split", "count_modes", "equal_aspect"}) reader.get<bool>(key, false);
  reader.integer("columns", 5, 1);
  reader.integer("trace_draws", 1000, 2);
  const auto is_axis = [](double v) { return v >= 0 && v == std::floor(v); };
  const auto dims = reader.get("dims", std::vector<double>{0, 1});
  if (dims.size() != 2 || !std::all_of(dims.begin(), dims.end(), is_axis))
    reader.refuse("dims", "it must be two axes, counted from 0, such as [0, 1]");
  if (reader.get("places", std::vector<double>{}).size() % 2 != 0)
    reader.refuse("places", "x and y of one place after another, such as [0.5, 0.3, 0.2, 0.9]");
  reader.finish();
}

bool wants_draws(const Settings& plot) {
  const Names kind = {plot.value("kind", "")};
  const Names shown = plot.value("panels", kind);
  return std::any_of(shown.begin(), shown.end(),
                     [](const auto& one) { return contains(kinds_of_draws, one); });
}

}  // namespace lockstep
