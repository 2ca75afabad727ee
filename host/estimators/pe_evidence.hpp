// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
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

/// What draws of a base say that pairs (below) cannot: how much of it lies where they hardly come, for a target that falls off
/// like exp(-exp(x)), or ends at a wall, keeps them away at any beta. Of m(x) = base(x) I(x), I = int g exp(-beta Delta), the
/// density of pairs, and c a hundredth of its integral: E_base I / (I + c), by `deltas` of independent draws.
/// NaN where the target is nothing at any of them. Source: Meng & Wong (1996), for a bridge of fixed form.
struct BaseBridge {
  double log_least = -INFINITY;  // log c
  double log_share = 0, se = 0;  // log E_base I / (I + c), and its standard error
  BaseBridge() = default;
  BaseBridge(const TiltedIntegral& integral, std::span<const double> deltas);

  template <class Archive>
  void fields(Archive& archive) {
    archive("log_least", log_least);
    archive("log_share", log_share);
    archive("se", se);
  }
};

/// The normalising constant from a pseudo-extended chain with a proper base and beta in [0, 1].
///
/// Given the hidden index, the other N - 1 pairs (x, beta) are draws of q(x, beta) ~ gamma_beta(x) g(beta),
/// so that a pair counts 1 - w_i. With Delta = base - (log_density - log zeta) and w_b(x) = exp(-b Delta) /
/// int g exp(-beta Delta):
///   log Z = log zeta + log sum (1 - w_i) w_1(x_i) - log sum (1 - w_i) w_0(x_i)
/// or, with a bridge to the base, I_i / (I_i + c) times each term of the last sum, and + log E_base I / (I + c).
/// Standard error: jackknife over blocks (chains, or stretches of one chain).
class PseudoExtendedEvidence {
 public:
  PseudoExtendedEvidence(TiltedIntegral integral, int blocks, const BaseBridge& bridge = {})
      : integral_(std::move(integral)), bridge_(bridge), top_(blocks), bottom_(blocks) {}
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
  BaseBridge bridge_;
  std::vector<LogSum> top_, bottom_;
};

}  // namespace lockstep
