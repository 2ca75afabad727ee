// SPDX-License-Identifier: Apache-2.0
#include "host/options/item_config.hpp"

#include <algorithm>
#include <cmath>

#include "host/options/evidence_config.hpp"
#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"

namespace lockstep {
namespace {

/// After auto, the cheapest first.
std::vector<std::string> item_methods() {
  std::vector<const EvidenceMethod*> rows;
  for (const EvidenceMethod& m : method_registry())
    if (m.of_items) rows.push_back(&m);
  std::stable_sort(rows.begin() + 1, rows.end(), [](auto* a, auto* b) { return a->kind > b->kind; });
  std::vector<std::string> names;
  names.reserve(rows.size());
  for (const EvidenceMethod* m : rows) names.push_back(m->info.name);
  return names;
}

/// `exact`: where there are exact draws.
const EvidenceMethod& item_method(const std::string& name, bool exact) {
  return find_method(name != "auto" ? name : exact ? "bdmc" : "ais");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> item_settings(const std::string& method) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto names = item_methods();
  if (std::find(names.begin(), names.end(), method) == names.end()) return lines;
  ItemConfig c;
  c.of = &item_method(method, false);
  if (c.moves())
    lines = {{"runs", "runs of each item (default 16)"},
             {"temperatures", c.tempers() ? "iterations of a run (default 1000)"
                                          : "inverse temperatures after the first (default 1000)"},
             {"num_leapfrog", "mean leapfrog steps of a transition (default 10)"},
             {"step_size", "of all of them (default: by a pilot, along the path)"},
             {"target_acceptance", "acceptance that the pilot's step sizes aim at (default 0.8)"}};
  if (c.anneals())
    lines.emplace_back("schedule",
                       "barrier, linear, sigmoid, quadratic, or a list from 0 to 1 (default barrier)");
  if (c.tempers())
    lines.emplace_back("discard", "share of the iterations that is not recorded (default 0.2)");
  lines.emplace_back(
      "base", "where paths begin: encoder, prior, or auto, the encoder where there is one (default auto)");
  lines.emplace_back("bound_draws", "draws of the base for the importance-weighted bound (default 100)");
  return lines;
}

ItemConfig item_config(const RunOptions& run, const Items& items) {
  ItemConfig c;
  const auto names = item_methods();
  if (std::find(names.begin(), names.end(), run.sampler) == names.end())
    throw UserError("there is no method " + run.sampler + " for a target with many items. " +
                    near_or_known(run.sampler, names, "methods"));
  c.of = &item_method(run.sampler, !items.exact.empty());
  if (c.of->both_ways && items.exact.empty())
    throw UserError(
        "method bdmc needs exact posterior draws (only images simulated from the model have them). Use "
        "--method ais, or --set target.images=simulate:N");
  if (!run.unbounded || run.chains > 0)
    throw UserError(
        "--gradients, --iterations, --se and --chains do not go with a target of many items (each gets the "
        "same runs). Give "
        "--set sampler.runs, sampler.temperatures and sampler.num_leapfrog");
  refuse_unused(run, {"warmup", "paper_settings", "init", "init_scale", "modes"}, "a target of many items");
  if (run.draws)
    throw UserError("--draws does not go with a target of many items (it would fill the disk). Leave it out");
  SettingsReader s(run.sampler_settings, "method " + c.method());
  c.bound_draws = int(s.integer("bound_draws", 100, 1, 1 << 20));
  if (c.moves()) {
    c.runs = int(s.integer("runs", 16, 2, 1 << 16));
    c.steps = int(s.integer("temperatures", 1000, 1, 1 << 24));
    c.num_leapfrog = int(s.integer("num_leapfrog", 10, 1, 1000));
    if (s.has("step_size")) c.step_size = s.positive("step_size", 0.3);
    c.target_acceptance = s.in_range("target_acceptance", 0.8, 0.1, 0.99);
    if (c.step_size > 0) s.no_effect({"target_acceptance"}, "step_size is given");
  }
  if (c.anneals()) {
    const auto given = run.sampler_settings.find("schedule");
    if (given != run.sampler_settings.end() && given->is_array()) {
      c.given_ladder = s.get<std::vector<double>>("schedule", {});
      check_ladder(c.given_ladder);
      if (s.has("temperatures")) s.refuse("temperatures", "left out, for the schedule is a list");
      c.steps = int(c.given_ladder.size()) - 1;
    } else {
      c.schedule = s.one_of("schedule", "barrier", kLadders);
    }
  }
  c.base = s.one_of("base", "auto", {"auto", "encoder", "prior"});
  if (c.base == "encoder" && items.base != "encoder")
    s.refuse("base", "prior, for the target's weights have no encoder (encoder_mean and encoder_std)");
  if (c.base == "auto") c.base = items.base;
  if (c.tempers()) c.discard = s.in_range("discard", 0.2, 0, 0.9);
  s.finish();
  c.effective = s.effective();
  return c;
}

std::vector<double> ItemConfig::ladder(const CommunicationBarrier& barrier) const {
  if (!given_ladder.empty()) return given_ladder;
  const int k = tempers() ? std::clamp(int(std::lround(7 * barrier.global())), 10, 400) : steps;
  return named_ladder(schedule, k, barrier);
}

}  // namespace lockstep
