// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

/// log int_0^1 g(beta) exp(-beta delta) d beta, g(beta) = beta^a exp(sum_k bend_k beta^(k/4)), a > -1, k from 1: by the
/// doubly exponential rule, beta = 1 / (1 + exp(-t)), t = (pi / 2) sinh(s). Source: Takahasi & Mori (1974).
class TiltedIntegral {
 public:
  TiltedIntegral(double a, std::span<const double> bend = {});
  double log(double delta) const;

 private:
  std::vector<double> log_weight_, beta_, rest_;  // [node]; rest: 1 - beta
};

/// The normalising constant from a pseudo-extended chain with a proper base and beta in [0, 1].
///
/// Given the hidden index, the other N - 1 pairs (x, beta) are draws of q(x, beta) ~ gamma_beta(x) g(beta),
/// so that a pair counts 1 - w_i. With Delta = base - (log_density - log zeta) and w_b(x) = exp(-b Delta) /
/// int g exp(-beta Delta):
///   log Z = log zeta + log sum (1 - w_i) w_1(x_i) - log sum (1 - w_i) w_0(x_i)
/// Standard error: jackknife over blocks (chains, or stretches of one chain).
class PseudoExtendedEvidence {
 public:
  PseudoExtendedEvidence(TiltedIntegral integral, int blocks)
      : integral_(std::move(integral)), top_(blocks), bottom_(blocks) {}
  /// One pair: 1 - w and Delta, with the integral at it.
  void add(int block, double weight, double delta, double log_integral);
  void add(int block, double weight, double delta) { add(block, weight, delta, integral_.log(delta)); }
  const TiltedIntegral& integral() const { return integral_; }
  LogZ value(double log_zeta) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("top", top_);
    archive("bottom", bottom_);
  }

 private:
  TiltedIntegral integral_;
  std::vector<LogSum> top_, bottom_;
};

}  // namespace lockstep
