// SPDX-License-Identifier: Apache-2.0
#include "host/commands/item_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/commands/plot_scripts.hpp"
#include "host/commands/summary.hpp"
#include "host/options/config.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/files.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWideGap = 1, kFewRuns = 2;  // nats between the bounds, effective runs: worth a warning

std::vector<double> gaps(const ItemTable& t) {
  std::vector<double> gap;
  for (int i = 0; i < t.done(); ++i) gap.push_back(t.upper[i] - t.lower[i]);
  return gap;
}

/// What is not known is an empty cell.
std::string csv(const ItemTable& t) {
  const auto gap = gaps(t);
  const std::pair<const char*, const std::vector<double>*> columns[] = {{"log_z", &t.log_z},
                                                                        {"se", &t.se},
                                                                        {"lower", &t.lower},
                                                                        {"lower_se", &t.lower_se},
                                                                        {"upper", &t.upper},
                                                                        {"upper_se", &t.upper_se},
                                                                        {"gap", &gap},
                                                                        {"ess", &t.ess},
                                                                        {"reverse_ess", &t.reverse_ess},
                                                                        {"acceptance", &t.acceptance},
                                                                        {"bound", &t.bound}};
  std::string text = "item";
  for (const auto& [name, values] : columns) text += fmt::format(",{}", name);
  for (int i = 0; i < t.done(); ++i) {
    text += fmt::format("\n{}", i);
    for (const auto& [name, values] : columns)
      text += std::isfinite((*values)[i]) ? fmt::format(",{:.10g}", (*values)[i]) : ",";
  }
  return text + "\n";
}

/// The first images, as the likelihood has them: 0 and 1 in bytes, other numbers in single precision.
std::string images_npy(const Items& items, int count) {
  const std::size_t size = items.values.size() / std::size_t(items.count) * std::size_t(count);
  const std::vector<int> shape = {count, items.rows, items.columns};
  const auto end = items.values.begin() + std::ptrdiff_t(size);
  if (std::all_of(items.values.begin(), items.values.end(), [](float v) { return v == 0 || v == 1; }))
    return npy_bytes(shape, "|u1", {items.values.begin(), end});
  return npy_bytes(shape, "<f4", {reinterpret_cast<const char*>(items.values.data()), size * sizeof(float)});
}

/// What a method does not give is left out.
void put(Json& to, const char* name, double v) {
  if (std::isfinite(v)) to[name] = v;
}

Json items_json(const ItemConfig& c, const ItemTable& t) {
  Json all = Json::array();
  for (int i = 0; i < t.done(); ++i) {
    Json z = Json::object(), item;
    put(z, "estimate", t.log_z[i]);
    put(z, "se", t.se[i]);
    if (c.method != "bound" && std::isfinite(t.df[i])) {  // a bound is below log Z by more than it scatters
      add_intervals(z, {t.log_z[i], t.se[i], t.unscaled_se[i], t.df[i]});
    }
    put(z, "lower", t.lower[i]);
    put(z, "lower_se", t.lower_se[i]);
    put(z, "upper", t.upper[i]);
    put(z, "upper_se", t.upper_se[i]);
    put(z, "gap", t.upper[i] - t.lower[i]);
    item["log_z"] = z;
    put(item, "weight_ess", t.ess[i]);
    put(item, "reverse_ess", t.reverse_ess[i]);
    put(item, "acceptance", t.acceptance[i]);
    put(item, "importance_bound", t.bound[i]);
    put(item, "round_trips", t.round_trips[i]);
    put(item, "drift", t.drift[i]);
    all.push_back(item);
  }
  return all;
}

}  // namespace

std::string npy_bytes(const std::vector<int>& shape, const std::string& type, const std::string& values) {
  std::string dims;
  for (int s : shape) dims += std::to_string(s) + ", ";
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');  // the data begin at a multiple of 64
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\0';
  out += char(header.size() & 0xFF);
  out += char(header.size() >> 8);
  out += header;
  return out + values;
}

