// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine of the block driver on a GPU, and the transitions of kernels/transitions.list as it sees them; as
// targets/block_engine.hpp and targets/transitions.hpp on the CPU.
#include <tuple>

#include "kernels/block_cuda.cuh"
#include "kernels/transition_function.hpp"
#include "targets/engine_cuda_memory.hpp"
#include "targets/models.hpp"

namespace lockstep {

/// One transition for every model and precision.
template <class R, class E>
using CudaTransitionForModels =
    std::tuple<const CudaTransition<R, E, OpaquePlain>*, const CudaTransition<R, E, OpaquePath>*,
               const CudaTransition<R, E, OpaqueExtended>*>;
using CudaTransitions =
    std::tuple<CudaTransitionForModels<float, float>, CudaTransitionForModels<float, double>,
               CudaTransitionForModels<double, double>>;

template <class Transition>
const CudaTransitions& cuda_transitions() {
  static const CudaTransitions all = [] {
    const auto fill = []<class R, class E, class Model>(const CudaTransition<R, E, Model>*& p) {
      static const CudaTransitionOf<Transition, R, E, Model> transition;
      p = &transition;
    };
    CudaTransitions t;
    if constexpr (check_transition<Transition, OpaquePath>())
      std::apply(
          [&](auto&... precision) { (std::apply([&](auto&... p) { (fill(p), ...); }, precision), ...); }, t);
    return t;
  }();
  return all;
}

/// Those of the list, by name; tests add theirs.
std::map<std::string, const CudaTransitions*>& cuda_transition_registry();

template <class R, class E, class Model>
class CudaBlockEngine : public EngineMemory<CudaBackend, R, E> {
 public:
  using Parts = typename CudaBlocks<R, E, Model>::Parts;
  CudaBlockEngine(Model model, const EngineSpec& spec, Parts parts,
                  std::unique_ptr<CudaDensity<R, E>> density)
      : EngineMemory<CudaBackend, R, E>(engine_shape(model, false), spec),
        model_(model),
        parts_(std::move(parts)),
        density_(std::move(density)) {}
  std::size_t bytes() const override {
    return EngineMemory<CudaBackend, R, E>::bytes() +
           (CudaBlocks<R, E, Model>::bytes_of_chain(model_, parts_) + density_->bytes_of_chain()) *
               std::size_t(this->padded_chains());
  }

 private:
  void start(const BatchView<R, E>& view) override { blocks(view).initialize(view); }
  void launch(const BatchView<R, E>& view, const LaunchSpec& spec) override {
    blocks(view).advance(view, spec);
  }
  CudaBlocks<R, E, Model>& blocks(const BatchView<R, E>& view) {
    if (blocks_ == nullptr)
      blocks_ = std::make_unique<CudaBlocks<R, E, Model>>(model_, parts_, *density_, view, stream_);
    return *blocks_;
  }
  const Model model_;
  const Parts parts_;
  const CudaStream stream_;  // which what follows uses to its end
  std::unique_ptr<CudaDensity<R, E>> density_;
  std::unique_ptr<CudaBlocks<R, E, Model>> blocks_;
};

/// Compiled once for each precision (block_cuda.in).
template <class R, class E>
std::unique_ptr<Engine> make_cuda_block_engine(const EngineSpec& spec,
                                               std::unique_ptr<CudaDensity<R, E>> density) {
  return with_opaque_model(spec.model, [&]<class Model>() -> std::unique_ptr<Engine> {
    using Transition = CudaTransition<R, E, Model>;
    const OpaqueDensity opaque{density->dim(), density->quantities()};
    const auto model = make_model<Model>(opaque, spec.model);
    std::vector<const Transition*> transitions;
    for (const TransitionInfo* info : transitions_of(spec))
      transitions.push_back(std::get<const Transition*>(
          std::get<CudaTransitionForModels<R, E>>(*cuda_transition_registry().at(info->name))));
    return std::make_unique<CudaBlockEngine<R, E, Model>>(
        model, spec, compose(spec, transitions, model.rows()), std::move(density));
  });
}
extern template std::unique_ptr<Engine> make_cuda_block_engine<float, float>(
    const EngineSpec&, std::unique_ptr<CudaDensity<float, float>>);
extern template std::unique_ptr<Engine> make_cuda_block_engine<float, double>(
    const EngineSpec&, std::unique_ptr<CudaDensity<float, double>>);
extern template std::unique_ptr<Engine> make_cuda_block_engine<double, double>(
    const EngineSpec&, std::unique_ptr<CudaDensity<double, double>>);

}  // namespace lockstep
