// SPDX-License-Identifier: Apache-2.0
#include "host/summary.hpp"

#include "host/files.hpp"
#include "host/run_context.hpp"

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

Json finish_summary(Json summary) {
  std::vector<std::string> removed;
  summary = strip_non_finite(std::move(summary), &removed);
  for (const auto& name : removed)
    if (name.rfind("truth", 0) != 0 && name != "log_z.lower" && name != "log_z.upper" && name != "log_z.gap")
      summary["warnings"].push_back(name + " is not finite and left out");
  return summary;
}

}  // namespace lockstep
