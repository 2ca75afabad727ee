// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scattered Gaussians of Lan, Streets & Shahbaba (2014), section 5: means far apart, a covariance of its own each.
#include "targets/mixture.hpp"

namespace lockstep {

/// sum_k w_k N(x; mu_k, S_k) with full covariances, normalised: what Mixture computes, for components that are many,
/// large and far apart. In base-2 exponents e_k = log2(w_k |2 pi S_k|^(-1/2)) - log2(e)/2 (x - mu_k)' P_k (x - mu_k),
/// P_k = S_k^-1. The quadratic forms read one triangle of P_k, d^2 / 2 multiplications. The gradient,
///
///   g = -sum_k f_k P_k (x - mu_k),   f_k = 2^e_k / sum_j 2^e_j,
///
/// leaves out components whose share is far below rounding in every lane: few are left where modes are apart.
/// Four rows at a time share what they read of x, and do not wait for each other's sums.
struct Scattered : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr int kMaxComponents = 64, kRows = 4;

  int dim = 0, components = 0;
  ParameterArray mean;         // [K][d]
  ParameterArray log2_weight;  // [K]: log2(w_k |2 pi S_k|^(-1/2))
  ParameterArray precision;    // [K][d][d]

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(mean, components * dim);
    f(log2_weight, components);
    f(precision, components * dim * dim);
  }

  /// row[b] = sum_{j < end} P_(i + b)j z_j, z = x - mu_k, for B rows from i.
  template <int B, class L, class X>
  LOCKSTEP_FN void rows(const X& x, int k, int i, int end, L* row) const {
    const auto* m = mean.get<L>() + k * dim;
    const auto* p = precision.get<L>() + (k * dim + i) * dim;
    LOCKSTEP_UNROLL_FIXED
    for (int b = 0; b < B; ++b) row[b] = L(0);
    for (int j = 0; j < end; ++j) {
      const L z = x[j] - L(m[j]);
      LOCKSTEP_UNROLL_FIXED
      for (int b = 0; b < B; ++b) row[b] = fma(L(p[b * dim + j]), z, row[b]);
    }
  }

  /// What rows i .. i + B - 1 add to z' P_k z: with their columns before i, twice, and the square on the diagonal.
  template <int B, class L, class X>
  LOCKSTEP_FN L square(const X& x, int k, int i) const {
    const auto* m = mean.get<L>() + k * dim;
    const auto* p = precision.get<L>() + (k * dim + i) * dim + i;
    L row[B], z[B], q = L(0);
    rows<B, L>(x, k, i, i, row);
    LOCKSTEP_UNROLL_FIXED
    for (int b = 0; b < B; ++b) {
      z[b] = x[i + b] - L(m[i + b]);
      LOCKSTEP_UNROLL_FIXED
      for (int c = 0; c < b; ++c) row[b] = fma(L(p[b * dim + c]), z[c], row[b]);
      q = fma(z[b], fma(L(p[b * dim + b]), z[b], row[b] + row[b]), q);
    }
    return q;
  }

  /// e_k of every component, and the largest.
  template <class L, class X>
  LOCKSTEP_FN L exponents(const X& x, L* e) const {
    using R = scalar_t<L>;
    L top = L(-std::numeric_limits<R>::max());
    for (int k = 0; k < components; ++k) {
      L q = L(0);
      int i = 0;
      for (; i + kRows <= dim; i += kRows) q = q + square<kRows, L>(x, k, i);
      for (; i < dim; ++i) q = q + square<1, L>(x, k, i);
      e[k] = fma(q, L(R(-0.5 * kLog2E)), L(log2_weight.get<L>()[k]));
      top = max(top, e[k]);
    }
    return top;
  }

  /// e_k become 2^(e_k - top), and 0 where that is far below rounding; returns their sum.
  template <class L>
  LOCKSTEP_FN L shares(L* e, L top) const {
    using R = scalar_t<L>;
    constexpr int kBits = std::numeric_limits<R>::digits + 30;
    L sum = L(0);
    for (int k = 0; k < components; ++k) {
      const L below = e[k] - top;
      e[k] = select(below > L(R(-kBits)), exp2(below), L(0));
      sum = sum + e[k];
    }
    return sum;
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    L e[kMaxComponents];
    const L top = exponents<L>(x, e), sum = shares<L>(e, top);
    if constexpr (gradient_wanted<G>()) {
      for (int i = 0; i < dim; ++i) g.set(i, L(0));
      for (int k = 0; k < components; ++k) {
        if (!(reduce_max(e[k]) > R(0))) continue;
        const L share = -(e[k] / sum);
        int i = 0;
        for (; i + kRows <= dim; i += kRows) add<kRows, L>(x, k, i, share, g);
        for (; i < dim; ++i) add<1, L>(x, k, i, share, g);
      }
    }
    return (top + log(sum) * R(kLog2E)) * R(kLn2);
  }

  /// Component with the largest share of the density at x.
  template <int D, class L, class X>
  LOCKSTEP_FN L mode(const X& x) const {
    using R = scalar_t<L>;
    L e[kMaxComponents];
    const L top = exponents<L>(x, e);
    L index = L(0);
    for (int k = 1; k < components; ++k) index = select(e[k] >= top, L(R(k)), index);
    return index;
  }

  /// The share of each component.
  LOCKSTEP_FN int quantities() const { return components; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    L e[kMaxComponents];
    const L top = exponents<L>(x, e), sum = shares<L>(e, top);
    for (int k = 0; k < components; ++k) put(k, e[k] / sum);
  }

 private:
  /// g_i += share (P_k z)_i for B rows from i.
  template <int B, class L, class X, class G>
  LOCKSTEP_FN void add(const X& x, int k, int i, L share, const G& g) const {
    L row[B];
    rows<B, L>(x, k, i, dim, row);
    LOCKSTEP_UNROLL_FIXED
    for (int b = 0; b < B; ++b) g.set(i + b, fma(share, row[b], g[i + b]));
  }
};

struct ScatteredTarget {
  using Density = Scattered;
  static TargetInfo info();
  static Built<Scattered> build(TargetInput& in);
};

}  // namespace lockstep
