// SPDX-License-Identifier: Apache-2.0
#pragma once
// The banana: a bivariate Gaussian bent along a parabola (Haario, Saksman & Tamminen 1999, mirrored in x2).
#include "targets/target.hpp"

namespace lockstep {

/// N(x1; 0, nu) N(x2; b (x1^2 - nu), 1), normalised. Bending keeps areas, so the constants are those of the
/// Gaussian.
struct Banana : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int, 2>;
  int dim = 2;
  double b = 0, nu = 1, log_norm = 0;  // log_norm = -log 2 pi - log(nu) / 2

  template <class F>
  LOCKSTEP_FN void arrays(F&&) {}

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const L x1 = x[0], x2 = x[1];
    const L z = nfma(L(R(b)), fma(x1, x1, L(R(-nu))), x2);  // x2 - b (x1^2 - nu)
    const L y = x1 * L(R(1 / nu));
    g.set(0, fma(L(R(2 * b)) * x1, z, -y));
    g.set(1, -z);
    return nfma(L(R(0.5)), fma(z, z, x1 * y), L(R(log_norm)));
  }
};

struct BananaTarget {
  using Density = Banana;

  static TargetInfo info() {
    return {.name = "banana",
            .summary = "Gaussian bent along a parabola, in two dimensions",
            .formula = "log N(x1; 0, nu) + log N(x2; b (x1^2 - nu), 1)",
            .settings = {{"b", "bend, -10 to 10 (default 0.1)"},
                         {"nu", "variance of x1, 1e-4 to 1e4 (default 100)"}},
            .truth = "closed form: mean 0, variances nu and 1 + 2 b^2 nu^2, uncorrelated, log Z = 0"};
  }

  static Built<Banana> build(TargetInput& in) {
    const double b = in.number("b", 0.1, -10, 10), nu = in.number("nu", 100, 1e-4, 1e4);
    Built<Banana> built(2);
    built.density.b = b;
    built.density.nu = nu;
    built.density.log_norm = -std::log(2 * kPi) - 0.5 * std::log(nu);
    built.truth.mean = {0, 0};
    built.truth.covariance = {nu, 0, 0, 1 + 2 * b * b * nu * nu};
    built.truth.log_z = 0;
    built.draw = [b, nu](ExactDraw& draw, double* x) {
      x[0] = std::sqrt(nu) * draw.normal();
      x[1] = b * (x[0] * x[0] - nu) + draw.normal();
    };
    return built;
  }
};

}  // namespace lockstep
