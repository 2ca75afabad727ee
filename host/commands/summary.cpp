// SPDX-License-Identifier: Apache-2.0
#include "host/commands/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "host/runs/run_context.hpp"
#include "host/util/files.hpp"

namespace lockstep {

using Json = nlohmann::ordered_json;

Json matrix_json(const std::vector<double>& values, int d) {
  Json m = Json::array();
  for (int i = 0; i < d; ++i)
    m.push_back(std::vector<double>(values.begin() + i * d, values.begin() + (i + 1) * d));
  return m;
}

Json summary_head(const RunOptions& run, const TargetInstance& target, const RunContext& context,
                  const std::string& command) {
  Json s;
  s["schema"] = 1;
  s["version"] = LOCKSTEP_VERSION;
  s["command"] = command;
  s["verdict"] = "";
  s["failed_gates"] = Json::array();
  s["warnings"] = Json::array();
  s["target"] = {{"name", run.target}, {"dim", target.dim()}, {"settings", run.target_settings}};
  s["target"]["parameters"] = target.names();
  if (!run.data.empty()) s["target"]["data"] = run.data.string();
  for (const auto& [name, value] : target.facts()) s["target"]["facts"][name] = value;
  s["sampler"] = Json::object();
  s["seed"] = run.seed;
  s["device"] = device_name(context);
  s["precision"] = run.precision;
  s["threads"] = context.threads;
  return s;
}

Json truth_json(const TargetInstance& target) {
  const Truth& truth = target.truth();
  const int d = target.dim();
  std::vector<double> second(d);
  for (int i = 0; i < d; ++i) second[i] = truth.second_moment(i);
  Json t = {{"mean", truth.mean}, {"second_moment", second}};
  if (d <= 64) t["covariance"] = matrix_json(truth.covariance, d);
  t["log_z"] = truth.log_z;
  for (std::size_t q = 0; q < truth.quantities.size(); ++q)
    t["quantities"][target.quantities()[q]] = truth.quantities[q];
  return t;
}

Json log_z_json(const LogZ& z) {
  Json j = {{"estimate", z.estimate}, {"se", z.se}};
  add_intervals(j, z);
  return j;
}

void add_intervals(Json& to, const LogZ& z) {
  to["interval95"] = z.interval(0.95);
  to["interval997"] = z.interval(0.997);
  to["df"] = z.df > 0 ? z.df : NAN;
}

Json estimates_json(const WeightedMoments& m, const TargetInstance& target,
                    std::vector<std::string>& warnings) {
  std::vector<std::string> constant;
  const auto errors = [](const std::vector<double>& value, std::vector<double> se) {
    for (std::size_t i = 0; i < se.size(); ++i)
      if (never_varied(value[i], se[i])) se[i] = NAN;
    return se;
  };
  const std::vector<double> mean_se = errors(m.mean, m.mean_se);
  Json e = {{"mean", m.mean},
            {"mean_se", mean_se},
            {"second_moment", m.second},
            {"second_moment_se", errors(m.second, m.second_se)}};
  std::vector<double> sd;
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    sd.push_back(std::sqrt(std::max(m.variance(int(i)), 0.0)));
    const bool varied = !never_varied(m.mean[i], m.mean_se[i]);
    if (!varied) constant.push_back(target.names()[i]);
    const LogZ mean{m.mean[i], mean_se[i], varied ? m.mean_unscaled_se[i] : NAN, m.mean_df[i]};
    e["mean_interval95"].push_back(mean.interval(0.95));
    e["mean_interval997"].push_back(mean.interval(0.997));
  }
  e["mean_df"] = m.mean_df;
  e["sd"] = sd;
  if (!m.covariance.empty()) e["covariance"] = matrix_json(m.covariance, int(m.mean.size()));
  for (std::size_t q = 0; q < m.quantity.size(); ++q) {
    const std::string& name = target.quantities()[q];
    e["quantities"][name] = m.quantity[q];
    if (never_varied(name, m.quantity[q], m.quantity_se[q], m.weight_ess))
      constant.push_back(name);
    else
      e["quantities_se"][name] = m.quantity_se[q];
  }
  if (constant.empty()) return e;
  e["not_visited"] = constant;
  const std::size_t shown = std::min<std::size_t>(constant.size(), 5);
  warnings.push_back(fmt::format(
      "{}{}: not visited, or never left: the same in all that was sampled, so the error is unknown",
      fmt::join(constant.begin(), constant.begin() + shown, ", "),
      shown < constant.size() ? fmt::format(" and {} more", constant.size() - shown) : ""));
  return e;
}

Json finish_summary(Json summary) {
  std::vector<std::string> removed;
  summary = strip_non_finite(std::move(summary), &removed);
  for (const auto& name : removed)
    if (name == "log_z.estimate" || name == "log_z.se" || name == "estimates.mean")
      summary["warnings"].push_back(name + " is not finite and left out");
  return summary;
}

}  // namespace lockstep
