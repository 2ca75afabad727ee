// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pseudo-extended target of a path (Nemeth, Lindsten, Filippone & Hensman 2019, equation 8), as a target
// on the extended space of N pseudo-samples and, where the inverse temperatures are learned, N logits:
//
//   log pi^N = logsumexp_i a_i - log N
//              + sum_j [ log gamma_{beta_j}(x_j) + log g(beta_j) + log |d beta_j / d u_j| ]
//   a_i = l_i - log gamma_{beta_i}(x_i) - log g(beta_i) = (1 - beta_i)(l_i - b_i) - log g(beta_i)
//   l = log_density - log zeta,  b = base,  gamma_beta = exp(beta l + (1 - beta) b)
//   beta_i = low + (high - low) sigmoid(u_i)
//   g(beta) = beta^g_exponent exp(sum_k bend_k beta^(k/4)),  k = 1 .. 4
//
// The bend takes out the normalising constants of the path: int gamma_beta dx is far below both ends' in between, and
// beta would seldom cross.
// E f = E sum_i w_i f(x_i), w = softmax(a) (their Theorem 2.1). Cases: base with inv_sd = 0 is the paper's
// pure tempering; learned = false is one fixed beta, and with beta = 0 a fixed instrument q = base.
// Rows: x_1 .. x_N (dim each), then u_1 .. u_N. The gradient costs one gradient of the target per pseudo-sample.
#include "kernels/base.hpp"

namespace lockstep {

template <class Density, int D, int N, bool kAnyBase = D == 0>
struct PseudoExtended {
  // Compile-time sizes where D and N are (the inverse temperatures are then learned); 0: run time.
  static constexpr bool kTempered = false;  // the temperatures are coordinates
  static constexpr bool kExtended = true;
  static constexpr int kDim = D, kRows = D * N + N, kCacheRows = N > 0 ? 1 + 2 * N : 0;
  static constexpr int kMaxSamples = N > 0 ? N : 64;
  Density density;
  ParameterLayout layout;
  int pseudo_samples = N;
  bool learned = true;
  double fixed_beta = 0, low = 0, high = 1, g_exponent = 0;
  double box_half_width = std::numeric_limits<double>::infinity();

  LOCKSTEP_FN int dim() const { return extent<D>(layout.dim); }
  LOCKSTEP_FN int samples() const { return extent<N>(pseudo_samples); }
  LOCKSTEP_FN bool learns() const { return N > 0 || learned; }
  LOCKSTEP_FN int rows() const { return samples() * (dim() + (learns() ? 1 : 0)); }
  LOCKSTEP_FN int cache_rows() const { return 1 + 2 * samples(); }  // log density; w_i; Delta_i = b_i - l_i
  LOCKSTEP_FN double box() const { return box_half_width; }

  /// beta, and what its logarithm and derivative need: s = sigmoid(u), t = 1 - s.
  template <class L>
  struct Temperature {
    L beta, s, t;
  };
  template <class L, class X>
  LOCKSTEP_FN Temperature<L> temperature(X x, int i) const {
    using R = scalar_t<L>;
    if (!learns()) return {L(R(fixed_beta)), L(0), L(0)};
    const L u = x[samples() * dim() + i];
    const L e = exp(-abs(u)), r = L(1) / (L(1) + e);
    const L s = select(u > L(0), r, e * r), t = select(u > L(0), e * r, r);
    return {fma(L(R(high - low)), s, L(R(low))), s, t};
  }
  /// log g(beta), with log s in place of log(low + s) where low = 0 and s may underflow.
  template <class L, class X, class P>
  LOCKSTEP_FN L log_g(X x, P par, int i, const Temperature<L>& t) const {
    using R = scalar_t<L>;
    if (!learns()) return L(0);
    const L r = sqrt(sqrt(t.beta));
    L bent = L(0);
    LOCKSTEP_UNROLL_FIXED
    for (int k = ParameterLayout::kBend - 1; k >= 0; --k) bent = r * (bent + par[ParameterLayout::bend + k]);
    if (g_exponent == 0) return bent;
    const L u = x[samples() * dim() + i];
    return fma(L(R(g_exponent)), low == 0 ? log_sigmoid(u) + L(R(::log(high))) : log(t.beta), bent);
  }
  /// beta d log g / d beta.
  template <class L, class P>
  LOCKSTEP_FN L log_g_slope(P par, const Temperature<L>& t) const {
    using R = scalar_t<L>;
    const L r = sqrt(sqrt(t.beta));
    L bent = L(0);
    LOCKSTEP_UNROLL_FIXED
    for (int k = ParameterLayout::kBend - 1; k >= 0; --k)
      bent = r * fma(L(R(0.25 * (k + 1))), par[ParameterLayout::bend + k], bent);
    return L(R(g_exponent)) + bent;
  }

