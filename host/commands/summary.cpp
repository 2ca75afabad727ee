// SPDX-License-Identifier: Apache-2.0
#include "host/commands/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "host/runs/gates.hpp"
#include "host/runs/run_context.hpp"

namespace lockstep {

void describe(RunResult& r, const RunOptions& run, const TargetInstance& target, const RunContext& context,
              const std::string& command) {
  r.version = LOCKSTEP_VERSION;
  r.command = command;
  r.repeat(run);
  r.target.dim = target.dim();
  r.target.parameters = target.names();
  r.target.facts = target.facts();
  r.device = device_name(context);
  r.threads = context.all_threads;
}

void judge(RunResult& r, std::vector<std::string> failed_gates) {
  r.verdict = verdict_of(failed_gates);
  r.failed_gates = std::move(failed_gates);
}

TruthSummary truth_of(const TargetInstance& target) {
  const Truth& truth = target.truth();
  const int d = target.dim();
  TruthSummary t;
  t.mean = truth.mean;
  for (int i = 0; i < d; ++i) t.second.push_back(truth.second_moment(i));
  if (d <= 64 && !std::isnan(truth.mean[0])) t.covariance = truth.covariance;  // zeros where it is unknown
  t.log_z = truth.log_z;
  for (std::size_t q = 0; q < truth.quantities.size(); ++q)
    t.quantities.emplace_back(target.quantities()[q], truth.quantities[q]);
  return t;
}

LogZSummary log_z_of(const LogZ& z) {
  LogZSummary s;
  s.estimate = z.estimate;
  s.se = z.se;
  add_intervals(s, z);
  return s;
}

void add_intervals(LogZSummary& to, const LogZ& z) {
  to.interval95 = z.interval(0.95);
  to.interval997 = z.interval(0.997);
  to.df = z.df > 0 ? z.df : NAN;
}

EstimatesSummary estimates_of(const WeightedMoments& m, const TargetInstance& target,
                              std::vector<std::string>& warnings) {
  EstimatesSummary e;
  const auto errors = [](const std::vector<double>& value, std::vector<double> se) {
    for (std::size_t i = 0; i < se.size(); ++i)
      if (never_varied(value[i], se[i])) se[i] = NAN;
    return se;
  };
  e.mean = m.mean;
  e.mean_se = errors(m.mean, m.mean_se);
  e.second = m.second;
  e.second_se = errors(m.second, m.second_se);
  std::vector<std::string>& constant = e.not_visited;
  for (std::size_t i = 0; i < m.mean.size(); ++i) {
    e.sd.push_back(std::sqrt(std::max(m.variance(int(i)), 0.0)));
    const bool varied = !never_varied(m.mean[i], m.mean_se[i]);
    if (!varied) constant.push_back(target.names()[i]);
    const LogZ mean{m.mean[i], e.mean_se[i], varied ? m.mean_unscaled_se[i] : NAN, m.mean_df[i]};
    e.mean_interval95.push_back(mean.interval(0.95));
    e.mean_interval997.push_back(mean.interval(0.997));
  }
  e.mean_df = m.mean_df;
  e.covariance = m.covariance;
  for (std::size_t q = 0; q < m.quantity.size(); ++q) {
    const std::string& name = target.quantities()[q];
    e.quantities.emplace_back(name, m.quantity[q]);
    if (never_varied(name, m.quantity[q], m.quantity_se[q], m.weight_ess))
      constant.push_back(name);
    else
      e.quantities_se.emplace_back(name, m.quantity_se[q]);
  }
  if (constant.empty()) return e;
  const std::size_t shown = std::min<std::size_t>(constant.size(), 5);
  warnings.push_back(fmt::format(
      "{}{}: not visited, never left, or the same in all that was sampled, so the error is unknown",
      fmt::join(constant.begin(), constant.begin() + shown, ", "),
      shown < constant.size() ? fmt::format(" and {} more", constant.size() - shown) : ""));
  return e;
}

DrawsSummary add_figures(EstimatesSummary& summary, const TargetInstance& target, const Estimates& e,
                         const DrawFigures& f) {
  DrawsSummary of_draws;
  if (f.draws == 0) return of_draws;
  const std::size_t d = target.dim();
  const auto& names = target.quantities();
  const auto column = [&](double DrawDiagnostics::*figure) {
    std::vector<double> values;
    for (std::size_t i = 0; i < d; ++i) values.push_back(f.of[i].*figure);
    return values;
  };
  const auto of_quantities = [&](double DrawDiagnostics::*figure) {
    NamedNumbers values;
    for (std::size_t q = 0; q < names.size(); ++q) values.emplace_back(names[q], f.of[d + q].*figure);
    return values;
  };
  summary.quantiles = {column(&DrawDiagnostics::q5), column(&DrawDiagnostics::q50),
                       column(&DrawDiagnostics::q95)};
  summary.quantities_sd = of_quantities(&DrawDiagnostics::sd);
  summary.quantities_quantiles = {of_quantities(&DrawDiagnostics::q5), of_quantities(&DrawDiagnostics::q50),
                                  of_quantities(&DrawDiagnostics::q95)};
  of_draws.draws = {f.draws, f.every};
  of_draws.rhat = column(&DrawDiagnostics::rhat);
  for (std::size_t i = 0; i < d; ++i)
    if (std::isnan(of_draws.rhat[i])) of_draws.rhat[i] = e.rhat[i];
  of_draws.ess_bulk = column(&DrawDiagnostics::ess_bulk);
  of_draws.ess_tail = column(&DrawDiagnostics::ess_tail);
  of_draws.quantities_rhat = of_quantities(&DrawDiagnostics::rhat);
  of_draws.quantities_ess_bulk = of_quantities(&DrawDiagnostics::ess_bulk);
  of_draws.quantities_ess_tail = of_quantities(&DrawDiagnostics::ess_tail);
  return of_draws;
}

std::string far_from_truth(const std::string& name, const LogZ& found, double known, double most,
                           const std::string& advice) {
  const double far = std::abs(found.estimate - known) / found.se;
  if (!(far > most)) return {};
  return fmt::format("{} is {} {}: {}", name,
                     far < 1e4 ? fmt::format("{:.1f}", far) : fmt::format("{:.1e}", far), kFromTruth, advice);
}

std::vector<std::string> moments_far_from_truth(const WeightedMoments& m, const TargetInstance& target,
                                                double most, const std::string& advice, bool one_of_each) {
  const Truth& truth = target.truth();
  std::vector<std::string> all;
  const auto look = [&](const auto& name, const auto& value, const auto& se, const auto& known) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (never_varied(value[i], se[i])) continue;
      std::string warning = far_from_truth(name(i), {value[i], se[i]}, known(i), most, advice);
      if (warning.empty()) continue;
      all.push_back(std::move(warning));
      if (one_of_each) return;
    }
  };
  const auto numbered = [](const char* name) {
    return [name](std::size_t i) { return fmt::format("{}[{}]", name, i); };
  };
  look(numbered("mean"), m.mean, m.mean_se, [&](std::size_t i) { return truth.mean[i]; });
  look(numbered("second_moment"), m.second, m.second_se,
       [&](std::size_t i) { return truth.second_moment(int(i)); });
  if (!truth.quantities.empty())
    look([&](std::size_t q) { return target.quantities()[q]; }, m.quantity, m.quantity_se,
         [&](std::size_t q) { return truth.quantities[q]; });
  return all;
}

void warn_unless_finite(std::vector<std::string>& warnings, const std::string& name,
                        const std::vector<double>& values) {
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); }))
    warnings.push_back(name + " is not finite and left out");
}

}  // namespace lockstep
