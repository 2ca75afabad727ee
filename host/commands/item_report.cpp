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

constexpr double kWideGap = 1, kFewRuns = 2;  // nats between the bounds, effective runs: worth a warning

std::vector<double> gaps(const ItemTable& t) {
  std::vector<double> gap;
  gap.reserve(std::size_t(t.done()));
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

std::vector<OneItem> items_of(const ItemConfig& c, const ItemTable& t) {
  std::vector<OneItem> all(t.done());
  const auto gap = gaps(t);
  for (int i = 0; i < t.done(); ++i) {
    LogZSummary& z = all[i].log_z;
    z.estimate = t.log_z[i];
    z.se = t.se[i];
    if (c.moves() && std::isfinite(t.df[i]))  // a bound is below log Z by more than it scatters
      add_intervals(z, {t.log_z[i], t.se[i], t.unscaled_se[i], t.df[i]});
    z.lower = t.lower[i];
    z.lower_se = t.lower_se[i];
    z.upper = t.upper[i];
    z.upper_se = t.upper_se[i];
    z.gap = gap[i];
    all[i].weight_ess = t.ess[i];
    all[i].reverse_ess = t.reverse_ess[i];
    all[i].acceptance = t.acceptance[i];
    all[i].importance_bound = t.bound[i];
    all[i].round_trips = t.round_trips[i];
    all[i].drift = t.drift[i];
  }
  return all;
}

/// The means over items of log Z, its bounds and the gap between them.
LogZSummary mean_log_z(const ItemTable& t) {
  const LogZ z = mean_over_items(t.log_z), lower = mean_over_items(t.lower), upper = mean_over_items(t.upper),
             gap = mean_over_items(gaps(t));
  const auto of_runs = [&](const std::vector<double>& se) {
    double sum = 0;
    for (double v : se) sum += v * v;
    return std::sqrt(sum) / t.done();
  };
  LogZSummary s;
  s.estimate = z.estimate;
  s.se = z.se;
  s.mc_se = of_runs(t.se);
  s.lower_mc_se = of_runs(t.lower_se);
  s.upper_mc_se = of_runs(t.upper_se);
  if (t.done() > 1) {
    s.interval = interval_over_items(t.log_z);
    add_intervals(s, {z.estimate, z.se, z.se, double(t.done() - 1)});  // of independent images
  }
  s.lower = lower.estimate;
  s.lower_se = lower.se;
  s.upper = upper.estimate;
  s.upper_se = upper.se;
  s.gap = gap.estimate;
  s.gap_se = gap.se;
  return s;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How the items came out, all together.
struct ItemCounts {
  double acceptance = 0;   // mean
  double noise = 0;        // variance of the mean gap, by the runs
  int poor = 0, wide = 0;  // with too few effective runs; with bounds too far apart
};

ItemCounts count(const ItemTable& t) {
  ItemCounts n;
  const auto gap = gaps(t);
  for (int i = 0; i < t.done(); ++i) {
    n.acceptance += t.acceptance[i] / t.done();
    n.poor += t.ess[i] < kFewRuns || t.reverse_ess[i] < kFewRuns;
    n.wide += gap[i] > kWideGap;
    n.noise +=
        (t.lower_se[i] * t.lower_se[i] + t.upper_se[i] * t.upper_se[i]) / (double(t.done()) * t.done());
  }
  return n;
}

/// Gates and warnings, of a result whose means are known.
void judge_items(ItemResult& s, const ItemConfig& c, const ItemTable& t, const ItemCounts& n) {
  std::vector<std::string> failed;
  const bool moves = c.moves() && c.steps > 1;  // one step of beta is importance sampling
  if (moves && !(n.acceptance >= 0.2)) failed.push_back("acceptance");
  // Few images scatter little by chance: their own errors count as well.
  const double scatter = std::isfinite(s.log_z.gap_se) ? s.log_z.gap_se : 0;
  if (s.log_z.gap < -3 * std::sqrt(scatter * scatter + n.noise) - 1e-6 * (1 + std::abs(s.log_z.estimate)))
    failed.push_back("bounds_cross");
  if (!std::isfinite(s.log_z.estimate)) failed.push_back("log_z");
  if (10 * n.poor > t.done()) failed.push_back("weight_ess");
  if (10 * n.wide > t.done()) failed.push_back("gap");
  const double trips = median_of(t.round_trips);
  if (trips < 1) {
    failed.push_back("round_trips");
    s.warnings.push_back(
        fmt::format("half of the items make {:.2g} round trips a run or fewer: more temperatures", trips));
  }
  const LogZ drift = mean_over_items(t.drift);
  if (std::abs(drift.estimate) > 3 * drift.se) failed.push_back("drift");
  std::sort(failed.begin(), failed.end());
  judge(s, failed);
  if (s.interrupted) s.warnings.push_back("interrupted");
  if (t.done() < *s.target.items)
    s.warnings.push_back(fmt::format("{} of {} items are done", t.done(), *s.target.items));
  if (n.poor > 0)
    s.warnings.push_back(
        fmt::format("{} of the items have fewer than {:g} effective {}", n.poor, kFewRuns,
                    c.moves() ? "runs: more temperatures" : "draws: a loose bound (--method ais is closer)"));
  if (n.wide > 0)
    s.warnings.push_back(fmt::format(
        "{} of the items have bounds more than {:g} nat apart: more temperatures", n.wide, kWideGap));
  if (t.divergences > 0)
    s.warnings.push_back(fmt::format("{:.0f} divergent transitions: a smaller step size", t.divergences));
  warn_unless_finite(s.warnings, "log_z.estimate", {s.log_z.estimate});
}

ItemDiagnostics diagnostics_of(const ItemConfig& c, const ItemPilot& pilot, const ItemTable& t) {
  const LogZ bound = mean_over_items(t.bound), drift = mean_over_items(t.drift);
  ItemDiagnostics d;
  d.base = c.base;
  d.importance_bound = bound.estimate;
  d.importance_bound_se = bound.se;
  if (!c.moves()) return d;
  d.acceptance = count(t).acceptance;
  d.step_size = pilot.step_size.back();
  d.num_leapfrog = c.num_leapfrog;
  d.schedule = c.ladder(pilot.barrier());
  d.divergences = t.divergences;
  d.barrier = pilot.barrier().global();
  d.step_sizes = pilot.step_size;
  d.pilot_acceptance = pilot.acceptance;
  d.round_trips = median_of(t.round_trips);
  d.drift = drift.estimate;
  d.drift_se = drift.se;
  return d;
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

ItemResult result_of_items(const RunOptions& run, const RunContext& context, const ItemConfig& c,
                           const ItemPilot& pilot, const ItemRun& found) {
  const ItemTable& t = found.table;
  const Items& items = *context.target->items();
  ItemResult s;
  describe(s, run, *context.target, context, "evidence");
  s.target.items = items.count;
  s.interrupted = found.interrupted;
  s.sampler = {c.method(), c.effective};
  s.chains = std::int64_t(items.count) * (c.moves() ? c.runs : c.bound_draws);
  s.iterations = c.moves() ? c.steps : 0;
  s.cost.gradients = t.gradients + pilot.gradients;
  s.cost.warmup_gradients = pilot.gradients;
  s.cost.sampling = found.seconds;
  s.cost.gradients_per_s = s.cost.gradients / found.seconds;
  s.log_z = mean_log_z(t);
  s.items = items_of(c, t);
  if (!items.log_z.empty()) {
    s.truth.items.assign(items.log_z.begin(), items.log_z.begin() + t.done());
    s.truth.log_z = mean_over_items(s.truth.items).estimate;
  }
  s.diagnostics = diagnostics_of(c, pilot, t);
  judge_items(s, c, t, count(t));
  return s;
}

void save_items(ItemResult& s, const RunFiles& files, const RunOptions& run, const Items& items,
                const ItemTable& t) {
  using std::filesystem::path;
  files.finish(
      s, {{"items.csv", [&](const path& file) { write_atomically(file, csv(t)); }},
          {"images.npy", [&](const path& file) { write_atomically(file, images_npy(items, t.done())); }}});
  if (run.out.empty() || !s.lost.empty()) return;
  for (const char* older : {"items.png", "items.svg"}) std::filesystem::remove(run.out / older);
  if (!s.interrupted && run.pictures && can_plot("plot_items.py", run.quiet))
    run_plot("plot_items.py", {run.out.string()}, run.quiet);
}

}  // namespace lockstep