  template <class L, class X, class P, class G>
  LOCKSTEP_FN void gradient(X x, P par, G g) const {
    L l[kMaxSamples];
    LOCKSTEP_UNROLL
    for (int i = 0; i < samples(); ++i)
      l[i] = density.template log_density<D, L>(x.from(i * dim()), g.from(i * dim()));
    finish_gradient<L>(l, x, par, g);
  }
  LOCKSTEP_FN bool gradient_takes_value() const { return true; }
  /// The same where the target's log density l[i] and its gradient at each sample are known.
  template <class L, class V, class X, class P, class G>
  LOCKSTEP_FN void finish_gradient(const V& l, X x, P par, G g) const {
    using R = scalar_t<L>;
    const int n = samples(), d = dim();
    L a[kMaxSamples], delta[kMaxSamples];  // delta = l - b
    Temperature<L> t[kMaxSamples];
    L top = L(-std::numeric_limits<R>::max());
    const L log_zeta = par[ParameterLayout::log_zeta];
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) {
      delta[i] =
          (l[i] - log_zeta) - base_log_density<D, L, kAnyBase>(layout, x.from(i * d), par, NoBaseGradient{});
      t[i] = temperature<L>(x, i);
      a[i] = fma(L(1) - t[i].beta, delta[i], -log_g(x, par, i, t[i]));
      top = max(top, a[i]);
    }
    L sum = L(0);
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) {
      a[i] = exp(a[i] - top);
      sum = sum + a[i];
    }
    const L inv = L(1) / sum;
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) {
      const L w = a[i] * inv;
      L others = L(0);  // 1 - w without cancellation
      LOCKSTEP_UNROLL
      for (int j = 0; j < n; ++j)
        if (j != i) others = others + a[j];
      others = others * inv;
      const auto gi = g.from(i * d);
      const L hot = L(1) - t[i].beta;
      const L on_target = fma(w, hot, t[i].beta), on_base = others * hot;
      base_log_density<D, L, kAnyBase>(layout, x.from(i * d), par,
                                       [&](int k, L b) { gi.set(k, fma(on_target, gi[k], on_base * b)); });
      if (learns()) {
        // d/du of each term: d beta = (high - low) s t du, and d log g is formed in u directly.
        const L jac = L(R(high - low)) * t[i].s * t[i].t;
        const L slope = log_g_slope(par, t[i]), dlog_g = low == 0 ? slope * t[i].t : slope * jac / t[i].beta;
        g.set(n * d + i, fma(others, fma(delta[i], jac, dlog_g), t[i].t - t[i].s));
      }
    }
  }

  template <class L, class X, class P, class C>
  LOCKSTEP_FN void log_density(X x, P par, C cache) const {
    L l[kMaxSamples];
    LOCKSTEP_UNROLL
    for (int i = 0; i < samples(); ++i)
      l[i] = density.template log_density<D, L>(x.from(i * dim()), NoGradient{});
    finish_log_density<L>(l, x, par, cache);
  }
  /// The same where the target's log density value[i] at each sample is known.
  template <class L, class V, class X, class P, class C>
  LOCKSTEP_FN void finish_log_density(const V& value, X x, P par, C cache) const {
    using R = scalar_t<L>;
    const int n = samples(), d = dim();
    L top = L(-std::numeric_limits<R>::max()), total = L(0);
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) {
      const auto xi = x.from(i * d);
      const L l = value[i] - par[ParameterLayout::log_zeta];
      const L b = base_log_density<D, L, kAnyBase>(layout, xi, par, NoBaseGradient{});
      const auto t = temperature<L>(x, i);
      const L g = log_g(x, par, i, t);
      const L a = fma(L(1) - t.beta, l - b, -g);
      total = total + (fma(t.beta, l - b, b) + g);
      if (learns()) {
        const L u = x[n * d + i];
        total = total + (L(R(::log(high - low))) + (log_sigmoid(u) + log_sigmoid(-u)));
      }
      cache.set(1 + i, a);
      cache.set(1 + n + i, b - l);
      top = max(top, a);
    }
    L sum = L(0);
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) {
      const L e = exp(cache[1 + i] - top);
      cache.set(1 + i, e);
      sum = sum + e;
    }
    const L inv = L(1) / sum;
    LOCKSTEP_UNROLL
    for (int i = 0; i < n; ++i) cache.set(1 + i, cache[1 + i] * inv);
    cache.set(0, total + (top + log(sum)) - L(R(::log(double(n)))));
  }

  template <class L, class C>
  LOCKSTEP_FN L weight(C cache, int i) const {
    return cache[1 + i];
  }
  template <class L, class X, class P>
  LOCKSTEP_FN L beta(X x, P, int i) const {
    return temperature<L>(x, i).beta;
  }
};

}  // namespace lockstep
