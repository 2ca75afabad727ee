// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CPU's engines of a density, included by the generated instantiation of each.
#include "targets/block_engine.hpp"
#include "targets/engine_of.hpp"
#include "targets/target.hpp"

namespace lockstep {

/// The fused driver on the CPU, for the target itself: there it is a fifth faster than the block driver on the
/// cheapest densities, on other models slower, and each model takes seconds to compile for each density
/// (docs/decisions/0010-block-driver.md). Widths other than the machine's are compiled where the tests ask for them
/// (LOCKSTEP_ALL_WIDTHS).
struct FusedCpu : CpuBackend {
  using CpuBackend::CpuBackend;
  static constexpr bool fuses(ModelKind kind) { return kind == ModelKind::plain; }
  static constexpr bool kAnyBase = true;
  template <int D>
  static constexpr bool specialises() {
    return true;
  }
  template <class R, int D, int N>
  static constexpr bool in_registers() {
    return false;
  }  // the rows live in the first-level cache anyway
  template <class Model>
  bool needs_work_rows(const Model&) const {
    return false;
  }
  template <class Density>
  void bind(Density&) {}

  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    with_width<R, E>([&]<class L, class LE>() { initialize_cpu<L, LE>(model, b, false, threads_); });
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    with_width<R, E>([&]<class L, class LE>() { advance_cpu<Hmc, L, LE>(model, b, spec, threads_); });
  }

 protected:
  /// Calls f with the lane types of the width in use.
  template <class R, class E, class F>
  void with_width(F f) const {
#ifdef LOCKSTEP_ALL_WIDTHS
    if (width_ == 1) return f.template operator()<R, E>();
    if (width_ == 4) return f.template operator()<Pack<R, 4>, Pack<E, 4>>();
    if (width_ == 8) return f.template operator()<Pack<R, 8>, Pack<E, 8>>();
    if (width_ == 32) return f.template operator()<Pack<R, 32>, Pack<E, 32>>();
#endif
    f.template operator()<MachinePack<R>, MachineEnergies<R, E>>();
  }
};

/// A density for the block driver: its own Block, or pack by pack.
template <class Density, class L, class E>
BlockDensityMaker<scalar_t<L>, scalar_t<E>> block_density(const Density& density) {
  return [kept = std::make_shared<const Density>(density)](
             int chains) -> std::unique_ptr<BlockDensity<scalar_t<L>, scalar_t<E>>> {
    if constexpr (Density::kBatch)
      return std::make_unique<typename Density::template Block<L, E>>(*kept, chains);
    else
      return std::make_unique<PointwiseBlock<Density, L, E>>(*kept, chains);
  };
}

template <DensityFunction Density, class R, class E>
std::unique_ptr<Engine> make_cpu_engine(const Density& density, const EngineSpec& spec) {
  if constexpr (!Density::kBatch)
    if (is_fused<FusedCpu, Density>(spec)) return make_engine_for<FusedCpu, R, E>(density, spec);
  return make_block_engine<R, E>(spec, {density.dim, density.quantities()},
                                 block_density<Density, MachinePack<R>, MachineEnergies<R, E>>(density),
                                 library_transitions<R, E>(spec));
}

}  // namespace lockstep
