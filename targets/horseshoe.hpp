// SPDX-License-Identifier: Apache-2.0
#pragma once
// Logistic regression with a regularised horseshoe prior (Piironen & Vehtari 2017), as in section 4.3 and supplement E
// of the pseudo-extended paper (Nemeth et al. 2019) and its published code.
#include "kernels/device_code.hpp"
#include "targets/dense_layer.hpp"
#include "targets/half_cauchy.hpp"
#include "targets/horseshoe_scale.hpp"
#include "targets/target.hpp"

#ifdef LOCKSTEP_DEVICE_CODE
#include "targets/horseshoe_cuda.cuh"
#else
#include "targets/horseshoe_block.hpp"
#endif

namespace lockstep {

/// Case i of n, of class y_i in {0, 1}, has p features x_i:
///
///   P(y_i = 1) = 1 / (1 + exp(-b_0 - x_i'b)),   b_j = z_j tau lambda~_j,   lambda~_j of HorseshoeScale,
///   z_j ~ N(0, 1), lambda_j ~ half-Cauchy(1), tau ~ half-Cauchy(tau_0), b_0 ~ N(0, 10^2),
///   c = s sqrt(v), v ~ inverse-gamma(nu / 2, nu / 2)        (the slab: Student's t of nu degrees, scale s)
///
/// State: (b_0, log tau, log v, z_1 .. z_p, log lambda_1 .. log lambda_p), 2 p + 3 numbers. All constants are kept and
/// the Jacobians are in, so that Z = p(y). The supplement prints exp(z'x) for exp(-z'x), and c as a constant, where the
/// published code draws it: here it is drawn. That code shares tau, lambda and c between pseudo-samples and tempers the
/// likelihood alone, whose posterior is another; here a pseudo-sample has all of the state.
///
/// A row of `cases` is a feature, the first of them 1 for the intercept, times the case's sign 2 y_i - 1: with eta =
/// cases' (b_0, b), the log likelihood is sum_i log sigmoid(eta_i). Gradients come from products over many chains
/// (Block); `log_density` is the same chain by chain: the reference. Quantities are the predictive probabilities of the
/// cases held out, P(y_i | x_i, state).
struct Horseshoe : DensityDefaults {
  static constexpr bool kBatch = true;
  static constexpr double kInterceptSd = 10;
  static constexpr int kTogether = 8;  // cases held out whose sums are taken in one pass
  enum Row { kIntercept, kLogTau, kLogSlab, kZ };

  int dim = 0, features = 0, training = 0, held_out = 0;
  double log_tau0 = 0, log_slab_scale = 0, half_df = 0;
  double constant = 0;
  ParameterArray cases;           // [1 + features][training]
  ParameterArray held_out_cases;  // [1 + features][held_out, padded to a multiple of kTogether]

  LOCKSTEP_FN int padded_held_out() const { return (held_out + kTogether - 1) / kTogether * kTogether; }
  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(cases, (1 + features) * training);
    f(held_out_cases, (1 + features) * padded_held_out());
  }

#ifdef LOCKSTEP_DEVICE_CODE
  template <class R, class E>
  using Block = HorseshoeCuda<Horseshoe, R, E>;
#else
  template <class L, class E>
  using Block = HorseshoeBlock<Horseshoe, L, E>;
#endif

  template <class L>
  LOCKSTEP_FN L log_c(L log_slab) const {
    using R = scalar_t<L>;
    return fma(L(R(0.5)), log_slab, L(R(log_slab_scale)));
  }

