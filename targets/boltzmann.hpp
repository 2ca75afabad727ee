// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Gaussian relaxation of a Boltzmann machine (Zhang et al. 2012; Graham & Storkey 2017): a smooth
// multimodal density whose normaliser and moments are sums over the machine's states.
#include "kernels/device_code.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// P(s) ~ exp(s'Ws / 2 + s'b) on s in {-1, 1}^m, with W + diag D = Q Q' and x | s ~ N(Q's, I), summed over s:
///
///   log density = -x'x / 2 + sum_k log cosh(q_k'x + b_k),   gradient = -x + sum_k q_k tanh(q_k'x + b_k)
///
/// not normalised. With e = exp(-2|y|) both log cosh y = |y| + log(1 + e) - log 2 and |tanh y| = (1 - e) / (1
/// + e) come from one exponential, and the logarithms of 64 units from one of their product, which is below
/// 2^64. Where a caller has no use for the value, the compiler drops what it takes, the logarithm included.
struct Boltzmann : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  int dim = 0;
  int units = 0;        // with padding, a multiple of kHalf
  double constant = 0;  // -units log 2
  ParameterArray q;     // [dim][units], read four at a time
  ParameterArray b;     // [units]; the padding has q = 0 and b = 0, so that its cosh is 1

  /// Units worked on at a time: each coordinate is read once for a block, and its sums stay in registers, of which a GPU's
  /// thread has many. No bit depends on it.
  template <class R>
  static constexpr int kMost = !kOnDevice                   ? 8
                               : sizeof(R) == sizeof(float) ? 28
                                                            : 12;
  static constexpr int kBlock = 8, kHalf = 4, kUnitsOfProduct = 64;

  template <class F>
  LOCKSTEP_FN void arrays(F&& f) {
    f(q, units * dim);
    f(b, units);
  }

  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const int d = extent<D>(dim);
    L square = L(0);
    for (int i = 0; i < d; ++i) {
      const L xi = x[i];
      square = fma(xi, xi, square);
    }
    Sums<L> sums{L(R(constant)), L(1)};
    L logs = L(0);
    for (int first = 0; first < units; first += kUnitsOfProduct) {
      const int full = first + kUnitsOfProduct, end = full < units ? full : units;
      int k = first;
      for (; k + kMost<R> <= end; k += kMost<R>) add_block<kMost<R>, D, L>(k, x, g, sums);
      if constexpr (kBlock < kMost<R>)
        for (; k + kBlock <= end; k += kBlock) add_block<kBlock, D, L>(k, x, g, sums);
      if (k < end) add_block<kHalf, D, L>(k, x, g, sums);
      if (end == full) {
        logs = logs + log(sums.product);
        sums.product = L(1);
      }
    }
    return fma(L(R(-0.5)), square, sums.linear + (logs + log(sums.product)));
  }

 private:
  template <class R>
  struct alignas(16) Four {
    R v[4];
  };
  template <class L>
  struct Sums {
    L linear, product;  // of |y_k|, and of 1 + exp(-2 |y_k|)
  };
  /// K units from unit k on: adds their terms to the sums, and their share to the gradient.
  template <int K, int D, class L, class X, class G>
  LOCKSTEP_FN void add_block(int k, const X& x, const G& g, Sums<L>& sums) const {
    using R = scalar_t<L>;
    const int d = extent<D>(dim);
    const Four<R>* row = reinterpret_cast<const Four<R>*>(q.get<L>()) + k / 4;
    const int quads = units / 4;
    const R* bias = b.get<L>() + k;
    L y[K];
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < K; ++j) y[j] = L(bias[j]);
    for (int i = 0; i < d; ++i) {
      const L xi = x[i];
      LOCKSTEP_UNROLL_FIXED
      for (int j = 0; j < K; ++j) y[j] = fma(L(row[i * quads + j / 4].v[j % 4]), xi, y[j]);
    }
    LOCKSTEP_UNROLL_FIXED
    for (int j = 0; j < K; ++j) {
      const L size = abs(y[j]), e = exp2(size * L(R(-2 * kLog2E))), sum = L(1) + e;
      sums.linear = sums.linear + size;
      sums.product = sums.product * sum;
      const L t = (L(1) - e) / sum;
      y[j] = select(y[j] < L(0), -t, t);
    }
    if constexpr (gradient_wanted<G>()) {
      for (int i = 0; i < d; ++i) {
        L gi = k == 0 ? -x[i] : g[i];
        LOCKSTEP_UNROLL_FIXED
        for (int j = 0; j < K; ++j) gi = fma(L(row[i * quads + j / 4].v[j % 4]), y[j], gi);
        g.set(i, gi);
      }
    }
  }
};

struct BoltzmannTarget {
  using Density = Boltzmann;
  static TargetInfo info();
  static Built<Boltzmann> build(TargetInput& in);
};

}  // namespace lockstep