Json report_items(const RunOptions& run, const RunFiles& files, const RunContext& context,
                  const ItemConfig& c, const ItemPilot& pilot, const ItemTable& t, double sampling_seconds,
                  double wall_seconds, bool interrupted) {
  const TargetInstance& target = *context.target;
  const Items& items = *target.items();
  const LogZ z = mean_over_items(t.log_z), lower = mean_over_items(t.lower), upper = mean_over_items(t.upper),
             bound = mean_over_items(t.bound);
  const auto gap = gaps(t);
  const LogZ mean_gap = mean_over_items(gap);
  std::vector<std::string> failed, warnings;
  double acceptance = 0, noise = 0;
  int poor = 0, wide = 0;
  for (int i = 0; i < t.done(); ++i) {
    acceptance += t.acceptance[i] / t.done();
    poor += t.ess[i] < kFewRuns || t.reverse_ess[i] < kFewRuns;
    wide += gap[i] > kWideGap;
    noise += (t.lower_se[i] * t.lower_se[i] + t.upper_se[i] * t.upper_se[i]) / (double(t.done()) * t.done());
  }
  const bool moves = c.method != "bound" && c.steps > 1;  // one step of beta is importance sampling
  if (moves && !(acceptance >= 0.2)) failed.push_back("acceptance");
  // Few images scatter little by chance: their own errors count as well.
  const double scatter = std::isfinite(mean_gap.se) ? mean_gap.se : 0;
  if (mean_gap.estimate < -3 * std::sqrt(scatter * scatter + noise) - 1e-6 * (1 + std::abs(z.estimate)))
    failed.push_back("bounds_cross");
  if (!std::isfinite(z.estimate)) failed.push_back("log_z");
  if (10 * poor > t.done()) failed.push_back("weight_ess");
  if (10 * wide > t.done()) failed.push_back("gap");
  auto trips = t.round_trips;
  std::nth_element(trips.begin(), trips.begin() + t.done() / 2, trips.end());
  const double median_trips = trips[t.done() / 2];
  const LogZ drift = mean_over_items(t.drift);
  if (median_trips < 1) {
    failed.push_back("round_trips");
    warnings.push_back(fmt::format(
        "half of the items make {:.2g} round trips a run or fewer: more temperatures", median_trips));
  }
  if (std::abs(drift.estimate) > 3 * drift.se) failed.push_back("drift");
  std::sort(failed.begin(), failed.end());
  if (interrupted) warnings.push_back("interrupted");
  if (t.done() < items.count)
    warnings.push_back(fmt::format("{} of {} items are done", t.done(), items.count));
  if (poor > 0)
    warnings.push_back(fmt::format(
        "{} of the items have fewer than {:g} effective {}", poor, kFewRuns,
        c.method == "bound" ? "draws: a loose bound (--method ais is closer)" : "runs: more temperatures"));
  if (wide > 0)
    warnings.push_back(fmt::format("{} of the items have bounds more than {:g} nat apart: more temperatures",
                                   wide, kWideGap));
  if (t.divergences > 0)
    warnings.push_back(fmt::format("{:.0f} divergent transitions: a smaller step size", t.divergences));

  Json s = summary_head(run, target, context, "evidence");
  s["verdict"] = verdict_of(failed);
  s["failed_gates"] = failed;
  s["warnings"] = warnings;
  s["target"]["items"] = items.count;
  s["sampler"] = {{"name", c.method}, {"settings", c.effective}};
  s["chains"] = std::int64_t(items.count) * (c.method == "bound" ? c.bound_draws : c.runs);
  s["iterations"] = c.method == "bound" ? 0 : c.steps;
  s["cost"] = {{"gradients", t.gradients + pilot.gradients},
               {"warmup_gradients", pilot.gradients},
               {"wall_s", wall_seconds},
               {"sampling_s", sampling_seconds},
               {"gradients_per_s", (t.gradients + pilot.gradients) / sampling_seconds}};
  // se: of the scatter over images; mc_se: of the runs, the images given.
  const auto of_runs = [&](const std::vector<double>& se) {
    double sum = 0;
    for (double v : se) sum += v * v;
    return std::sqrt(sum) / t.done();
  };
  Json log_z = {{"estimate", z.estimate}};
  put(log_z, "se", z.se);
  put(log_z, "mc_se", of_runs(t.se));
  put(log_z, "lower_mc_se", of_runs(t.lower_se));
  put(log_z, "upper_mc_se", of_runs(t.upper_se));
  if (t.done() > 1) {
    log_z["interval"] = interval_over_items(t.log_z);
    add_intervals(log_z, {z.estimate, z.se, z.se, double(t.done() - 1)});  // of independent images
  }
  put(log_z, "lower", lower.estimate);
  put(log_z, "lower_se", lower.se);
  put(log_z, "upper", upper.estimate);
  put(log_z, "upper_se", upper.se);
  put(log_z, "gap", mean_gap.estimate);
  put(log_z, "gap_se", mean_gap.se);
  s["log_z"] = log_z;
  s["items"] = items_json(c, t);
  if (!items.log_z.empty()) {
    const std::vector<double> known(items.log_z.begin(), items.log_z.begin() + t.done());
    s["truth"] = {{"log_z", mean_over_items(known).estimate}, {"items", known}};
  }
  Json d = {{"base", c.base}, {"importance_bound", bound.estimate}};
  put(d, "importance_bound_se", bound.se);
  if (c.method != "bound") {
    d["acceptance"] = acceptance;
    d["step_size"] = pilot.step_size.back();
    d["num_leapfrog"] = c.num_leapfrog;
    d["schedule"] = c.ladder(pilot.barrier());
    d["divergences"] = std::int64_t(t.divergences);
    d["barrier"] = pilot.barrier().global();
    d["step_sizes"] = pilot.step_size;
    d["pilot_acceptance"] = pilot.acceptance;
    put(d, "round_trips", median_trips);
    put(d, "drift", drift.estimate);
    put(d, "drift_se", drift.se);
  }
  s["diagnostics"] = d;
  s = finish_summary(std::move(s));
  using std::filesystem::path;
  files.finish(
      s, interrupted,
      {{"items.csv", [&](const path& file) { write_atomically(file, csv(t)); }},
       {"images.npy", [&](const path& file) { write_atomically(file, images_npy(items, t.done())); }}});
  if (run.out.empty()) return s;
  for (const char* older : {"items.png", "items.svg"}) std::filesystem::remove(run.out / older);
  if (!interrupted && run.pictures && can_plot("plot_items.py", run.quiet))
    run_plot("plot_items.py", {run.out.string()}, run.quiet);
  return s;
}

}  // namespace lockstep
