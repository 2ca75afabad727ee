// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two-dimensional posterior with two modes of Welling & Teh (2011), section 5.1.
#include "targets/target.hpp"

namespace lockstep {

/// x_i ~ N(theta_1, 2) / 2 + N(theta_1 + theta_2, 2) / 2 (variances), theta_1 ~ N(0, 10), theta_2 ~ N(0, 1). With
/// r_k = x_i - m_k for the two means and t = (r_1^2 - r_2^2) / 4, a datum adds -min(r_1^2, r_2^2) / 4 +
/// log(1 + exp(-|t|)) - log(4 sqrt(pi)); the second component has the share 1 / (1 + exp(-t)). (theta_1 + theta_2,
/// -theta_2) has the likelihood of (theta_1, theta_2): mode 1 is the side theta_2 < 0. All constants are kept, so that
/// log Z = log p(x).
struct WellingTeh : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr double kVariance1 = 10, kVariance2 = 1, kVariance = 2;
  static constexpr int kTogether = 16;  // factors 1 + exp(-|t|), at most 2, that share a logarithm

  int dim = 2, observations = 0;
  double constant = 0;
  ParameterArray x;  // [observations]

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(x, observations);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& theta, const G& g) const {
    using R = scalar_t<L>;
    const L theta1 = theta[0], theta2 = theta[1];
    const R* data = x.get<L>();
    L squares = L(0), logs = L(0), pull1 = L(0), pull2 = L(0);
    for (int first = 0; first < observations; first += kTogether) {
      L product = L(1);
      const int end = first + kTogether < observations ? first + kTogether : observations;
      for (int i = first; i < end; ++i) {
        const L r1 = L(data[i]) - theta1, r2 = r1 - theta2, s1 = r1 * r1, s2 = r2 * r2;
        const L e = exp(abs(s1 - s2) * L(R(-0.5 / kVariance))), sum = L(1) + e;
        const L share = select(s2 < s1, L(1), e) / sum, r = share * r2;
        product = product * sum;
        squares = squares + min(s1, s2);
        pull1 = pull1 + nfma(share, r1, r1 + r);
        pull2 = pull2 + r;
      }
      logs = logs + log(product);
    }
    const L scale = L(R(1 / kVariance)), prior1 = theta1 * L(R(1 / kVariance1)),
            prior2 = theta2 * L(R(1 / kVariance2));
    g.set(0, fma(scale, pull1, -prior1));
    g.set(1, fma(scale, pull2, -prior2));
    const L all = fma(scale, squares, fma(theta1, prior1, theta2 * prior2));
    return nfma(L(R(0.5)), all, logs + L(R(constant)));
  }

  template <int D, class L, class X>
  LOCKSTEP_FN L mode(const X& theta) const {
    return select(theta[1] < L(0), L(1), L(0));
  }
};

struct WellingTehTarget {
  using Density = WellingTeh;
  static TargetInfo info();
  static Built<WellingTeh> build(TargetInput& in);
};

}  // namespace lockstep
