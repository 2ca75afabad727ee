// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/annealed_weights.hpp"

#include <algorithm>

#include "host/estimators/pack_sums.hpp"
#include "kernels/random_stream.hpp"

namespace lockstep {

WeightSummary summarise_weights(const std::vector<double>& log_weights) {
  const double n = double(log_weights.size());
  const double total = log_sum_of(log_weights).log();
  double mean = 0;
  for (double v : log_weights) mean += v / n;
  double squares = 0, scatter = 0, log_scatter = 0;
  for (double v : log_weights) {
    const double share = std::exp(v - total);
    squares += share * share;
    scatter += (share - 1 / n) * (share - 1 / n);
    log_scatter += (v - mean) * (v - mean);
  }
  const bool several = log_weights.size() > 1;
  const auto of_runs = [&](double estimate, double se) { return LogZ{estimate, se, se, n - 1}; };
  return {of_runs(total - std::log(n), several ? std::sqrt(scatter * n / (n - 1)) : NAN),
          of_runs(mean, several ? std::sqrt(log_scatter / (n - 1) / n) : NAN), 1 / squares};
}

LogZ bennett_acceptance_ratio(const std::vector<double>& forward, const std::vector<double>& reverse) {
  const double nf = double(forward.size()), nr = double(reverse.size()), m = std::log(nr / nf);
  const auto sides = [&](double c) {
    return std::pair(logistic_sums(forward, m - c), logistic_sums(reverse, c - m));
  };
  /// Of the sum over n independent runs.
  const auto variance = [](const LogisticSums& s, double n) {
    return std::max(0.0, s.squares - s.sum * s.sum / n) * n / (n - 1);
  };
  // The root of log(sum_forward) - log(sum_reverse), which falls with c and is nearly straight where the
  // overlap is small. It lies between the extreme weights but for those that are 0.
  double low = INFINITY, high = -INFINITY;
  for (double v : forward)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  for (double v : reverse)
    if (std::isfinite(v)) low = std::min(low, -v), high = std::max(high, -v);
  low -= std::log(nf) + 1;
  high += std::log(nr) + 1;
  double c = 0.5 * (low + high);
  for (int i = 0; i < 200; ++i) {
    const auto [f, r] = sides(c);
    const double difference = std::log(f.sum) - std::log(r.sum);
    (difference > 0 ? low : high) = c;
    double next = c + difference / (f.slope / f.sum + r.slope / r.sum);
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    const double moved = std::abs(next - c);
    c = next;
    if (!(moved > 1e-13 * (1 + std::abs(c)))) break;
  }
  const auto [f, r] = sides(c);
  if (!(f.sum > 0 && r.sum > 0)) return {NAN, NAN};
  return {c, std::sqrt(variance(f, nf) + variance(r, nr)) / (f.slope + r.slope)};
}

double bennett_bootstrap_se(const std::vector<double>& forward, const std::vector<double>& reverse,
                            int resamples) {
  RandomStream random(Purpose::bootstrap, {});
  const auto resample = [&](const std::vector<double>& x) {
    std::vector<double> y(x.size());
    for (double& v : y) v = x[random.below(x.size())];
    return y;
  };
  double mean = 0, squares = 0;  // Welford
  for (int i = 0; i < resamples; ++i) {
    const std::vector<double> f = resample(forward), r = resample(reverse);
    const double c = bennett_acceptance_ratio(f, r).estimate, d = c - mean;
    mean += d / (i + 1);
    squares += d * (c - mean);
  }
  return std::sqrt(squares / (resamples - 1));
}

LogZ with_larger_error(const LogZ& bennett, double bootstrap_se, double runs) {
  const double se = std::max(bennett.se, bootstrap_se);
  return {bennett.estimate, se, se, runs - 1};
}

Bidirectional bidirectional(const std::vector<double>& forward, const std::vector<double>& reverse) {
  const WeightSummary f = summarise_weights(forward), r = summarise_weights(reverse);
  const auto negative = [](LogZ v) { return LogZ{-v.estimate, v.se}; };
  return {f.mean_log,
          negative(r.mean_log),
          f.log_mean,
          negative(r.log_mean),
          f.ess,
          r.ess,
          bennett_acceptance_ratio(forward, reverse),
          bennett_bootstrap_se(forward, reverse)};
}

}  // namespace lockstep
