// SPDX-License-Identifier: Apache-2.0
#pragma once
// The models there are, and how a ModelSpec becomes one.
#include <concepts>

#include "kernels/block_density.hpp"
#include "targets/engine.hpp"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"

namespace lockstep {

/// What the drivers ask of a model, said in lanes of L: sizes (of a position, of what is cached with it), and the gradient
/// and the log density from the target's values at each of its samples.
template <class M, class L = double>
concept ModelFunction = requires(const M& m, Rows<L> rows, const L* values) {
  { m.dim() } -> std::same_as<int>;
  { m.samples() } -> std::same_as<int>;
  { m.rows() } -> std::same_as<int>;
  { m.cache_rows() } -> std::same_as<int>;
  { m.box() } -> std::same_as<double>;
  { m.gradient_takes_value() } -> std::same_as<bool>;
  m.template finish_gradient<L>(values, rows, rows, rows);
  m.template finish_log_density<L>(values, rows, rows, rows);
  { m.template weight<L>(rows, 0) } -> std::same_as<L>;
  { m.template beta<L>(rows, rows, 0) } -> std::same_as<L>;
  { m.density.quantities() } -> std::same_as<int>;
  requires std::same_as<decltype(M::layout), ParameterLayout>;
  requires M::kDim >= 0 && M::kRows >= 0 && M::kCacheRows >= 0;  // 0: known at run time
  requires std::same_as<decltype(M::kTempered), const bool> &&
      std::same_as<decltype(M::kExtended), const bool>;
};

/// A model for a spec: Path or PseudoExtended of some density and dimension.
template <ModelFunction Model, class Density>
Model make_model(const Density& density, const ModelSpec& m) {
  const ParameterLayout layout{density.dim, m.dense_metric, m.base};
  if constexpr (Model::kExtended)
    return {density, layout, m.pseudo_samples, m.learned, m.fixed_beta, m.low, m.high, m.g_exponent, m.box};
  else
    return {density, layout, m.control};
}

/// The models of a density that stands behind calls for blocks of chains.
using OpaquePlain = Path<OpaqueDensity, 0, false>;
using OpaquePath = Path<OpaqueDensity, 0, true>;
using OpaqueExtended = PseudoExtended<OpaqueDensity, 0, 0>;

/// f.operator()<Model>() for the model of a spec.
template <class F>
auto with_opaque_model(const ModelSpec& m, F f) {
  if (m.kind == ModelKind::pseudo_extended) return f.template operator()<OpaqueExtended>();
  if (m.kind == ModelKind::path) return f.template operator()<OpaquePath>();
  return f.template operator()<OpaquePlain>();
}

}  // namespace lockstep
