// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/study_statistics.hpp"

#include <cmath>
#include <limits>

#include "kernels/random_stream.hpp"

namespace lockstep {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? nan : sum / static_cast<double>(values.size());
}

double sd_of(const std::vector<double>& values) {
  if (values.size() < 2) return nan;
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

/// Standard deviation of the root of the mean of `squares` under resampling.
double bootstrap_root_mean_sd(const std::vector<double>& squares) {
  if (squares.size() < 2) return nan;
  RandomStream random(Purpose::bootstrap, {});
  std::vector<double> roots(1000);
  for (double& root : roots) {
    double sum = 0;
    for (std::size_t i = 0; i < squares.size(); ++i) sum += squares[random.below(squares.size())];
    root = std::sqrt(sum / static_cast<double>(squares.size()));
  }
  return sd_of(roots);
}

}  // namespace

double normal_equivalent(double t, double df) {
  const double u = std::sqrt(df * std::log1p(t * t / df)), c = 8 * df + 3;
  if (!(u > 0)) return u;
  const double s = 0.184 * c / u;
  return std::copysign(u * (1 - 2 * std::sqrt(-std::expm1(-s * s)) / c), t);
}

QuantityStatistics replicate_statistics(const std::vector<double>& estimates,
                                        const std::vector<double>& truths) {
  QuantityStatistics result;
  std::vector<double> finite, errors, squares;
  bool same_truth = !truths.empty();
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    same_truth = same_truth && truths[i] == truths[0];  // false for NaN too
    if (!std::isfinite(estimates[i])) continue;
    finite.push_back(estimates[i]);
    errors.push_back(estimates[i] - truths[i]);
    squares.push_back(errors.back() * errors.back());
  }
  result.replicates = static_cast<int>(estimates.size());
  result.finite = static_cast<int>(finite.size());
  result.truth = same_truth ? truths[0] : nan;
  result.mean = mean_of(finite);
  result.sd = sd_of(finite);
  result.rmse = std::sqrt(mean_of(squares));
  result.rmse_se = std::isnan(result.rmse) ? nan : bootstrap_root_mean_sd(squares);
  const double sd = sd_of(errors);
  const double count = static_cast<double>(errors.size());
  result.bias_z = sd > 0 ? normal_equivalent(mean_of(errors) / (sd / std::sqrt(count)), count - 1) : nan;
  return result;
}

}  // namespace lockstep
