// SPDX-License-Identifier: Apache-2.0
#pragma once
// The geometric path from a base density to the target, at one inverse temperature per chain:
//   log gamma_beta(x) = beta (log_density(x) - log zeta) + (1 - beta) base(x)
// and, with Tempered = false, the target itself. One position block per chain. The gradient that is kept is
// the target's, so that nothing is stale when beta moves: `force` adds the base's share.
//
// With a control, beta is a function of one more coordinate u, in the last row, and the density is the joint
// one of (x, u), gamma_beta(u)(x) p(u): joint continuous tempering.
#include "kernels/base.hpp"
#include "kernels/launch_spec.hpp"

namespace lockstep {

template <class Density, int D, bool Tempered, bool kAnyBase = D == 0>
struct Path {
  static constexpr bool kTempered = Tempered;
  static constexpr bool kExtended = false;
  // Compile-time sizes; 0: run time (what moves beta would not fit a thread's registers).
  static constexpr int kDim = D, kRows = Tempered ? 0 : D, kCacheRows = Tempered ? 4 : 2;
  Density density;
  ParameterLayout layout;
  Control control = Control::none;

  LOCKSTEP_FN bool joint() const { return Tempered && control != Control::none; }
  LOCKSTEP_FN int dim() const { return extent<D>(layout.dim); }
  LOCKSTEP_FN int samples() const { return 1; }
  LOCKSTEP_FN int rows() const { return dim() + (joint() ? 1 : 0); }
  /// log density; Delta = base - (target - log zeta); and, tempered, the weights of beta = 1 and 0 given x
  /// (both 1 where beta is fixed).
  LOCKSTEP_FN int cache_rows() const { return kCacheRows; }
  LOCKSTEP_FN double box() const { return std::numeric_limits<double>::infinity(); }

  /// beta, d beta / du, log p(u) up to a constant, and its derivative.
  template <class L>
  struct Temperature {
    L beta, slope, log_prior, prior_slope;
  };
  template <class L>
  LOCKSTEP_FN Temperature<L> temperature(L u) const {
    using R = scalar_t<L>;
    if (control == Control::plateaus) {  // a smooth step down the triangle wave of the distance from u = 0
      const L turns = fma(round(u * L(R(0.25))), L(R(-4)), u), distance = abs(turns);
      const L t = min(max(distance - L(R(0.5)), L(0)), L(1));
      const L beta = L(1) - t * t * fma(L(R(-2)), t, L(R(3))), slope = L(R(6)) * t * (t - L(1));
      return {beta, select(turns < L(0), -slope, slope), L(0), L(0)};
    }
    const L e = exp(-abs(u)), r = L(1) / (L(1) + e);
    const L s = select(u > L(0), r, e * r), t = select(u > L(0), e * r, r);
    return {s, s * t, log_sigmoid(u) + log_sigmoid(-u), t - s};
  }

  /// The target's gradient, and in the row of u that of the joint density.
  template <class L, class X, class P, class G>
  LOCKSTEP_FN void gradient(X x, P par, G g) const {
    L l[1] = {density.template log_density<D, L>(x, g)};
    finish_gradient<L>(l, x, par, g);
  }
  /// Whether a gradient takes the target's log density as well.
  LOCKSTEP_FN bool gradient_takes_value() const { return joint(); }
  /// The same where the target's log density l[0] and its gradient are known.
  template <class L, class V, class X, class P, class G>
  LOCKSTEP_FN void finish_gradient(const V& l, X x, P par, G g) const {
    if (!joint()) return;
    const L delta = base_log_density<D, L, kAnyBase>(layout, x, par, NoBaseGradient{}) -
                    (l[0] - par[ParameterLayout::log_zeta]);
    const auto t = temperature<L>(x[dim()]);
    g.set(dim(), nfma(t.slope, delta, t.prior_slope));
  }
  /// The gradient of log gamma_beta, row by row through put(i, value), from the target's in g.
  template <class L, class X, class P, class G, class Put>
  LOCKSTEP_FN void force(X x, P par, G g, Put&& put) const {
    const L beta = this->template beta<L>(x, par, 0);
    base_log_density<D, L, kAnyBase>(layout, x, par, [&](int i, L b) { put(i, fma(beta, g[i] - b, b)); });
    if (joint()) put(dim(), L(g[dim()]));
  }

  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(X x, P par, C cache) const {
    const L l[1] = {density.template log_density<D, L>(x, NoGradient{})};
    finish_log_density<L>(l, x, par, cache);
  }
  /// The same where the target's log density value[0] is known.
  template <class L, class V, class X, class P, class C>
  LOCKSTEP_FN void finish_log_density(const V& value, X x, P par, C cache) const {
    const L l = value[0];
    if constexpr (Tempered) {
      const L b = base_log_density<D, L, kAnyBase>(layout, x, par, NoBaseGradient{});
      const L delta = b - (l - par[ParameterLayout::log_zeta]);
      if (joint()) {
        const auto t = temperature<L>(x[dim()]);
        cache.set(0, nfma(t.beta, delta, b) + t.log_prior);
      } else {
        cache.set(0, nfma(par[ParameterLayout::beta], delta, b));
      }
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
  LOCKSTEP_FN L weight(C cache, int) const {
    if constexpr (Tempered) return cache[2];
    return L(1);
  }
  /// Inverse temperature of sample i.
  template <class L, class X, class P>
  LOCKSTEP_FN L beta(X x, P par, int) const {
    if (joint()) return temperature<L>(x[dim()]).beta;
    return Tempered ? L(par[ParameterLayout::beta]) : L(1);
  }
};

}  // namespace lockstep
