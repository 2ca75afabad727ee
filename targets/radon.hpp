// SPDX-License-Identifier: Apache-2.0
#pragma once
// Radon in homes (Gelman & Hill 2006, chapter 12) in the hierarchical form of Graham & Storkey (2017).
#include "targets/half_cauchy.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// Household i in county c_i, on floor f_i (0 or 1), over ground with log uranium u_i, measures
///
///   y_i ~ N(a_{c_i} + f_i b_1 + u_i b_2, eps^2),   a_j = mu_a + s_a n_j,   b_k = mu_b + s_b m_k,
///   mu_a, mu_b, n_j, m_k ~ N(0, 1),   s_a, s_b, eps ~ half-Cauchy(2.5)
///
/// State: (mu_a, mu_b, log s_a, log s_b, log eps, n_1 .. n_J, m_1, m_2), J + 7 numbers. All constants are
/// kept and the scales' Jacobians are in, so that log Z = log p(y).
///
/// Households that share (c, f, u) are one cell, known by its count N and mean: with r the residual of the
/// mean, sum (y_i - prediction)^2 = sum_cells N r^2 + (squares within cells, one constant). Residuals are
/// formed before they are multiplied by anything, and N r summed before the scales come in, so that float
/// loses little.
struct Radon : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr double kLogWidth = 0.91629073187415506518;  // log 2.5
  enum Row { kMuA, kMuB, kLogSdCounty, kLogSdSlope, kLogSdResidual, kCounty };

  int dim = 0;
  int counties = 0, cells = 0;
  double households = 0, within = 0;  // count; sum of squares within cells
  double constant = 0;
  ParameterArray cell;         // [cells][4], counties in order: mean of y, floor, log uranium, count
  ParameterArray county_size;  // [counties]: cells of each, 1 at least

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(cell, 4 * cells);
    f(county_size, counties);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const int m = kCounty + counties;
    const L mu_a = x[kMuA], mu_b = x[kMuB], log_eps = x[kLogSdResidual], m1 = x[m], m2 = x[m + 1];
    const L s_a = exp(x[kLogSdCounty]), s_b = exp(x[kLogSdSlope]), precision = exp(log_eps * L(R(-2)));
    const L b1 = fma(s_b, m1, mu_b), b2 = fma(s_b, m2, mu_b), pull_scale = precision * s_a;
    // Sums of N r: over all, times floor, times uranium, times n_j.
    L all = L(0), floors = L(0), uranium = L(0), along = L(0);
    L squares = L(R(within)), normal = fma(mu_a, mu_a, mu_b * mu_b) + fma(m1, m1, m2 * m2);
    const R* c = cell.get<L>();
    const R* size = county_size.get<L>();
    for (int j = 0; j < counties; ++j) {
      const L n = x[kCounty + j], level = fma(s_a, n, mu_a);
      L pull = L(0);
      for (int k = static_cast<int>(size[j]); k > 0; --k, c += 4) {
        const L r = nfma(L(c[2]), b2, nfma(L(c[1]), b1, L(c[0]) - level)), weighted = L(c[3]) * r;
        squares = fma(weighted, r, squares);
        pull = pull + weighted;
        floors = fma(L(c[1]), weighted, floors);
        uranium = fma(L(c[2]), weighted, uranium);
      }
      normal = fma(n, n, normal);
      all = all + pull;
      along = fma(n, pull, along);
      g.set(kCounty + j, fma(pull_scale, pull, -n));
    }
    const L f1 = precision * floors, f2 = precision * uranium, fit = precision * squares;
    const LogHalfCauchy<L> county(x[kLogSdCounty], kLogWidth), slope(x[kLogSdSlope], kLogWidth),
        residual(log_eps, kLogWidth);
    g.set(kMuA, fma(precision, all, -mu_a));
    g.set(kMuB, f1 + f2 - mu_b);
    g.set(kLogSdCounty, fma(pull_scale, along, county.slope));
    g.set(kLogSdSlope, fma(s_b, fma(m1, f1, m2 * f2), slope.slope));
    g.set(kLogSdResidual, fit - L(R(households)) + residual.slope);
    g.set(m, fma(s_b, f1, -m1));
    g.set(m + 1, fma(s_b, f2, -m2));
    const L prior = county.value + slope.value + residual.value;
    return nfma(L(R(households)), log_eps, nfma(L(R(0.5)), fit + normal, prior + L(R(constant))));
  }

  /// The three scales.
  LOCKSTEP_FN int quantities() const { return 3; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    for (int k = 0; k < 3; ++k) put(k, exp(x[kLogSdCounty + k]));
  }
};

struct RadonTarget {
  using Density = Radon;
  static TargetInfo info();
  static Built<Radon> build(TargetInput& in);
};

}  // namespace lockstep
