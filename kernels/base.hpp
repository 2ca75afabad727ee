// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base densities: where a path begins. A base is a struct with one static function and a name in BaseDensities below;
// what draws from it and knows its moments is host/runs/base_density.hpp.
//
//   log_density<D>(dim, log_norm, x, numbers, put)   log density at x, and its gradient row by row through put(i, value)
//
// It is normalised by log_norm, the chain's own. `numbers` are those that describe it: of the first of BaseDensities rows
// of the chain's parameters from ParameterLayout::base_mean() on; of the others a list that the chains of a unit share
// (Engine::set_base), which is read once for all lanes of a group where they are of one unit.
#include <tuple>

#include "kernels/lane_parameters.hpp"

namespace lockstep {

/// Stands where the gradient of a base is not wanted.
struct NoBaseGradient {
  template <class L>
  LOCKSTEP_FN void operator()(int, L) const {}
};

/// Independent normal axes: numbers mean (dim), 1 / sd (dim). log_norm - |(x - mean) / sd|^2 / 2; with 1 / sd and
/// log_norm zero it is no base at all (pure tempering).
struct NormalAxes {
  template <int D, class L, class X, class N, class Put>
  LOCKSTEP_FN static L log_density(int dim, L log_norm, X x, N numbers, Put put) {
    const int d = extent<D>(dim);
    const auto inv_sd = numbers.from(d);
    L q = L(0);
    LOCKSTEP_UNROLL
    for (int i = 0; i < d; ++i) {
      const L s = inv_sd[i];
      const L z = (x[i] - numbers[i]) * s;
      q = fma(z, z, q);
      put(i, -(z * s));
    }
    return nfma(L(0.5), q, log_norm);
  }
};

/// A mixture of normals: numbers K <= kMost, and of each component k its log weight a_k, its mean m_k (dim) and its
/// precision P_k (dim x dim, by rows):
///   log_norm + log sum_k exp(a_k - (x - m_k)' P_k (x - m_k) / 2)
/// with a_k and log_norm such that it is normalised, and a_1 = 0 where K = 1. With K = 0 it is no base at all.
struct NormalMixture {
  static constexpr int kMost = 64;
  LOCKSTEP_FN static constexpr int length(int components, int dim) {
    return 1 + components * (1 + dim + dim * dim);
  }

  template <int D, class L, class X, class N, class Put>
  LOCKSTEP_FN static L log_density(int dim, L log_norm, X x, N numbers, Put put) {
    constexpr bool wanted = !std::is_same_v<Put, NoBaseGradient>;
    const int d = extent<D>(dim), most = static_cast<int>(reduce_max(numbers[0]));
    const auto component = [&](int k) { return Component<N>{d, numbers.from(length(k, d))}; };
    if (most <= 1) {  // of every lane
      L q = L(0);
      const auto only = component(0);
      for_blocks(most * d, [&]<int B>(int first) {
        L row[B];
        only.template rows<B>(x, first, row);
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) {
          q = fma(row[a], x[first + a] - only.mean(first + a), q);
          put(first + a, -row[a]);
        }
      });
      if constexpr (wanted)
        for (int i = most * d; i < d; ++i) put(i, L(0));
      return nfma(L(0.5), q, log_norm);
    }
    using R = scalar_t<L>;
    L share[kMost], top = L(-std::numeric_limits<R>::max());
    for (int k = 0; k < most; ++k) {
      const auto c = component(k);
      L q = L(0);
      for_blocks(d, [&]<int B>(int first) {
        L row[B];
        c.template rows<B>(x, first, row);
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) q = fma(row[a], x[first + a] - c.mean(first + a), q);
      });
      share[k] = nfma(L(R(0.5)), q, c.log_weight());
      top = select(L(R(k)) < numbers[0], max(top, share[k]), top);
    }
    L sum = L(0);
    for (int k = 0; k < most; ++k) {  // a lane of fewer components: the others are nothing
      share[k] = select(L(R(k)) < numbers[0], exp(share[k] - top), L(0));
      sum = sum + share[k];
    }
    if constexpr (wanted) {
      const L inv = L(1) / sum;
      for_blocks(d, [&]<int B>(int first) {
        L all[B];
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) all[a] = L(0);
        for (int k = 0; k < most; ++k) {
          L row[B];
          component(k).template rows<B>(x, first, row);
          const L weight = select(L(R(k)) < numbers[0], share[k] * inv, L(0));
          LOCKSTEP_UNROLL_FIXED
          for (int a = 0; a < B; ++a) all[a] = fma(weight, row[a], all[a]);
        }
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) put(first + a, -all[a]);
      });
    }
    return log_norm + (top + log(sum));
  }

 private:
  template <class N>
  struct Component {
    int dim;
    N numbers;
    LOCKSTEP_FN auto log_weight() const { return numbers[0]; }
    LOCKSTEP_FN auto mean(int i) const { return numbers[1 + i]; }
    /// Rows first .. first + B - 1 of the precision times (x - mean): so many at once are independent sums.
    template <int B, class L, class X>
    LOCKSTEP_FN void rows(X x, int first, L (&out)[B]) const {
      const auto precision = numbers.from(1 + dim + first * dim);
      LOCKSTEP_UNROLL_FIXED
      for (int a = 0; a < B; ++a) out[a] = L(0);
      for (int j = 0; j < dim; ++j) {
        const L y = x[j] - mean(j);
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) out[a] = fma(precision[a * dim + j], y, out[a]);
      }
    }
  };
  /// f.operator()<B>(first) for blocks of rows that make up all d.
  template <class F>
  LOCKSTEP_FN static void for_blocks(int d, F f) {
    int i = 0;
    for (; i + 8 <= d; i += 8) f.template operator()<8>(i);
    for (; i < d; ++i) f.template operator()<1>(i);
  }
};

/// The bases there are; the first is that of ModelSpec::base = 0.
using BaseDensities = std::tuple<NormalAxes, NormalMixture>;
template <class Base, int K = 0>
constexpr int base_number() {
  if constexpr (std::is_same_v<Base, std::tuple_element_t<K, BaseDensities>>)
    return K;
  else
    return base_number<Base, K + 1>();
}

/// Log density of the chain's base at x, and its gradient. Without kAnyBase it is of normal axes: what others take of a
/// GPU's registers and stack, every kernel would that knows them (98 registers and none, or 128 and 656 bytes).
template <int D, class L, bool kAnyBase = D == 0, class X, class P, class Put>
LOCKSTEP_FN L base_log_density(const ParameterLayout& layout, X x, P par, Put put) {
  const L log_norm = par[ParameterLayout::base_log_norm];
  if constexpr (kAnyBase)
    if (layout.base != 0) {
      L value = log_norm;
      const auto if_it_is = [&]<class Base>() {
        if (layout.base != base_number<Base>()) return;
        value = par.of_unit([&](auto numbers) {
          return Base::template log_density<D, L>(layout.dim, log_norm, x, numbers, put);
        });
      };
      [&]<class First, class... Others>(const std::tuple<First, Others...>*) {
        (if_it_is.template operator()<Others>(), ...);
      }(static_cast<const BaseDensities*>(nullptr));
      return value;
    }
  return NormalAxes::log_density<D, L>(layout.dim, log_norm, x, par.from(layout.base_mean()), put);
}

}  // namespace lockstep
