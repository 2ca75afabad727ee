// SPDX-License-Identifier: Apache-2.0
#pragma once
// What differs from chain to chain but not from iteration to iteration: step size, trajectory, inverse
// temperature, metric, base density. One row each, per lane, because every replicate adapts for itself.
#include "kernels/rows.hpp"

namespace lockstep {

struct ParameterLayout {
  int dim = 0;
  bool dense_metric = false;
  int base = 0;  // of BaseDensities (kernels/base.hpp)

  static constexpr int kBend = 4;  // coefficients of what flattens a path (PseudoExtended)
  enum Row { step_size, trajectory_time, beta, log_zeta, base_log_norm, scale_u, bend, first = bend + kBend };
  LOCKSTEP_FN constexpr int triangle() const { return dim * (dim + 1) / 2; }
  LOCKSTEP_FN constexpr int scale() const { return first; }            // dim rows: sqrt of the inverse mass
  LOCKSTEP_FN constexpr int base_mean() const { return first + dim; }  // dim rows
  LOCKSTEP_FN constexpr int base_inv_sd() const { return first + 2 * dim; }  // dim rows; 0: no base
  LOCKSTEP_FN constexpr int centre() const { return first + 3 * dim; }       // dim rows: the mean, for ChEES
  /// Cholesky factor C of the inverse mass, lower triangle by rows: velocity = C p, p ~ N(0, I).
  LOCKSTEP_FN constexpr int metric_factor() const { return first + 4 * dim; }
  LOCKSTEP_FN constexpr int rows() const { return first + 4 * dim + (dense_metric ? triangle() : 0); }
};

/// The rows of a group's parameters, and the numbers that its chains share with all of their unit, the base's: these in the
/// precision of the lanes, for a matrix that is rounded is that of another density, of another integral.
template <class L, class Stored = scalar_t<L>, class RowsOf = TileRows<L, Stored>>
struct ParameterRows : RowsOf {
  const scalar_t<L>* shared = nullptr;
  int step = 1;  // from one number to the next; kTile where the tile's chains are of several units

  /// f(numbers), with the same number for all lanes or one for each.
  template <class F>
  LOCKSTEP_FN auto of_unit(F f) const {
    if constexpr (ScalarLane<L>)
      return f(Rows<L, const scalar_t<L>>{shared, step});
    else if (step == 1)
      return f(CommonRows<L>{shared});
    else
      return f(TileRows<L, const scalar_t<L>>{shared});
  }
};

}  // namespace lockstep
