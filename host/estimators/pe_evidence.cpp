// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/pe_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host/estimators/pack_sums.hpp"

namespace lockstep {

TiltedIntegral::TiltedIntegral(double a, std::span<const double> bend) {
  // Beyond these ends of s what is left out is below rounding for a > -0.991 and |delta| < 1e30.
  constexpr double kStep = 1.0 / 32, kLow = -9, kHigh = 5;
  constexpr int kNodes = int((kHigh - kLow) / kStep) + 1;
  const auto log_sigmoid = [](double t) { return std::min(t, 0.0) - std::log1p(std::exp(-std::abs(t))); };
  for (int n = 0; n < kNodes; ++n) {
    const double s = kLow + n * kStep, t = 0.5 * std::numbers::pi * std::sinh(s);
    const double log_beta = log_sigmoid(t), log_rest = log_sigmoid(-t), r = std::exp(0.25 * log_beta);
    double bent = 0;
    for (std::size_t k = bend.size(); k-- > 0;) bent = r * (bent + bend[k]);
    log_weight_.push_back((a + 1) * log_beta + log_rest +
                          std::log(0.5 * std::numbers::pi * std::cosh(s) * kStep) + bent);
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

void PseudoExtendedEvidence::add(int block, double weight, double delta) {
  if (!(weight > 0) || !std::isfinite(delta)) return;
  const double log_integral = integral_.log(delta);
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
