// SPDX-License-Identifier: Apache-2.0
#pragma once
// The models there are, and how a ModelSpec becomes one.
#include "kernels/block_density.hpp"
#include "targets/engine.hpp"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"

namespace lockstep {

/// A model for a spec: Path or PseudoExtended of some density and dimension.
template <class Model, class Density>
Model make_model(const Density& density, const ModelSpec& m) {
  const ParameterLayout layout{density.dim, m.dense_metric, m.dense_base};
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
