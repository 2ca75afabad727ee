// SPDX-License-Identifier: Apache-2.0
#pragma once
// The flower of Nemeth et al. (2019): a closed ridge with w petals, in two dimensions. (The square in the
// exponent is missing in the paper's formula; without it the density cannot be normalised.)
#include "targets/target.hpp"

namespace lockstep {

/// exp(-(rho - r - A cos(w theta))^2 / (2 sigma^2)) with rho = |x| and theta the angle of x; a density on the
/// plane, not normalised. cos(w theta) and sin(w theta) are the parts of (x / rho)^w, so that no angle is
/// formed. Discontinuous at the origin, where it is small: there this gives the value for cos(w theta) = 0,
/// and gradient 0; close to it the gradient grows as 1 / rho.
struct Flower : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int, 2>;
  int dim = 2;
  int w = 1;
  double r = 0, a = 0, inv_sigma = 1;

  template <class F>
  LOCKSTEP_FN void arrays(F&&) {}

  /// x in polar form: rho and 1 / rho (held off zero), the unit vector u, and c + i s = (u1 + i u2)^w.
  template <class L>
  struct Polar {
    L rho, inv_rho, u1, u2, c, s;
  };
  template <class L, class X>
  LOCKSTEP_FN Polar<L> polar(const X& x) const {
    using R = scalar_t<L>;
    Polar<L> p;
    // The smallest normal number comes first, so that NaN passes through.
    p.rho = sqrt(max(L(std::numeric_limits<R>::min()), fma(x[0], x[0], x[1] * x[1])));
    p.inv_rho = L(1) / p.rho;
    p.u1 = x[0] * p.inv_rho;
    p.u2 = x[1] * p.inv_rho;
    p.c = L(1);
    p.s = L(0);
    L b1 = p.u1, b2 = p.u2;  // u to the powers 1, 2, 4, ...
    for (int n = w; n > 0; n >>= 1) {
      if (n & 1) {
        const L c = nfma(p.s, b2, p.c * b1);
        p.s = fma(p.s, b1, p.c * b2);
        p.c = c;
      }
      const L t = b1 * b2;
      b1 = nfma(b2, b2, b1 * b1);
      b2 = t + t;
    }
    return p;
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const Polar<L> p = polar<L>(x);
    const L inv = L(R(inv_sigma));
    const L z = nfma(L(R(a)), p.c, p.rho - L(R(r))) * inv;
    // d rho = u and d cos(w theta) = -w s d theta with d theta = (-u2, u1) / rho.
    const L pull = -(z * inv), twist = L(R(a * w)) * p.s * p.inv_rho;
    g.set(0, pull * nfma(twist, p.u2, p.u1));
    g.set(1, pull * fma(twist, p.u1, p.u2));
    return L(R(-0.5)) * z * z;
  }

  LOCKSTEP_FN int quantities() const { return 1; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    put(0, polar<L>(x).c);
  }
};

struct FlowerTarget {
  using Density = Flower;
  static TargetInfo info();
  static Built<Flower> build(TargetInput& in);
};

}  // namespace lockstep
