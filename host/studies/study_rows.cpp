// SPDX-License-Identifier: Apache-2.0
#include "host/studies/study_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "host/studies/study_pooled.hpp"

namespace lockstep {
namespace {

/// Of evidence, results.csv has log Z, the target's own quantities and their errors to single precision.
double single(double value) { return float(value); }

}  // namespace

void ReplicateRows::add(const std::string& quantity, double estimate, double se, double truth) {
  rows_.push_back({label_, replicate_, quantity, estimate, se, truth, gradients_});
}

void ReplicateRows::add(const LogZSummary& z, double truth) {
  add("log_z", single(z.estimate), single(z.se), truth);
  if (!std::isnan(z.lower)) add("log_z_lower", z.lower, NAN, truth);
  if (!std::isnan(z.upper)) add("log_z_upper", z.upper, NAN, truth);
}

void ReplicateRows::add_error(const std::string& quantity, const std::vector<double>& found,
                              const std::vector<double>& known) {
  const auto whole = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  };
  if (whole(found) && whole(known) && found.size() == known.size())
    add(quantity, rms_difference(found, known), NAN, 0);
}

void ReplicateRows::add_relative_error(const std::vector<double>& mean, const std::vector<double>& known) {
  double size = 0, error = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    size += std::abs(known[i]);
    error += std::abs(mean[i] - known[i]);
  }
  if (size > 0) add("relative_mean_error", error / size, NAN, 0);  // not where the truth is unknown (NaN)
}

void ReplicateRows::add(const Estimates& e, const LogZ* log_z, const TargetInstance& target) {
  const Truth& truth = target.truth();
  const auto row = [&](const std::string& quantity, double estimate, double se, double known) {
    add(quantity, estimate, never_varied(quantity, estimate, se, e.weight_ess) ? NAN : se, known);
  };
  for (int i = 0; i < target.dim(); ++i)
    row(fmt::format("mean[{}]", i), e.mean[i], e.mean_se[i], truth.mean[i]);
  for (int i = 0; i < target.dim(); ++i)
    row(fmt::format("second_moment[{}]", i), e.second[i], e.second_se[i], truth.second_moment(i));
  add_relative_error(e.mean, truth.mean);
  for (std::size_t q = 0; q < e.quantity.size(); ++q)
    row(target.quantities()[q], e.quantity[q], e.quantity_se[q], truth.quantities[q]);
  if (log_z != nullptr) row("log_z", log_z->estimate, log_z->se, truth.log_z);
  if (target.names_modes()) row("mode_switches", e.switches, NAN, NAN);
}

void ReplicateRows::add(const NamedNumbers& counters) {
  for (const auto& [name, count] : counters) add(name, count, NAN, NAN);
}

void ReplicateRows::add(const EvidenceResult& found, const TargetInstance& target) {
  const Truth& truth = target.truth();
  const EstimatesSummary& e = found.estimates;
  for (int i = 0; i < target.dim(); ++i)
    add(fmt::format("mean[{}]", i), entry(e.mean, i), entry(e.mean_se, i), truth.mean[i]);
  for (int i = 0; i < target.dim(); ++i)
    add(fmt::format("second_moment[{}]", i), entry(e.second, i), entry(e.second_se, i),
        truth.second_moment(i));
  // Of a target whose truth is unknown the covariance is zeros.
  const bool known = !std::isnan(truth.mean[0]);
  if (known && !e.mean.empty()) add_relative_error(e.mean, truth.mean);
  if (known && !e.covariance.empty()) add_error("covariance_error", e.covariance, truth.covariance);
  for (std::size_t q = 0; !e.quantities.empty() && q < target.quantities().size(); ++q) {
    const std::string& name = target.quantities()[q];
    add(name, single(entry(e.quantities, name)), single(entry(e.quantities_se, name)), truth.quantities[q]);
  }
  add(found.log_z, truth.log_z);
  // What the path began with.
  const EvidenceDiagnostics& d = found.diagnostics;
  if (!std::isnan(d.base_log_zeta)) add("base_log_z", d.base_log_zeta, NAN, truth.log_z);
  if (!d.base_mean.empty()) add_error("base_mean_error", d.base_mean, truth.mean);
  if (known && !d.base_covariance.empty())
    add_error("base_covariance_error", d.base_covariance, truth.covariance);
  if (d.base_starts) add("base_starts", *d.base_starts, NAN, NAN);
  add(d.counters);
}

void ReplicateRows::add(const ItemResult& found, const TargetInstance&) {
  const LogZSummary& z = found.log_z;
  add(z, single(found.truth.log_z));
  if (!std::isnan(z.gap)) add("log_z_gap", z.gap, single(z.gap_se), NAN);
}

}  // namespace lockstep
