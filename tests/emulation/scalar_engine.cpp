// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/scalar_engine.hpp"

#include <stdexcept>

#include "targets/all_transitions.hpp"
#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/own_data.hpp"

namespace lockstep::testing {
namespace {

/// Every model and transition, fused, one chain at a time.
struct ScalarBackend : FusedCpu {
  explicit ScalarBackend(const EngineSpec& spec)
      : FusedCpu(spec), name(transition_of(spec).name), part(part_of(spec, 0, 0)) {}
  std::string name;
  TransitionPart part;
  static constexpr bool fuses(ModelKind) { return true; }
  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    initialize_cpu<R, E>(model, b, false, 1);
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    bool known = false;
    const auto advance_by = [&]<class Transition>() {
      if (Transition::info().name != name) return;
      known = true;
      advance_cpu<Transition, R, E>(model, part.of(b), spec, 1);
    };
    for_each_transition(advance_by);
    advance_by.template operator()<Adiabatic>();                          // of paths alone
    if constexpr (!std::is_same_v<R, E>) for_each_with_data(advance_by);  // in one precision
    if (!known) throw std::logic_error("no scalar reference of " + name);
  }
};

/// Of the dimension that the name of the target says; kept, for engines read its arrays.
const Gaussian& density_of(const std::string& target) {
  static std::map<std::string, Built<Gaussian>> built;
  if (!built.contains(target)) {
    MemoryInput input = input_of(target);
    built.emplace(target, GaussianTarget::build(input));
  }
  return built.at(target).density;
}

}  // namespace

std::unique_ptr<Engine> scalar_engine(const std::string& target, const EngineSpec& spec) {
  const Gaussian& density = density_of(target);
  switch (spec.precision) {
    case Precision::single:
      return make_engine_for<ScalarBackend, float, float>(density, spec);
    case Precision::mixed:
      return make_engine_for<ScalarBackend, float, double>(density, spec);
    default:
      return make_engine_for<ScalarBackend, double, double>(density, spec);
  }
}

std::unique_ptr<Engine> scalar_sequence(const std::string& target, const EngineSpec& spec) {
  const Gaussian& density = density_of(target);
  return with_opaque_model(spec.model, [&]<class Model>() -> std::unique_ptr<Engine> {
    using Block = BlockTransition<float, double, Model>;
    static const BlockTransitionOf<ListWalk, float, double, Model> walk;
    static const BlockTransitionOf<Tours, float, double, Model> tours;
    const OpaqueDensity opaque{density.dim, density.quantities()};
    return std::make_unique<BlockEngine<float, double, Model>>(
        make_model<Model>(opaque, spec.model), spec, std::vector<const Block*>{&walk, &tours},
        block_density<Gaussian, float, double>(density));
  });
}

}  // namespace lockstep::testing
