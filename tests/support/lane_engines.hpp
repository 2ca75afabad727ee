// SPDX-License-Identifier: Apache-2.0
#pragma once
// Engines by blocks in lanes that the library is not compiled for: one chain to a lane, as a GPU's threads have it, in
// each precision; and packs of 4 and 32 in mixed precision. Compiled once for all programs of tests.
#include <memory>

#include "targets/engine_cpu.hpp"

namespace lockstep::testing {

/// By the transitions of the names in the spec, whatever else was said of them: the samplers of kernels/transitions.list; in
/// mixed precision those of tests/support/own_data.hpp; of one chain to a lane Adiabatic, of packs Lbfgs, Darting and
/// Regeneration. Throws std::logic_error for any other.
template <class L, class E>
std::unique_ptr<Engine> lane_engine(const EngineSpec& spec, OpaqueDensity density,
                                    BlockDensityMaker<scalar_t<L>, scalar_t<E>> make);

/// In mixed precision: of one chain to a lane, of packs of 4 or 32, or of the machine's with the transitions given. Throws
/// std::invalid_argument for another width.
template <class Density>
std::unique_ptr<Engine> blocks_of_any_width(const Density& density, const EngineSpec& spec,
                                            const std::vector<CpuTransition<float, double>>& transitions) {
  const OpaqueDensity opaque{density.dim, density.quantities()};
  const auto in = [&]<class L, class E>() { return block_density<Density, L, E>(density); };
  const auto lanes = [&]<class L, class E>() {
    return lane_engine<L, E>(spec, opaque, in.template operator()<L, E>());
  };
  if (spec.pack_width == 1) return lanes.template operator()<float, double>();
  if (spec.pack_width == 4) return lanes.template operator()<Pack<float, 4>, Pack<double, 4>>();
  if (spec.pack_width == 32) return lanes.template operator()<Pack<float, 32>, Pack<double, 32>>();
  if (spec.pack_width != 0 && spec.pack_width != lane_width<MachinePack<float>>)
    throw std::invalid_argument("no blocks of this width");
  return make_block_engine<float, double>(
      spec, opaque, in.template operator()<MachinePack<float>, MachineEnergies<float, double>>(),
      transitions);
}

}  // namespace lockstep::testing
