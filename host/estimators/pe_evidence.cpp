// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/pe_evidence.hpp"

#include <cmath>

namespace lockstep {

double log_tilted_integral(double a, double delta) {
  const double s = a + 1, x = std::abs(delta);
  // The tail beyond 1 is below exp(-80).
  if (delta > 0 && x > s + 100 + 12 * std::sqrt(s)) return std::lgamma(s) - s * std::log(x);
  if (delta < 0 && x > 700) {
    // The end at 1 dominates: 1 - beta is exponential with rate c = x + a but for exp(a log beta + a (1 -
    // beta)), expanded in 1 / c.
    const double c = x + a, r = 1 / (c * c);
    return x - std::log(c) - a * r * (1 + 2 / c) + 2.5 * a * a * r * r;
  }
  if (delta >= 0) {
    // exp(-x) sum_k x^k / (s (s+1) .. (s+k))
    double term = 1 / s, sum = term;
    for (int k = 1; term > 1e-17 * sum; ++k) sum += term *= x / (s + k);
    return std::log(sum) - x;
  }
  // sum_k x^k / (k! (s + k))
  double power = 1, sum = 1 / s;
  for (int k = 1; k < 3000; ++k) {
    power *= x / k;
    const double term = power / (s + k);
    sum += term;
    if (k > x && term < 1e-17 * sum) break;
  }
  return std::log(sum);
}

void PseudoExtendedEvidence::add(int block, double weight, double delta) {
  if (!(weight > 0) || !std::isfinite(delta)) return;
  const double log_integral = log_tilted_integral(g_exponent_, delta);
  top_[block].add(std::log(weight) - delta - log_integral);
  bottom_[block].add(std::log(weight) - log_integral);
}

LogZ PseudoExtendedEvidence::value(double log_zeta) const {
  const int n = static_cast<int>(top_.size());
  const auto without = [&](int skip) {
    LogSum top, bottom;
    for (int k = 0; k < n; ++k)
      if (k != skip) {
        top.add(top_[k]);
        bottom.add(bottom_[k]);
      }
    return top.log() - bottom.log();
  };
  // Blocks that nothing fell into (of a short run) are none.
  Jackknife result{log_zeta + without(-1), {}};
  for (int k = 0; k < n; ++k)
    if (bottom_[k].sum > 0) result.left_out.push_back(without(k));
  return result.value();
}

}  // namespace lockstep
