// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/scalar_engine.hpp"

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/engine_cases.hpp"

namespace lockstep::testing {
namespace {

struct ScalarBackend : CpuBackend {
  explicit ScalarBackend(const EngineSpec& spec) : CpuBackend(spec), transition(spec.transition) {}
  TransitionKind transition;
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

}  // namespace lockstep::testing
