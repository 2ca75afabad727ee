// SPDX-License-Identifier: Apache-2.0
#pragma once
// Engine for one model on one back end: besides its memory, a Backend gives the copy of a density's arrays to
// it
// (`bind`), and the launches (`initialize`, `advance`).
#include "targets/engine_memory.hpp"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"

namespace lockstep {

template <class Backend, class Model, class R, class E>
class EngineOf : public EngineMemory<Backend, R, E> {
 public:
  EngineOf(Model model, const EngineSpec& spec)
      : EngineMemory<Backend, R, E>(
            {model.dim(), model.samples(), model.rows(), model.cache_rows(), model.density.quantities(),
             model.layout, Model::kTempered, Backend(spec).needs_work_rows(model)},
            spec),
        model_(std::move(model)) {
    this->backend_.bind(model_.density);
  }

 private:
  void start(const BatchView<R, E>& view) override { this->backend_.template initialize<R, E>(model_, view); }
  void launch(const BatchView<R, E>& view, const LaunchSpec& spec) override {
    this->backend_.template advance<R, E>(model_, view, spec);
  }
  Model model_;
};

/// The model for a spec, with compile-time dimension D where the density lists its dimension as specialised.
template <class Backend, class R, class E, int D, class Density>
std::unique_ptr<Engine> make_engine_of_dim(const Density& density, const EngineSpec& spec) {
  const ModelSpec& m = spec.model;
  const ParameterLayout layout{density.dim, m.dense_metric, m.dense_base};
  if (m.kind == ModelKind::pseudo_extended) {
    auto make = [&]<int N>(std::integral_constant<int, N>) -> std::unique_ptr<Engine> {
      using Model = PseudoExtended<Density, D, N>;
      Model model{density, layout, m.pseudo_samples, m.learned, m.fixed_beta,
                  m.low,   m.high, m.g_exponent,     m.box};
      return std::make_unique<EngineOf<Backend, Model, R, E>>(model, spec);
    };
    std::unique_ptr<Engine> engine;
    const auto try_size = [&]<int N>(std::integral_constant<int, N> samples) {
      if constexpr (Backend::template in_registers<R, D, N>())
        if (m.pseudo_samples == N && m.learned) engine = make(samples);
    };
    [&]<int... N>(std::integer_sequence<int, N...>) { (try_size(std::integral_constant<int, N>()), ...); }
    (std::integer_sequence<int, 2, 3, 4, 5>());
    return engine ? std::move(engine) : make(std::integral_constant<int, 0>());
  }
  if (m.kind == ModelKind::path)
    return std::make_unique<EngineOf<Backend, Path<Density, D, true>, R, E>>(
        Path<Density, D, true>{density, layout, m.control}, spec);
  return std::make_unique<EngineOf<Backend, Path<Density, D, false>, R, E>>(
      Path<Density, D, false>{density, layout}, spec);
}

template <class Backend, class R, class E, class Density>
std::unique_ptr<Engine> make_engine_for(const Density& density, const EngineSpec& spec) {
  std::unique_ptr<Engine> engine;
  const bool general = spec.model.dense_metric || spec.model.dense_base ||
                       spec.transition != TransitionKind::hmc || spec.driver != Driver::fused;
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

}  // namespace lockstep
