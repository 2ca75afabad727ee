// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fused driver's engine for one model on one back end: besides its Memory (targets/engine_memory.hpp), a Backend
// says which models and bases it is compiled for (`fuses`, `kAnyBase`), gives the copy of a density's arrays to it
// (`bind`), and the launches (`initialize`, `advance`).
#include "targets/engine_memory.hpp"
#include "targets/models.hpp"

namespace lockstep {

template <class Backend, class Model, class R, class E>
class EngineOf : public EngineMemory<typename Backend::Memory, R, E> {
 public:
  EngineOf(Model model, const EngineSpec& spec)
      : EngineMemory<typename Backend::Memory, R, E>(
            engine_shape(model, Backend(spec).needs_work_rows(model)), spec),
        launches_(spec),
        model_(std::move(model)) {
    launches_.bind(model_.density);
  }

 private:
  void start(const BatchView<R, E>& view) override { launches_.template initialize<R, E>(model_, view); }
  void launch(const BatchView<R, E>& view, const LaunchSpec& spec) override {
    launches_.template advance<R, E>(model_, view, spec);
  }
  Backend launches_;
  Model model_;
};

/// The model for a spec, with compile-time dimension D where the density lists its dimension as specialised.
template <class Backend, class R, class E, int D, class Density>
std::unique_ptr<Engine> make_engine_of_dim(const Density& density, const EngineSpec& spec) {
  const ModelSpec& m = spec.model;
  [[maybe_unused]] constexpr bool kAnyBase = D == 0 && Backend::kAnyBase;
  const auto make = [&]<class Model>() -> std::unique_ptr<Engine> {
    return std::make_unique<EngineOf<Backend, Model, R, E>>(make_model<Model>(density, m), spec);
  };
  if constexpr (Backend::fuses(ModelKind::plain))
    if (m.kind == ModelKind::plain) return make.template operator()<Path<Density, D, false>>();
  if constexpr (Backend::fuses(ModelKind::path))
    if (m.kind == ModelKind::path) return make.template operator()<Path<Density, D, true, kAnyBase>>();
  std::unique_ptr<Engine> engine;
  if constexpr (Backend::fuses(ModelKind::pseudo_extended)) {
    const auto try_size = [&]<int N>(std::integral_constant<int, N>) {
      if constexpr (Backend::template in_registers<R, D, N>())
        if (m.pseudo_samples == N && m.learned)
          engine = make.template operator()<PseudoExtended<Density, D, N, kAnyBase>>();
    };
    [&]<int... N>(std::integer_sequence<int, N...>) { (try_size(std::integral_constant<int, N>()), ...); }
    (std::integer_sequence<int, 2, 3, 4, 5>());
    if (!engine) engine = make.template operator()<PseudoExtended<Density, D, 0, kAnyBase>>();
  }
  return engine;
}

/// Fused HMC: of compile-time dimension where the density lists it, the metric is diagonal and the base is of axes.
template <class Backend, class R, class E, class Density>
std::unique_ptr<Engine> make_engine_for(const Density& density, const EngineSpec& spec) {
  std::unique_ptr<Engine> engine;
  const bool general = spec.model.dense_metric || spec.model.base != 0;
  [&]<int... D>(std::integer_sequence<int, D...>) {
    [[maybe_unused]] auto try_dim = [&]<int K>(std::integral_constant<int, K>) {
      if constexpr (Backend::template specialises<K>())
        if (!engine && !general && density.dim == K)
          engine = make_engine_of_dim<Backend, R, E, K>(density, spec);
    };
    (try_dim(std::integral_constant<int, D>()), ...);
  }
  (typename Density::SpecialisedDims());
  return engine ? std::move(engine) : make_engine_of_dim<Backend, R, E, 0>(density, spec);
}

/// Whether a run goes through the fused driver: HMC, without settings of its own, on densities without matrix products,
/// and a model that the back end compiles it for.
template <class Backend, class Density>
bool is_fused(const EngineSpec& spec) {
  return !Density::kBatch && !spec.blocks && spec.then.empty() &&
         transition_of(spec).name == Hmc::info().name && transition_of(spec).settings.empty() &&
         Backend::fuses(spec.model.kind) && (Backend::kAnyBase || spec.model.base == 0);
}

}  // namespace lockstep
