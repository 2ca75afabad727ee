// SPDX-License-Identifier: Apache-2.0
#pragma once
// Autoregression with unknown scale: posteriordb's arK (Stan's example models).
#include "targets/half_cauchy.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// y_t ~ N(alpha + sum_k beta_k y_(t - k), sigma^2) for t > K; alpha, beta_k ~ N(0, 10^2), sigma ~ half-Cauchy(2.5).
/// State (alpha, beta_1 .. beta_K, log sigma), K + 2 numbers. All constants are kept and sigma's Jacobian is in, so that
/// log Z = log p(y_(K+1), .. | y_1, .. y_K).
///
/// With (regressors, y) = Q (R, c; 0, rho), sum_t (y_t - prediction)^2 = |c - R theta|^2 + rho^2, theta = (alpha, beta):
/// the cost does not depend on the length, and the residuals are formed before they are squared, so that float loses
/// little.
struct Ark : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr double kSd = 10, kLogWidth = 0.91629073187415506518;  // log 2.5
  static constexpr int kMaxOrder = 100;

  int dim = 0;
  double terms = 0, within = 0, constant = 0;  // number of predicted y_t; rho^2
  ParameterArray factor;                       // [K + 1][K + 2]: rows of (R, c)

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(factor, (dim - 1) * dim);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const int n = extent<D>(dim) - 1;
    const L log_sigma = x[n], precision = exp(log_sigma * L(R(-2)));
    const R* row = factor.get<L>();
    L squares = L(R(within)), prior = L(0);
    for (int i = 0; i < n; ++i) g.set(i, L(0));
    for (int i = 0; i < n; ++i, row += n + 1) {
      L r = L(row[n]);
      for (int j = i; j < n; ++j) r = nfma(L(row[j]), x[j], r);
      squares = fma(r, r, squares);
      prior = fma(x[i], x[i], prior);
      if constexpr (gradient_wanted<G>())
        for (int j = i; j < n; ++j) g.set(j, fma(L(row[j]), r, g[j]));
    }
    const L inv_variance = L(R(1 / (kSd * kSd)));
    if constexpr (gradient_wanted<G>())
      for (int i = 0; i < n; ++i) g.set(i, nfma(inv_variance, x[i], precision * g[i]));
    const L fit = precision * squares;
    const LogHalfCauchy<L> scale(log_sigma, kLogWidth);
    g.set(n, fit - L(R(terms)) + scale.slope);
    const L half = fma(inv_variance, prior, fit);
    return nfma(L(R(terms)), log_sigma, nfma(L(R(0.5)), half, scale.value + L(R(constant))));
  }

  /// sigma.
  LOCKSTEP_FN int quantities() const { return 1; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    put(0, exp(x[extent<D>(dim) - 1]));
  }
};

struct ArkTarget {
  using Density = Ark;
  static TargetInfo info();
  static Built<Ark> build(TargetInput& in);
};

}  // namespace lockstep
