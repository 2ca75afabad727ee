// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs from chain to chain but not from iteration to iteration: step size, trajectory, inverse
// temperature, metric, base density. One row each, per lane, because every replicate adapts for itself.
#include "kernels/rows.hpp"

namespace lockstep {

struct ParameterLayout {
  int dim = 0;
  bool dense_metric = false;
  bool dense_base = false;

  enum Row { step_size, trajectory_time, beta, log_zeta, base_log_norm, scale_u, first };
  LOCKSTEP_FN constexpr int triangle() const { return dim * (dim + 1) / 2; }
  LOCKSTEP_FN constexpr int scale() const { return first; }            // dim rows: sqrt of the inverse mass
  LOCKSTEP_FN constexpr int base_mean() const { return first + dim; }  // dim rows
  LOCKSTEP_FN constexpr int base_inv_sd() const {
    return first + 2 * dim;
  }  // dim rows; 0: no base (pure tempering)
  LOCKSTEP_FN constexpr int centre() const { return first + 3 * dim; }  // dim rows: the mean, for ChEES
  /// Cholesky factor C of the inverse mass, lower triangle by rows: velocity = C p, p ~ N(0, I).
  LOCKSTEP_FN constexpr int metric_factor() const { return first + 4 * dim; }
  /// Precision matrix of the base, lower triangle by rows.
  LOCKSTEP_FN constexpr int base_precision() const {
    return first + 4 * dim + (dense_metric ? triangle() : 0);
  }
  LOCKSTEP_FN constexpr int rows() const {
    return first + 4 * dim + (dense_metric ? triangle() : 0) + (dense_base ? triangle() : 0);
  }
};

/// Log density of the Gaussian base at x, -psi(x) = log_norm - |(x - mean) / sd|^2 / 2, and its gradient
/// through `put(i, value)`. With inv_sd = log_norm = 0 it is identically zero: pure tempering.
template <int D, class L, class X, class P, class Put>
LOCKSTEP_FN L base_log_density(const ParameterLayout& layout, X x, P par, Put&& put) {
  const int d = extent<D>(layout.dim);
  const auto mean = par.from(layout.base_mean());
  L q = L(0);
  if (D == 0 && layout.dense_base) {
    const auto precision = par.from(layout.base_precision());
    LOCKSTEP_UNROLL
    for (int i = 0; i < d; ++i) {
      L row = L(0);  // row i of the precision times (x - mean)
      for (int j = 0; j < d; ++j) {
        const int a = i > j ? i : j, b = i > j ? j : i;
        row = fma(precision[a * (a + 1) / 2 + b], x[j] - mean[j], row);
      }
      q = fma(row, x[i] - mean[i], q);
      put(i, -row);
    }
  } else {
    const auto inv_sd = par.from(layout.base_inv_sd());
    LOCKSTEP_UNROLL
    for (int i = 0; i < d; ++i) {
      const L s = inv_sd[i];
      const L z = (x[i] - mean[i]) * s;
      q = fma(z, z, q);
      put(i, -(z * s));
    }
  }
  return nfma(L(0.5), q, par[ParameterLayout::base_log_norm]);
}

}  // namespace lockstep
