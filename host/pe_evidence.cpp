// SPDX-License-Identifier: Apache-2.0
#include "host/pe_evidence.hpp"

#include <cmath>

namespace lockstep {

double log_tilted_integral(double a, double delta) {
  const double s = a + 1, x = std::abs(delta);
  if (delta > 0 && x > s + 100) return std::lgamma(s) - s * std::log(x);  // the tail beyond 1 is below exp(-100)
  if (delta < 0 && x > 700) return x - std::log(x) - a / x;               // the end at 1 dominates; relative error a^2/x^2
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

void PseudoExtendedEvidence::LogSum::add(double t) {
  if (t > largest) {
    sum = sum * std::exp(largest - t) + 1;
    largest = t;
  } else {
    sum += std::exp(t - largest);
  }
}
void PseudoExtendedEvidence::LogSum::add(const LogSum& other) {
  if (other.sum > 0) {
    const double t = std::max(largest, other.largest);
    sum = sum * std::exp(largest - t) + other.sum * std::exp(other.largest - t);
    largest = t;
  }
}
double PseudoExtendedEvidence::LogSum::log() const { return largest + std::log(sum); }

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
  double mean = 0, square = 0;
  for (int k = 0; k < n; ++k) mean += without(k) / n;
  for (int k = 0; k < n; ++k) square += (without(k) - mean) * (without(k) - mean);
  return {log_zeta + without(-1), std::sqrt(square * (n - 1) / n)};
}

}  // namespace lockstep
