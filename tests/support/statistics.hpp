// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statistical checks with a stated rate of false alarms. A suite of K two-sided tests whose family may raise
// a false alarm with probability alpha uses the threshold `family_quantile(alpha, K)` for each |z|.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::testing {

inline double normal_cdf(double z) { return 0.5 * std::erfc(-z * 0.70710678118654752440); }

/// z with P(Z <= z) = p for a standard normal Z, 0 < p < 1: bisection on erfc, exact to 1e-12.
inline double normal_quantile(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 120; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_cdf(middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// Threshold of |z| for each of `tests` two-sided tests, so that any alarm at all has probability at most
/// `alpha` when every null hypothesis holds (Bonferroni; needs no independence).
inline double family_quantile(double alpha, std::size_t tests) {
  return -normal_quantile(alpha / (2.0 * static_cast<double>(tests)));
}

/// Mean, standard deviation and count of independent numbers, summed in one pass (Welford).
class RunningMean {
 public:
  void add(double x) {
    ++count_;
    const double d = x - mean_;
    mean_ += d / static_cast<double>(count_);
    squares_ += d * (x - mean_);
  }
  std::size_t count() const { return count_; }
  double mean() const { return mean_; }
  double variance() const { return count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : 0.0; }
  double standard_error() const { return std::sqrt(variance() / static_cast<double>(count_)); }
  /// (mean - expected) / standard error; 0 where all numbers equal the expected one, NaN for NaN input.
  double z(double expected = 0) const {
    const double d = mean_ - expected;
    return d == 0 ? 0.0 : d / standard_error();
  }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

inline RunningMean running_mean(std::span<const double> x) {
  RunningMean r;
  for (double v : x) r.add(v);
  return r;
}

/// RunningMean::z of many numbers, in two passes without its division for each.
inline double mean_z(std::span<const double> x) {
  double sum = 0, squares = 0;
  for (double v : x) sum += v;
  const double n = static_cast<double>(x.size()), mean = sum / n;
  for (double v : x) squares += (v - mean) * (v - mean);
  return mean == 0 ? 0.0 : mean / std::sqrt(squares / (n - 1) / n);
}

/// Do claimed standard errors cover? Collects (estimate - truth) / se of independent replicates, where se has
/// `freedom` degrees of freedom (blocks - 1; at least 5), so that the ratios follow Student's t.
class Coverage {
 public:
  explicit Coverage(double freedom) : freedom_(freedom) {}
  void add(double estimate, double se, double truth) { ratios_.add((estimate - truth) / se); }
  /// z-scores of the mean of the ratios, which should be 0, and of their standard deviation, which should be
  /// sqrt(freedom / (freedom - 2)) and has a standard error of sqrt((2 + excess kurtosis) / (4 n)) of itself.
  double bias_z() const { return ratios_.mean() * std::sqrt(double(ratios_.count())) / sd(); }
  double spread_z() const {
    const double kurtosis = 6 / (freedom_ - 4);
    return (std::sqrt(ratios_.variance()) / sd() - 1) /
           std::sqrt((2 + kurtosis) / (4.0 * double(ratios_.count())));
  }

 private:
  double sd() const { return std::sqrt(freedom_ / (freedom_ - 2)); }
  double freedom_;
  RunningMean ratios_;
};

/// z of the difference of two independent samples' means (Welch).
inline double two_sample_z(std::span<const double> a, std::span<const double> b) {
  const RunningMean x = running_mean(a), y = running_mean(b);
  const double d = x.mean() - y.mean();
  return d == 0 ? 0.0 : d / std::hypot(x.standard_error(), y.standard_error());
}

/// P(K > t) of Kolmogorov's distribution.
inline double kolmogorov_tail(double t) {
  if (t < 0.2) return 1;
  double p = 0;
  for (int k = 1; k <= 100; ++k) p += (k % 2 ? 2 : -2) * std::exp(-2.0 * k * k * t * t);
  return std::clamp(p, 0.0, 1.0);
}

/// p-value of the one-sample Kolmogorov-Smirnov test of independent `x` against a continuous `cdf`
/// (asymptotic, with Stephens' correction: good from n = 20).
template <class Cdf>
double ks_test(std::vector<double> x, Cdf&& cdf) {
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size()), root = std::sqrt(n);
  double d = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double f = cdf(x[i]);
    d = std::max({d, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return kolmogorov_tail((root + 0.12 + 0.11 / root) * d);
}

/// p-value of the two-sample Kolmogorov-Smirnov test of independent samples.
inline double ks_test(std::vector<double> a, std::vector<double> b) {
  for (auto* v : {&a, &b})
    if (!std::is_sorted(v->begin(), v->end())) std::sort(v->begin(), v->end());
  double d = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    d = std::max(d, std::abs(static_cast<double>(i) / a.size() - static_cast<double>(j) / b.size()));
  }
  const double n = static_cast<double>(a.size()) * b.size() / static_cast<double>(a.size() + b.size());
  const double root = std::sqrt(n);
  return kolmogorov_tail((root + 0.12 + 0.11 / root) * d);
}

}  // namespace lockstep::testing
