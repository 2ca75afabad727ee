// SPDX-License-Identifier: Apache-2.0
#pragma once
// Engines by blocks in lanes that the library is not compiled for: one chain to a lane, as a GPU's threads have it, in
// each precision; and packs of 32 in mixed precision. Compiled once for all programs of tests.
#include <memory>

#include "targets/engine_cpu.hpp"

namespace lockstep::testing {

/// By the transitions that the spec names, those of kernels/transitions.list and of tests/support/own_data.hpp (in single and
/// double precision the samplers alone).
template <class L, class E>
std::unique_ptr<Engine> lane_engine(const EngineSpec& spec, OpaqueDensity density,
                                    BlockDensityMaker<scalar_t<L>, scalar_t<E>> make);

/// In mixed precision: of one chain to a lane, of packs of 32, or of the machine's with the transitions given.
template <class Density>
std::unique_ptr<Engine> blocks_of_any_width(const Density& density, const EngineSpec& spec,
                                            const std::vector<CpuTransition<float, double>>& transitions) {
  const OpaqueDensity opaque{density.dim, density.quantities()};
  const auto in = [&]<class L, class E>() { return block_density<Density, L, E>(density); };
  using Wide = Pack<float, 32>;
  using WideEnergies = Pack<double, 32>;
  if (spec.pack_width == 1)
    return lane_engine<float, double>(spec, opaque, in.template operator()<float, double>());
  if (spec.pack_width == 32)
    return lane_engine<Wide, WideEnergies>(spec, opaque, in.template operator()<Wide, WideEnergies>());
  return make_block_engine<float, double>(
      spec, opaque, in.template operator()<MachinePack<float>, MachineEnergies<float, double>>(),
      transitions);
}

}  // namespace lockstep::testing
