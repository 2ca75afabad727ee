// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/scalar_engine.hpp"

#include <map>

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/lane_engines.hpp"

namespace lockstep::testing {
namespace {

/// Of the dimension that the name of the target says; kept, for engines read its arrays.
const Gaussian& density_of(const std::string& target) {
  static std::map<std::string, Built<Gaussian>> built;
  if (!built.contains(target)) {
    MemoryInput input = input_of(target);
    built.emplace(target, GaussianTarget::build(input));
  }
  return built.at(target).density;
}

template <class R, class E>
std::unique_ptr<Engine> scalar_engine_in(const std::string& target, const EngineSpec& spec) {
  const Gaussian& density = density_of(target);
  return lane_engine<R, E>(spec, {density.dim, density.quantities()}, block_density<Gaussian, R, E>(density));
}

}  // namespace

std::unique_ptr<Engine> scalar_engine(const std::string& target, const EngineSpec& spec) {
  switch (spec.precision) {
    case Precision::single:
      return scalar_engine_in<float, float>(target, spec);
    case Precision::mixed:
      return scalar_engine_in<float, double>(target, spec);
    default:
      return scalar_engine_in<double, double>(target, spec);
  }
}

}  // namespace lockstep::testing