  /// The log density of (b_0, log tau, log v), without its constants, and its gradient.
  template <class L>
  struct CommonPrior {
    L value, intercept, log_tau, log_slab;
  };
  template <class L>
  LOCKSTEP_FN CommonPrior<L> common_prior(L intercept, L log_tau, L log_slab) const {
    using R = scalar_t<L>;
    const LogHalfCauchy<L> tau(log_tau, log_tau0);
    const L pull = intercept * L(R(-1 / (kInterceptSd * kInterceptSd))), half = L(R(half_df)),
            inverse = half * exp(-log_slab);
    return {nfma(half, log_slab, tau.value) + fma(pull * L(R(0.5)), intercept, -inverse), pull, tau.slope,
            inverse - half};
  }

#ifndef LOCKSTEP_DEVICE_CODE
  template <int D, class L, class X, class G>
  L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const L intercept = x[kIntercept], log_tau = x[kLogTau], log_slab = x[kLogSlab];
    const L slab_log = log_c(log_slab);
    const CommonPrior<L> prior = common_prior(intercept, log_tau, log_slab);
    const R* c = cases.get<L>();
    std::vector<L> eta;
    for (int i = 0; i < training; ++i) eta.push_back(L(c[i]) * intercept);
    L value = L(R(constant)) + prior.value;
    for (int j = 0; j < features; ++j) {
      const L z = x[kZ + j], log_lambda = x[kZ + features + j],
              b = z * HorseshoeScale<L>(log_lambda, log_tau, slab_log).scale;
      value = fma(z * L(R(-0.5)), z, value) + LogHalfCauchy<L>(log_lambda, 0).value;
      for (int i = 0; i < training; ++i) eta[i] = fma(L(c[(j + 1) * training + i]), b, eta[i]);
    }
    for (const L& y : eta) value = value + log_sigmoid(y);
    if constexpr (gradient_wanted<G>()) {
      for (L& y : eta) y = sigmoid(-y);
      const auto along = [&](int row) {  // the derivative in a coefficient
        L sum = L(0);
        for (int i = 0; i < training; ++i) sum = fma(L(c[row * training + i]), eta[i], sum);
        return sum;
      };
      L near = L(0), slab = L(0);  // sums of b_j dlogL/db_j, by the shares of tau and of c
      for (int j = 0; j < features; ++j) {
        const L z = x[kZ + j], log_lambda = x[kZ + features + j];
        const HorseshoeScale<L> s(log_lambda, log_tau, slab_log);
        const L pull = s.scale * along(j + 1), moved = z * pull, own = moved * s.of_tau;
        near = near + own;
        slab = fma(moved, s.of_slab, slab);
        g.set(kZ + j, pull - z);
        g.set(kZ + features + j, own + LogHalfCauchy<L>(log_lambda, 0).slope);
      }
      g.set(kIntercept, along(0) + prior.intercept);
      g.set(kLogTau, near + prior.log_tau);
      g.set(kLogSlab, fma(slab, L(R(0.5)), prior.log_slab));
    }
    return value;
  }
#endif

  /// P(y_i | x_i, state) of the cases held out.
  LOCKSTEP_FN int quantities() const { return held_out; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    using R = scalar_t<L>;
    const L log_tau = x[kLogTau], slab_log = log_c<L>(x[kLogSlab]);
    const int padded = padded_held_out();
    for (int first = 0; first < held_out; first += kTogether) {
      const R* c = held_out_cases.get<L>() + first;
      L eta[kTogether];
      LOCKSTEP_UNROLL_FIXED
      for (int k = 0; k < kTogether; ++k) eta[k] = L(c[k]) * x[kIntercept];
      for (int j = 0; j < features; ++j) {
        c += padded;
        const L b = x[kZ + j] * HorseshoeScale<L>(x[kZ + features + j], log_tau, slab_log).scale;
        LOCKSTEP_UNROLL_FIXED
        for (int k = 0; k < kTogether; ++k) eta[k] = fma(L(c[k]), b, eta[k]);
      }
      for (int k = 0; k < kTogether && first + k < held_out; ++k) put(first + k, sigmoid(eta[k]));
    }
  }
};

struct HorseshoeTarget {
  using Density = Horseshoe;
  static TargetInfo info();
  static Built<Horseshoe> build(TargetInput& in);
};

}  // namespace lockstep
