// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rubin's eight schools (1981): the smallest hierarchical model that is hard to sample. Non-centred.
#include "targets/half_cauchy.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// School j's coaching has the effect theta_j = mu + tau t_j, measured as y_j ~ N(theta_j, sigma_j^2) with
/// known sigma_j; mu ~ N(0, 5^2), tau ~ half-Cauchy(5), t_j ~ N(0, 1), as in Gelman et al., Bayesian Data
/// Analysis, and in posteriordb. State (mu, log tau, t_1 .. t_J). All constants are kept, so that log Z = log
/// p(y).
struct EightSchools : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr double kSdMu = 5, kLogWidth = 1.60943791243410037460;  // log 5
  enum Row { kMu, kLogTau, kEffect };

  int dim = 0;
  double constant = 0;
  ParameterArray y, inv_sigma;  // [J]

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(y, dim - kEffect);
    f(inv_sigma, dim - kEffect);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const R *effect = y.get<L>(), *inverse = inv_sigma.get<L>();
    const L mu = x[kMu], log_tau = x[kLogTau], tau = exp(log_tau), inv_variance = L(R(1 / (kSdMu * kSdMu)));
    L squares = mu * mu * inv_variance, all = -(mu * inv_variance), along = L(0);
    LOCKSTEP_UNROLL
    for (int j = 0; j < extent<D>(dim) - kEffect; ++j) {
      const L t = x[kEffect + j], r = nfma(tau, t, L(effect[j]) - mu) * L(inverse[j]), e = r * L(inverse[j]);
      squares = fma(r, r, fma(t, t, squares));
      all = all + e;
      along = fma(t, e, along);
      g.set(kEffect + j, fma(tau, e, -t));
    }
    const LogHalfCauchy<L> prior(log_tau, kLogWidth);
    g.set(kMu, all);
    g.set(kLogTau, fma(tau, along, prior.slope));
    return nfma(L(R(0.5)), squares, prior.value + L(R(constant)));
  }

  /// tau and every theta_j.
  LOCKSTEP_FN int quantities() const { return dim - 1; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    const L tau = exp(x[kLogTau]);
    put(0, tau);
    for (int j = 0; j < extent<D>(dim) - kEffect; ++j) put(1 + j, fma(tau, x[kEffect + j], x[kMu]));
  }
};

struct EightSchoolsTarget {
  using Density = EightSchools;
  static TargetInfo info();
  static Built<EightSchools> build(TargetInput& in);
};

}  // namespace lockstep
