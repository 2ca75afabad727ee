// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/pe_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host/estimators/pack_sums.hpp"

namespace lockstep {

TiltedIntegral::TiltedIntegral(double a, std::span<const double> bend) {
  // From a place where beta^(a + 1) is below e^-90, and beta below e^-40, to one where 1 - beta is below e^-80; in steps
  // that see the integrand's peak, whose width in log beta is 1 / sqrt(a + 1), for |delta| up to 1e6.
  const double low = -std::asinh(std::max(26.0, 60 / (a + 1))), high = 4;
  const double step = 1 / (32 * std::ceil(std::max(1.0, std::sqrt(a + 1))));
  const int nodes = int((high - low) / step) + 1;
  const auto log_sigmoid = [](double t) { return std::min(t, 0.0) - std::log1p(std::exp(-std::abs(t))); };
  for (int n = 0; n < nodes; ++n) {
    const double s = low + n * step, t = 0.5 * std::numbers::pi * std::sinh(s);
    const double log_beta = log_sigmoid(t), log_rest = log_sigmoid(-t), r = std::exp(0.25 * log_beta);
    double bent = 0;
    for (std::size_t k = bend.size(); k-- > 0;) bent = r * (bent + bend[k]);
    log_weight_.push_back((a + 1) * log_beta + log_rest +
                          std::log(0.5 * std::numbers::pi * std::cosh(s) * step) + bent);
    beta_.push_back(std::exp(log_beta));
    rest_.push_back(std::exp(log_rest));
  }
}

double TiltedIntegral::log(double delta) const {
  // For delta < 0 the value at beta = 1 is taken out: exp(-beta delta) = exp(-delta) exp((1 - beta) delta).
  std::vector<double> term(log_weight_.size());
  for (std::size_t n = 0; n < term.size(); ++n)
    term[n] = log_weight_[n] + (delta >= 0 ? -beta_[n] : rest_[n]) * delta;
  return log_sum_of(term).log() + std::max(0.0, -delta);
}

BaseBridge::BaseBridge(const TiltedIntegral& integral, std::span<const double> deltas) {
  constexpr double kLeast = 0.01;
  std::vector<double> log_i;
  LogSum all;
  for (const double delta : deltas) {
    log_i.push_back(std::isfinite(delta) ? integral.log(delta) : -INFINITY);
    all.add(log_i.back());
  }
  if (!(all.sum > 0)) {
    log_share = NAN;
    return;
  }
  const double n = double(log_i.size());
  log_least = all.log() + std::log(kLeast / n);
  double sum = 0, square = 0;
  for (const double l : log_i) {
    const double share = 1 / (1 + std::exp(log_least - l));
    sum += share;
    square += share * share;
  }
  const double mean = sum / n;
  log_share = std::log(mean);
  se = std::sqrt(std::max(0.0, square / n - mean * mean) / (n - 1)) / mean;
}

void PseudoExtendedEvidence::add(int block, double weight, double delta, double log_integral) {
  if (!(weight > 0) || !std::isfinite(delta)) return;
  top_[block].add(std::log(weight) - delta - log_integral);
  LogSum both;
  both.add(log_integral);
  both.add(bridge_.log_least);
  bottom_[block].add(std::log(weight) - both.log());
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
  return result.value().shifted(bridge_.log_share).widened(bridge_.se);
}

}  // namespace lockstep
