// SPDX-License-Identifier: Apache-2.0
#pragma once
// What transitions that propose from a mixture of normals at known modes have in common.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// Proposals that do not depend on where a chain is: draws y of a mixture of normals q = sum_k w_k N(m_k, L_k L_k'), each of
/// them cut off where the squared Mahalanobis distance from its own mean is above `most`:
///
///   accepted with min(1, w(y) / w(x)), w = density / q, the density being the chain's own.
///
/// Where x is in no component it stays; a draw beyond its own component is refused. Leaves the density invariant whatever the
/// list holds, as long as that does not change. Of models of several samples nothing is proposed. Costs the gradient of y.
///
/// A mixture's numbers, from `at` on in a unit's list, where there are several of them: the number of components K, and
/// another; of each its mean (d), L^-1 and L (lower triangles, by rows), log(w_k (2 pi)^(-d/2) / |L_k|), and the sum of
/// the weights to its own and with it.
struct ModeMixture : WithoutGradients {
  static constexpr int kHeader = 2;
  static constexpr double kAll = 1e300;
  LOCKSTEP_FN static constexpr int length(int dim) { return dim + dim * (dim + 1) + 2; }

  /// log q of the point in rows x, where distances count up to `most`; below -kAll / 2 where that is 0.
  template <class V, class W, class X>
  LOCKSTEP_FN static V log_mixture(const W& w, int d, V count, V most, X x, V at = V(0.0)) {
    const int components = static_cast<int>(reduce_max(count));
    V top = V(-kAll), sum = V(0.0);
    const auto add = [&](auto read) {
      for (int k = 0; k < components; ++k) {
        const int place = kHeader + k * length(d);
        V distance = V(0.0);
        int next = place + d;
        for (int i = 0; i < d; ++i) {
          V z = V(0.0);
          for (int j = 0; j <= i; ++j) z = fma(read(next++), cast<V>(x[j]) - read(place + j), z);
          distance = fma(z, z, distance);
        }
        const V term = select(mask_and(V(double(k)) < count, distance <= most),
                              nfma(V(0.5), distance, read(next + d * (d + 1) / 2)), V(-kAll));
        const V higher = max(term, top);
        sum = fma(sum, exp(top - higher), exp(term - higher));
        top = higher;
      }
    };
    if (any(at > V(0.5)))
      add([&](int index) { return w.shared.get(0, at + V(double(index))); });
    else
      w.shared.each_unit(0, add);
    return top + log(max(sum, V(1.0)));
  }

  /// How many components a unit's list has, and its other number.
  template <class V, class Model, class W>
  LOCKSTEP_FN static V components(const Model& model, const W& w, V at = V(0.0)) {
    return select(w.shared.size(0) > V(0.5), w.shared.get(0, at), V(0.0)) *
           V(model.samples() == 1 ? 1.0 : 0.0);
  }
  template <class V, class W>
  LOCKSTEP_FN static V number(const W& w, V at = V(0.0)) {
    return w.shared.get(0, at + V(1.0));
  }

  /// y in w.x; log q of x and of y.
  template <class E, class V>
  struct Drawn {
    E log_ratio;
    V before, after;
  };
  template <class E, class V, class L, class Model, class W>
  LOCKSTEP_FN static Drawn<E, V> draw_mixture(const Model& model, const Draw<L>& draw, V most, const W& w,
                                              V at = V(0.0)) {
    const int d = model.dim();
    const auto x = w.x, z = w.p;  // the momentum's rows
    const V count = components<V>(model, w, at);
    const auto read = [&](V index) { return w.shared.get(0, index); };
    const V before = log_mixture<V>(w, d, count, most, x, at);
    const V size = V(double(length(d))), u = cast<V>(draw.uniform(Purpose::mixture_draw, kPickBlock));
    const int all = static_cast<int>(reduce_max(count));
    const V first = at + V(double(kHeader));
    V place = first;
    for (int k = 1; k < all; ++k) {
      const V next = first + V(double(k)) * size;
      place = select(mask_and(V(double(k)) < count, u >= read(next - V(1.0))), next, place);
    }
    V distance = V(0.0);
    draw.normals(Purpose::mixture_draw, d, [&](int i, L value) {
      z.set(i, value);
      distance = fma(cast<V>(value), cast<V>(value), distance);
    });
    const auto moves = mask_and(count > V(0.5), mask_and(before > V(-0.5 * kAll), distance <= most));
    const V factor = place + V(double(d + d * (d + 1) / 2));
    for (int i = 0; i < d; ++i) {
      V y = read(place + V(double(i)));
      const int row = i * (i + 1) / 2;
      for (int j = 0; j <= i; ++j) y = fma(read(factor + V(double(row + j))), cast<V>(L(z[j])), y);
      x.set(i, select(cast_mask<L>(moves), cast<L>(y), x[i]));
    }
    const V after = log_mixture<V>(w, d, count, most, x, at);
    const E never = E(-std::numeric_limits<scalar_t<E>>::infinity());
    const auto good = mask_and(moves, after > V(-0.5 * kAll));
    return {select(cast_mask<E>(good), cast<E>(before - after), never), before, after};
  }

 private:
  static constexpr std::uint32_t kPickBlock = (1u << 20) - 1;  // beyond the axes
};

}  // namespace lockstep
