// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base densities: where a path begins. A base is a struct with one static function and a name in BaseDensities below;
// what draws from it and knows its moments is host/engines/base_density.hpp.
//
//   log_density<D>(dim, log_norm, x, numbers, put)   log density at x, and its gradient row by row through put(i, value)
//
// It is normalised by log_norm, the chain's own. `numbers` are those that describe it: of the first of BaseDensities rows
// of the chain's parameters from ParameterLayout::base_mean() on; of the others a list that the chains of a unit share
// (Engine::set_base), which is read once for all lanes of a group where they are of one unit.
#include <tuple>

#include "kernels/elementary.hpp"
#include "kernels/lane_parameters.hpp"

namespace lockstep {

/// Stands where the gradient of a base is not wanted.
struct NoBaseGradient {
  template <class L>
  LOCKSTEP_FN void operator()(int, L) const {}
};

/// Where the gradient of a base goes, behind a call, for blocks of rows.
template <class L>
struct BaseGradientRows {
  void* to;
  void (*put)(void* to, int first, int rows, const L* values);
};
template <int B, class L, class Put>
LOCKSTEP_FN void put_rows(Put& put, int first, const L (&values)[B]) {
  if constexpr (std::is_same_v<Put, BaseGradientRows<L>>) {
    put.put(put.to, first, B, values);
  } else {
    LOCKSTEP_UNROLL_FIXED
    for (int a = 0; a < B; ++a) put(first + a, values[a]);
  }
}

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

/// What bases that are mixtures of normals share: log_norm + log sum_k exp(a_k - q_k / 2), with q_k the squared distance
/// of x from mean m_k in terms of a precision matrix P_k. Of::Parts says where numbers stand: of component k its log
/// weight a_k, its mean, and for blocks of rows P_k (x - m_k) of one component after the other.
template <class Of>
struct MixtureOfNormals {
  static constexpr int kMost = 64;

  template <int D, class L, class X, class N, class Put>
  LOCKSTEP_FN static L log_density(int dim, L log_norm, X x, N numbers, Put put) {
    using R = scalar_t<L>;
    constexpr bool wanted = !std::is_same_v<Put, NoBaseGradient>;
    const int d = extent<D>(dim), most = static_cast<int>(reduce_max(numbers[0]));  // of all lanes
    const typename Of::template Parts<N> parts{d, most, numbers};
    if (most <= 1) {
      L q = L(0);
      for_blocks(most * d, [&]<int B>(int first) {
        parts.template rows<B>(x, first, [&](int k, const L(&row)[B]) {
          L down[B];
          LOCKSTEP_UNROLL_FIXED
          for (int a = 0; a < B; ++a) {
            q = fma(row[a], x[first + a] - parts.mean(k, first + a), q);
            down[a] = -row[a];
          }
          if constexpr (wanted) put_rows(put, first, down);
        });
      });
      const L none[1] = {L(0)};
      if constexpr (wanted)
        for (int i = most * d; i < d; ++i) put_rows(put, i, none);
      return nfma(L(0.5), q, log_norm);
    }
    L share[kMost];
    for (int k = 0; k < most; ++k) share[k] = L(0);
    for_blocks(d, [&]<int B>(int first) {
      parts.template rows<B>(x, first, [&](int k, const L(&row)[B]) {
        L q = share[k];
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) q = fma(row[a], x[first + a] - parts.mean(k, first + a), q);
        share[k] = q;
      });
    });
    L top = L(-std::numeric_limits<R>::max()), sum = L(0);
    for (int k = 0; k < most; ++k) {
      share[k] = nfma(L(R(0.5)), share[k], parts.log_weight(k));
      top = select(L(R(k)) < numbers[0], max(top, share[k]), top);
    }
    for (int k = 0; k < most; ++k) {  // a lane of fewer components: the others are nothing
      share[k] = select(L(R(k)) < numbers[0], exp(share[k] - top), L(0));
      sum = sum + share[k];
    }
    if constexpr (wanted) {
      const L inv = L(1) / sum;
      for (int k = 0; k < most; ++k) share[k] = share[k] * inv;
      for_blocks(d, [&]<int B>(int first) {
        L all[B];
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) all[a] = L(0);
        parts.template rows<B>(x, first, [&](int k, const L(&row)[B]) {
          LOCKSTEP_UNROLL_FIXED
          for (int a = 0; a < B; ++a) all[a] = fma(share[k], row[a], all[a]);
        });
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) all[a] = -all[a];
        put_rows(put, first, all);
      });
    }
    return log_norm + (top + log(sum));
  }

 protected:
  /// Rows first .. first + B - 1 of the precision times (x - mean): so many at once are independent sums.
  template <int B, class L, class X, class N>
  LOCKSTEP_FN static void times(int dim, X x, N mean, N precision, int first, L (&out)[B]) {
    const auto row = precision.from(first * dim);
    LOCKSTEP_UNROLL_FIXED
    for (int a = 0; a < B; ++a) out[a] = L(0);
    for (int j = 0; j < dim; ++j) {
      const L y = x[j] - mean[j];
      LOCKSTEP_UNROLL_FIXED
      for (int a = 0; a < B; ++a) out[a] = fma(row[a * dim + j], y, out[a]);
    }
  }

 private:
  /// f.operator()<B>(first) for blocks of rows that make up all d.
  template <class F>
  LOCKSTEP_FN static void for_blocks(int d, F f) {
    int i = 0;
    for (; i + 8 <= d; i += 8) f.template operator()<8>(i);
    for (; i < d; ++i) f.template operator()<1>(i);
  }
};

