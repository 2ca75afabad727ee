// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixture of Gaussians, any number of components in any dimension, normalised.
#include "targets/target.hpp"

namespace lockstep {

/// sum_k w_k N(x; mu_k, S_k). Spherical components hold one precision each, others a precision matrix.
/// Worked in base-2 exponents e_k = log2 w_k + log2 norm_k - log2(e)/2 (x - mu_k)' P_k (x - mu_k), with the
/// largest taken out, so that a chain far from every mode keeps its gradient in float. Two passes over the
/// components, the second one computing the distances again: cheaper than storing them. Spherical components in a dimension
/// known at run time go two at a time, so that a coordinate is read once for both.
struct Mixture : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int, 2>;
  int dim = 0, components = 0;
  bool report_modes = false;   // expectations: probability_mode[k], then probability_positive
  ParameterArray mean;         // [K][d]
  ParameterArray log2_weight;  // [K]: log2(w_k |2 pi S_k|^(-1/2))
  ParameterArray precision;    // [K], or [K][d][d] when full
  bool full = false;

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(mean, components * dim);
    f(log2_weight, components);
    f(precision, full ? components * dim * dim : components);
  }

  /// Whether components have precision matrices, known where the code is compiled or asked when it runs.
  enum class Shape { spherical, full, asked };
  template <Shape kShape>
  LOCKSTEP_FN bool is_full() const {
    return kShape == Shape::asked ? full : kShape == Shape::full;
  }

  /// e_k, and through put(i, v) the i-th row of P_k (x - mu_k) (precision factored out where spherical).
  template <int D, Shape kShape, class L, class X, class Put>
  LOCKSTEP_FN L exponent(const X& x, int k, Put&& put) const {
    using R = scalar_t<L>;
    const int d = extent<D>(dim);
    const R* m = mean.get<L>() + k * d;
    const R* p = precision.get<L>();
    L q = L(0);
    if (is_full<kShape>()) {
      for (int i = 0; i < d; ++i) {
        L row = L(0);
        for (int j = 0; j < d; ++j) row = fma(L(p[(k * d + i) * d + j]), x[j] - L(m[j]), row);
        q = fma(row, x[i] - L(m[i]), q);
        put(i, row);
      }
      return fma(q, L(R(-0.5 * kLog2E)), L(log2_weight.get<L>()[k]));
    }
    for (int i = 0; i < d; ++i) {
      const L z = x[i] - L(m[i]);
      q = fma(z, z, q);
      put(i, z);
    }
    return fma(q, L(R(-0.5 * kLog2E) * p[k]), L(log2_weight.get<L>()[k]));
  }

  /// With a compile-time dimension the loops over components are compiled for either shape: a thread of a GPU
  /// would go through the instructions of both.
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    if constexpr (D == 0) return full ? log_density<D, Shape::full, L>(x, g) : by_pairs<L>(x, g);
    return full ? log_density<D, Shape::full, L>(x, g) : log_density<D, Shape::spherical, L>(x, g);
  }
  template <int D, Shape kShape, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& position, const G& g) const {
    using R = scalar_t<L>;
    const int d = extent<D>(dim);
    const auto x = local<D, L>(position);
    L top = L(-std::numeric_limits<R>::max());
    for (int k = 0; k < components; ++k) top = max(top, exponent<D, kShape, L>(x, k, [](int, L) {}));
    L sum = L(0);
    if constexpr (!gradient_wanted<G>()) {
      for (int k = 0; k < components; ++k)
        sum = sum + exp2(exponent<D, kShape, L>(x, k, [](int, L) {}) - top);
    } else if constexpr (D > 0) {
      L acc[D] = {};
      for (int k = 0; k < components; ++k) {
        L z[D];
        const L e = exp2(exponent<D, kShape, L>(x, k, [&](int i, L v) { z[i] = v; }) - top);
        sum = sum + e;
        const L f = is_full<kShape>() ? e : e * precision.get<L>()[k];
        for (int i = 0; i < D; ++i) acc[i] = fma(f, z[i], acc[i]);
      }
      const L inv = L(R(-1)) / sum;
      for (int i = 0; i < D; ++i) g.set(i, acc[i] * inv);
    } else {
      for (int i = 0; i < d; ++i) g.set(i, L(0));
      for (int k = 0; k < components; ++k) {
        const L e = exp2(exponent<D, kShape, L>(x, k, [](int, L) {}) - top);
        sum = sum + e;
        exponent<D, kShape, L>(x, k, [&](int i, L v) { g.set(i, fma(e, v, g[i])); });
      }
      const L inv = L(R(-1)) / sum;
      for (int i = 0; i < d; ++i) g.set(i, g[i] * inv);
    }
    return (top + log(sum) * R(kLog2E)) * R(kLn2);
  }

  /// Component with the largest share of the density at x.
  template <int D, class L, class X>
  LOCKSTEP_FN L mode(const X& x) const {
    using R = scalar_t<L>;
    L best = L(-std::numeric_limits<R>::max()), index = L(0);
    for (int k = 0; k < components; ++k) {
      const L e = exponent<D, Shape::asked, L>(x, k, [](int, L) {});
      index = select(e > best, L(R(k)), index);
      best = max(best, e);
    }
    return index;
  }

  LOCKSTEP_FN int quantities() const { return report_modes ? components + 1 : 0; }
  template <int D, class L, class X, class Put>
  LOCKSTEP_FN void quantity(const X& x, Put&& put) const {
    using R = scalar_t<L>;
    L top = L(-std::numeric_limits<R>::max()), sum = L(0);
    for (int k = 0; k < components; ++k) top = max(top, exponent<D, Shape::asked, L>(x, k, [](int, L) {}));
    for (int k = 0; k < components; ++k)
      sum = sum + exp2(exponent<D, Shape::asked, L>(x, k, [](int, L) {}) - top);
    for (int k = 0; k < components; ++k)
      put(k, exp2(exponent<D, Shape::asked, L>(x, k, [](int, L) {}) - top) / sum);
    put(components, select(x[0] > L(0), L(1), L(0)));
  }

 private:
  /// The exponents of spherical components k to k + N - 1.
  template <int N, class L, class X>
  LOCKSTEP_FN void exponents(const X& x, int k, L (&e)[2]) const {
    using R = scalar_t<L>;
    const R* m = mean.get<L>() + k * dim;
    L q[N];
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < N; ++j) q[j] = L(0);
    for (int i = 0; i < dim; ++i) {
      const L at = x[i];
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < N; ++j) {
        const L z = at - L(m[j * dim + i]);
        q[j] = fma(z, z, q[j]);
      }
    }
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < N; ++j)
      e[j] = fma(q[j], L(R(-0.5 * kLog2E) * precision.get<L>()[k + j]), L(log2_weight.get<L>()[k + j]));
  }
  /// g += factor (x - mu) of these components, and all of it times `scale` after the last of them.
  template <int N, class L, class X, class G>
  LOCKSTEP_FN void add_pulls(const X& x, const G& g, int k, const L (&factor)[2], L scale) const {
    const auto* m = mean.get<L>() + k * dim;
    for (int i = 0; i < dim; ++i) {
      const L at = x[i];
      L sum = k == 0 ? L(0) : g[i];
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < N; ++j) sum = fma(factor[j], at - L(m[j * dim + i]), sum);
      g.set(i, k + N == components ? sum * scale : sum);
    }
  }
  template <class L, class X, class G>
  LOCKSTEP_FN L by_pairs(const X& x, const G& g) const {
    using R = scalar_t<L>;
    L top = L(-std::numeric_limits<R>::max()), sum = L(0), e[2];
    // f(N, k) for all components, N of them at a time.
    const auto each = [&](auto f) {
      int k = 0;
      for (; k + 2 <= components; k += 2) f(std::integral_constant<int, 2>(), k);
      if (k < components) f(std::integral_constant<int, 1>(), k);
    };
    each([&]<int N>(std::integral_constant<int, N>, int k) {
      exponents<N, L>(x, k, e);
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < N; ++j) top = max(top, e[j]);
    });
    each([&]<int N>(std::integral_constant<int, N>, int k) {
      if (components > 2) exponents<N, L>(x, k, e);  // else they are there
      L factor[2];
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < N; ++j) {
        const L share = exp2(e[j] - top);
        sum = sum + share;
        factor[j] = share * precision.get<L>()[k + j];
      }
      if constexpr (gradient_wanted<G>()) add_pulls<N, L>(x, g, k, factor, L(R(-1)) / sum);
    });
    return (top + log(sum) * R(kLog2E)) * R(kLn2);
  }

  template <class L, int D>
  struct Copy {
    L v[D];
    LOCKSTEP_FN L operator[](int i) const { return v[i]; }
  };
  template <int D, class L, class X>
  LOCKSTEP_FN auto local(const X& x) const {
    if constexpr (D > 0) {
      Copy<L, D> c;
      for (int i = 0; i < D; ++i) c.v[i] = x[i];
      return c;
    } else {
      return x;
    }
  }
};

/// A mixture given by its components; spherical where `covariances` is empty.
struct MixtureParameters {
  int dim = 0;
  std::vector<double> means, weights, sds, covariances;  // [K][d], [K], [K], [K][d][d]
};

Built<Mixture> build_mixture(const MixtureParameters& parameters);

struct MixtureTarget {
  using Density = Mixture;
  static TargetInfo info();
  static Built<Mixture> build(TargetInput& in);
};

}  // namespace lockstep
