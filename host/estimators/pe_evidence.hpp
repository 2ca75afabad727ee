// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

/// log int_0^1 beta^a exp(-beta delta) d beta for a > -1: an incomplete gamma function, by series of positive
/// terms.
double log_tilted_integral(double a, double delta);

/// The normalising constant from a pseudo-extended chain with a proper base, g(beta) = beta^a on [0, 1].
///
/// Given the hidden index, the other N - 1 pairs (x, beta) are draws of q(x, beta) ~ gamma_beta(x) g(beta),
/// so that a pair counts 1 - w_i. With Delta = base - (log_density - log zeta) and w_b(x) = exp(-b Delta) /
/// int g exp(-beta Delta):
///   log Z = log zeta + log sum (1 - w_i) w_1(x_i) - log sum (1 - w_i) w_0(x_i)
/// Standard error: jackknife over blocks (chains, or stretches of one chain).
class PseudoExtendedEvidence {
 public:
  PseudoExtendedEvidence(double g_exponent, int blocks)
      : g_exponent_(g_exponent), top_(blocks), bottom_(blocks) {}
  /// One pair: 1 - w and Delta.
  void add(int block, double weight, double delta);
  LogZ value(double log_zeta) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("top", top_);
    archive("bottom", bottom_);
  }

 private:
  double g_exponent_;
  std::vector<LogSum> top_, bottom_;
};

}  // namespace lockstep
