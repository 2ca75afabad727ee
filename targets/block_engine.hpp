// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine of the block driver on the CPU: for every density, model and transition that is not fused
// (targets/engine_cpu.hpp).
#include "targets/engine_cpu_memory.hpp"
#include "targets/transitions.hpp"

namespace lockstep {

template <class L, class E, class Model>
class BlockEngine : public EngineMemory<CpuBackend, scalar_t<L>, scalar_t<E>> {
  using R = scalar_t<L>;
  using S = scalar_t<E>;

 public:
  /// With the transitions of the spec. Throws std::invalid_argument where one that ends when it sees fit is among
  /// several.
  BlockEngine(Model model, const EngineSpec& spec,
              const std::vector<const BlockTransition<L, E, Model>*>& transitions,
              BlockDensityMaker<R, S> density)
      : EngineMemory<CpuBackend, R, S>(engine_shape(model, false), spec),
        model_(model),
        work_{spec.threads, std::move(density), compose(spec, transitions, model.rows())} {}

 private:
  void start(const BatchView<R, S>& b) override {
    for_each_block(model_, b, false, work_, [](auto& block) { block.initialize(); });
  }
  void launch(const BatchView<R, S>& b, const LaunchSpec& spec) override {
    for_each_block(model_, b, spec.covariance, work_, [&](auto& block) { block.advance(spec); });
  }
  const Model model_;
  const BlockWork<L, E, Model> work_;
};

/// The library's transitions that a spec names.
template <class R, class E>
std::vector<CpuTransition<R, E>> library_transitions(const EngineSpec& spec) {
  std::vector<CpuTransition<R, E>> all;
  for (const TransitionInfo* info : transitions_of(spec))
    all.push_back(std::get<CpuTransition<R, E>>(static_cast<const CpuTransitions*>(info)->of));
  return all;
}

/// In the machine's packs, by these transitions of the spec, the library's or others. Compiled once for each precision
/// (block.in).
template <class R, class E>
std::unique_ptr<Engine> make_block_engine(const EngineSpec& spec, OpaqueDensity density,
                                          BlockDensityMaker<R, E> make,
                                          const std::vector<CpuTransition<R, E>>& transitions) {
  return with_opaque_model(spec.model, [&]<class Model>() -> std::unique_ptr<Engine> {
    using Block = BlockTransition<MachinePack<R>, MachineEnergies<R, E>, Model>;
    std::vector<const Block*> of_model;
    for (const auto& t : transitions) of_model.push_back(std::get<const Block*>(t));
    return std::make_unique<BlockEngine<MachinePack<R>, MachineEnergies<R, E>, Model>>(
        make_model<Model>(density, spec.model), spec, of_model, std::move(make));
  });
}

extern template std::unique_ptr<Engine> make_block_engine<float, float>(
    const EngineSpec&, OpaqueDensity, BlockDensityMaker<float, float>,
    const std::vector<CpuTransition<float, float>>&);
extern template std::unique_ptr<Engine> make_block_engine<float, double>(
    const EngineSpec&, OpaqueDensity, BlockDensityMaker<float, double>,
    const std::vector<CpuTransition<float, double>>&);
extern template std::unique_ptr<Engine> make_block_engine<double, double>(
    const EngineSpec&, OpaqueDensity, BlockDensityMaker<double, double>,
    const std::vector<CpuTransition<double, double>>&);

}  // namespace lockstep
