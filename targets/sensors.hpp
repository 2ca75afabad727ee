// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sensor network localisation (Ihler et al. 2005) as in Ahn et al. (2013), Lan et al. (2014) and Tak et al. (2018).
#include "targets/target.hpp"

namespace lockstep {

/// Sensors at unknown x_1 .. x_N in the plane, anchors at known x_(N+1) .. x_(N+A). A pair at distance d is seen with
/// probability exp(-d^2 / (2 R^2)); the distance is then measured as y ~ N(d, s^2). Each pair that is not of two anchors
/// adds
///
///   seen:     log N(y; d, s^2) - u,   u = d^2 / (2 R^2)
///   not seen: log(1 - exp(-u)),       d/du = exp(-u) / (1 - exp(-u))
///
/// and each coordinate the prior N(0, prior_sd^2). State (x_1, y_1, .., x_N, y_N). All constants are kept.
/// Two sensors in one place have zero density where they do not see each other: squares of distances are held off zero,
/// so that the density there is tiny, and its gradient that of the others.
struct Sensors : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  enum Column { kFirst, kSecond, kX, kY, kDistance, kColumns };

  int dim = 0, pairs = 0;
  double constant = 0, inv_range2 = 1, inv_sd2 = 1, inv_prior2 = 0;  // R^-2, s^-2, prior_sd^-2
  /// [pairs][kColumns]: a sensor; another, or -1 for an anchor; the anchor's position; y, or -1 where not seen.
  ParameterArray pair;

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(pair, kColumns * pairs);
  }

  /// 1 - exp(-u) for u >= 0, where w = exp(-u): by its series below 1/4, as 1 - w loses digits there.
  template <class L>
  LOCKSTEP_FN static L hidden(L u, L w) {
    using R = scalar_t<L>;
    L p = L(1);
    LOCKSTEP_UNROLL_FIXED
    for (int n = 13; n > 1; --n) p = nfma(u * L(R(1.0 / n)), p, L(1));
    return select(u < L(R(0.25)), u * p, L(1) - w);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const L prior = L(R(inv_prior2)), range = L(R(inv_range2)), precision = L(R(inv_sd2));
    L squares = L(0), logs = L(0), rest = L(0);
    for (int i = 0; i < dim; ++i) {
      const L v = x[i];
      squares = fma(v, v, squares);
      g.set(i, -(v * prior));
    }
    const R* p = pair.get<L>();
    for (int k = 0; k < pairs; ++k, p += kColumns) {
      const int i = 2 * static_cast<int>(p[kFirst]), j = 2 * static_cast<int>(p[kSecond]);
      const bool sensor = j >= 0, seen = p[kDistance] >= R(0);  // the same in all lanes
      const L dx = x[i] - (sensor ? x[j] : L(p[kX])), dy = x[i + 1] - (sensor ? x[j + 1] : L(p[kY]));
      // The smallest normal number comes first, so that NaN passes through.
      const L d2 = max(L(std::numeric_limits<R>::min()), fma(dx, dx, dy * dy)), u = d2 * range * L(R(0.5));
      L pull;  // of the pair's term, along (dx, dy)
      if (seen) {
        const L d = sqrt(d2), r = L(p[kDistance]) - d;
        rest = fma(r * precision, r, fma(d2, range, rest));
        pull = r / d * precision - range;
      } else {
        const L w = exp(-u), v = hidden(u, w);
        logs = logs + log(v);
        pull = w / v * range;
      }
      if constexpr (gradient_wanted<G>()) {
        g.set(i, fma(pull, dx, g[i]));
        g.set(i + 1, fma(pull, dy, g[i + 1]));
        if (sensor) {
          g.set(j, nfma(pull, dx, g[j]));
          g.set(j + 1, nfma(pull, dy, g[j + 1]));
        }
      }
    }
    return nfma(L(R(0.5)), fma(squares, prior, rest), logs + L(R(constant)));
  }
};

struct SensorsTarget {
  using Density = Sensors;
  static TargetInfo info();
  static Built<Sensors> build(TargetInput& in);
};

}  // namespace lockstep
