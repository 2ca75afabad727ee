// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/scalar_engine.hpp"

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture20.hpp"
#include "targets/two_modes.hpp"
#include "tests/support/engine_cases.hpp"

namespace lockstep::testing {
namespace {

struct ScalarBackend : CpuBackend {
  explicit ScalarBackend(const EngineSpec& spec) : CpuBackend(spec), transition(spec.transition) {}
  TransitionKind transition;
  /// As the GPU's: models of compile-time size are those that it has.
  template <int D>
  static constexpr bool specialises() {
    return D == 2;
  }
  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    initialize_cpu<R, E>(model, b, false, 1);
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    if constexpr (Model::kDim == 0 && requires { requires Model::kWalks; })
      if (transition == TransitionKind::random_walk) return advance_cpu<RandomWalk, R, E>(model, b, spec, 1);
    advance_cpu<Hmc, R, E>(model, b, spec, 1);
  }
};

template <class Definition>
std::unique_ptr<Engine> make(const std::string& name, const EngineSpec& spec) {
  static const auto built = [&] {
    MemoryInput input = input_of(name);
    return Definition::build(input);
  }();
  switch (spec.precision) {
    case Precision::single:
      return make_engine_for<ScalarBackend, float, float>(built.density, spec);
    case Precision::mixed:
      return make_engine_for<ScalarBackend, float, double>(built.density, spec);
    default:
      return make_engine_for<ScalarBackend, double, double>(built.density, spec);
  }
}

}  // namespace

std::unique_ptr<Engine> scalar_engine(const std::string& target, const EngineSpec& spec) {
  if (target == "gaussian") return make<GaussianTarget>(target, spec);
  if (target == "mixture20") return make<Mixture20Target>(target, spec);
  return make<TwoModesTarget>(target, spec);
}

}  // namespace lockstep::testing
