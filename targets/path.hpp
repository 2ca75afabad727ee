// SPDX-License-Identifier: Apache-2.0
#pragma once
// The geometric path from a base density to the target, at one inverse temperature per chain:
//   log gamma_beta(x) = beta (log_density(x) - log zeta) + (1 - beta) base(x)
// and, with Tempered = false, the target itself. One position block per chain. The gradient that is kept is
// the target's, so that nothing is stale when beta moves: `force` adds the base's share.
#include "kernels/lane_parameters.hpp"

namespace lockstep {

template <class Density, int D, bool Tempered>
struct Path {
  static constexpr bool kTempered = Tempered;
  static constexpr bool kWalks = !Tempered;  // random walks are compiled for the target itself only
  // Compile-time sizes; 0: run time (what moves beta would not fit a thread's registers).
  static constexpr int kDim = D, kRows = Tempered ? 0 : D, kCacheRows = Tempered ? 4 : 2;
  Density density;
  ParameterLayout layout;

  LOCKSTEP_FN int dim() const { return extent<D>(layout.dim); }
  LOCKSTEP_FN int samples() const { return 1; }
  LOCKSTEP_FN int rows() const { return dim(); }
  /// log density; Delta = base - (target - log zeta); and, tempered, the weights of beta = 1 and 0 given x
  /// (both 1 where beta is fixed).
  LOCKSTEP_FN int cache_rows() const { return kCacheRows; }
  LOCKSTEP_FN int scale_row(int row) const { return layout.scale() + row; }
  LOCKSTEP_FN double box() const { return std::numeric_limits<double>::infinity(); }

  template <class L, class X, class P, class G>
  LOCKSTEP_FN void gradient(const X& x, const P&, const G& g) const {
    density.template log_density<D, L>(x, g);
  }
  /// The gradient of log gamma_beta, row by row through put(i, value), from the target's in g.
  template <class L, class X, class P, class G, class Put>
  LOCKSTEP_FN void force(const X& x, const P& par, const G& g, Put&& put) const {
    const L beta = par[ParameterLayout::beta];
    base_log_density<D, L>(layout, x, par, [&](int i, L b) { put(i, fma(beta, g[i] - b, b)); });
  }

  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(const X& x, const P& par, const C& cache) const {
    const L l = density.template log_density<D, L>(x, NoGradient{});
    if constexpr (Tempered) {
      const L b = base_log_density<D, L>(layout, x, par, [](int, L) {});
      const L delta = b - (l - par[ParameterLayout::log_zeta]);
      cache.set(0, nfma(par[ParameterLayout::beta], delta, b));
      cache.set(1, delta);
      cache.set(2, L(1));
      cache.set(3, L(1));
    } else {
      cache.set(0, l);
      cache.set(1, L(0));
    }
  }

  /// Weight of sample i given the cached rows.
  template <class L, class C>
  LOCKSTEP_FN L weight(const C& cache, int) const {
    if constexpr (Tempered) return cache[2];
    return L(1);
  }
  /// Inverse temperature of sample i.
  template <class L, class X, class P>
  LOCKSTEP_FN L beta(const X&, const P& par, int) const {
    return Tempered ? L(par[ParameterLayout::beta]) : L(1);
  }
};

}  // namespace lockstep