/// A mixture of normals: numbers K <= kMost, and of each component k its log weight a_k, its mean m_k (dim) and its
/// precision P_k (dim x dim, by rows):
///   log_norm + log sum_k exp(a_k - (x - m_k)' P_k (x - m_k) / 2)
/// with a_k and log_norm such that it is normalised, and a_1 = 0 where K = 1. With K = 0 it is no base at all.
struct NormalMixture : MixtureOfNormals<NormalMixture> {
  LOCKSTEP_FN static constexpr int length(int components, int dim) {
    return 1 + components * (1 + dim + dim * dim);
  }
  template <class N>
  struct Parts {
    int dim, count;
    N numbers;
    LOCKSTEP_FN N of(int k) const { return numbers.from(length(k, dim)); }
    LOCKSTEP_FN auto log_weight(int k) const { return of(k)[0]; }
    LOCKSTEP_FN auto mean(int k, int i) const { return of(k)[1 + i]; }
    template <int B, class X, class F>
    LOCKSTEP_FN void rows(X x, int first, F f) const {
      for (int k = 0; k < count; ++k) {
        std::remove_cvref_t<decltype(x[0])> row[B];
        times(dim, x, of(k).from(1), of(k).from(1 + dim), first, row);
        f(k, row);
      }
    }
  };
};

/// A mixture of one normal and of others whose precisions are one matrix Q times a number t_k each, for where a matrix
/// for each would cost too much: numbers K, the first component as of a NormalMixture, Q (dim x dim), and of the others
/// a_k, t_k, m_k (dim), t_k Q (m_1 - m_k) (dim). Q (x - m_1) is computed once for them all.
struct TiedMixture : MixtureOfNormals<TiedMixture> {
  LOCKSTEP_FN static constexpr int length(int components, int dim) {
    return NormalMixture::length(1, dim) + dim * dim + (components - 1) * (2 + 2 * dim);
  }
  template <class N>
  struct Parts {
    int dim, count;
    N numbers;
    LOCKSTEP_FN N of(int k) const { return numbers.from(k == 0 ? 1 : length(k, dim)); }
    LOCKSTEP_FN auto log_weight(int k) const { return of(k)[0]; }
    LOCKSTEP_FN auto mean(int k, int i) const { return of(k)[(k == 0 ? 1 : 2) + i]; }
    template <int B, class X, class F>
    LOCKSTEP_FN void rows(X x, int first, F f) const {
      std::remove_cvref_t<decltype(x[0])> row[B], shared[B];
      const auto mean = of(0).from(1);
      times(dim, x, mean, mean.from(dim), first, row);
      f(0, row);
      if (count < 2) return;
      times(dim, x, mean, mean.from(dim + dim * dim), first, shared);
      for (int k = 1; k < count; ++k) {
        const auto own = of(k);
        LOCKSTEP_UNROLL_FIXED
        for (int a = 0; a < B; ++a) row[a] = fma(own[1], shared[a], own[2 + dim + first + a]);
        f(k, row);
      }
    }
  };
};

/// The bases there are; the first is that of ModelSpec::base = 0.
using BaseDensities = std::tuple<NormalAxes, NormalMixture, TiedMixture>;
template <class Base, int K = 0>
constexpr int base_number() {
  if constexpr (std::is_same_v<Base, std::tuple_element_t<K, BaseDensities>>)
    return K;
  else
    return base_number<Base, K + 1>();
}

/// How many numbers a base has that is a mixture of so many components.
inline std::size_t mixture_length(int base, int components, int dim) {
  return base == base_number<TiedMixture>() ? TiedMixture::length(components, dim)
                                            : NormalMixture::length(components, dim);
}

/// A mixture's log density on packs, behind a call: compiled into all who ask for a base it was half of what they took to
/// compile. At the rows of a group of the machine's packs it is compiled once (targets/bases.cpp).
template <class Base, class L, class N, class X = GroupRows<L>>
struct MixtureOnPacks {
  static L value(int dim, L log_norm, X x, N numbers);
  static L gradient(int dim, L log_norm, X x, N numbers, BaseGradientRows<L> put);
};
template <class Base, class L, class N, class X>
L MixtureOnPacks<Base, L, N, X>::value(int dim, L log_norm, X x, N numbers) {
  return Base::template log_density<0, L>(dim, log_norm, x, numbers, NoBaseGradient{});
}
template <class Base, class L, class N, class X>
L MixtureOnPacks<Base, L, N, X>::gradient(int dim, L log_norm, X x, N numbers, BaseGradientRows<L> put) {
  return Base::template log_density<0, L>(dim, log_norm, x, numbers, put);
}

template <int D, class Base, class L, class X, class N, class Put>
LOCKSTEP_FN L mixture_log_density(int dim, L log_norm, X x, N numbers, Put& put) {
  if constexpr (ScalarLane<L>) {
    return Base::template log_density<D, L>(dim, log_norm, x, numbers, put);
  } else if constexpr (std::is_same_v<Put, NoBaseGradient>) {
    return MixtureOnPacks<Base, L, N, X>::value(dim, log_norm, x, numbers);
  } else {
    const auto rows = [](void* to, int first, int count, const L* values) {
      for (int a = 0; a < count; ++a) (*static_cast<Put*>(to))(first + a, values[a]);
    };
    return MixtureOnPacks<Base, L, N, X>::gradient(dim, log_norm, x, numbers, {&put, rows});
  }
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
          return mixture_log_density<D, Base>(layout.dim, log_norm, x, numbers, put);
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
