// SPDX-License-Identifier: Apache-2.0
#pragma once
// How engines in other lanes are made, for those files alone that compile them (lane_engines_*.cpp).
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/adiabatic.hpp"
#include "kernels/darting.hpp"
#include "kernels/lbfgs.hpp"
#include "kernels/regeneration.hpp"
#include "targets/all_transitions.hpp"
#include "targets/block_engine.hpp"
#include "tests/support/lane_engines.hpp"
#include "tests/support/own_data.hpp"

namespace lockstep::testing {
template <class L, class E, class Model>
const BlockTransition<L, E, Model>& transition_named(const std::string& name) {
  static const std::map<std::string, const BlockTransition<L, E, Model>*> all = [] {
    std::map<std::string, const BlockTransition<L, E, Model>*> compiled;
    const auto add = [&]<class Transition>() {
      static const BlockTransitionOf<Transition, L, E, Model> transition;
      compiled[Transition::info().name] = &transition;
    };
    for_each_transition(add);
    if constexpr (ScalarLane<L>) {
      add.template operator()<Adiabatic>();
    } else {
      add.template operator()<Lbfgs>();
      add.template operator()<Darting>();
      add.template operator()<Regeneration>();
    }
    if constexpr (!std::is_same_v<scalar_t<L>, scalar_t<E>>) for_each_with_data(add);
    return compiled;
  }();
  const auto found = all.find(name);
  if (found == all.end()) throw std::logic_error("no transition " + name + " in these lanes");
  return *found->second;
}

template <class L, class E>
std::unique_ptr<Engine> lane_engine(const EngineSpec& spec, OpaqueDensity density,
                                    BlockDensityMaker<scalar_t<L>, scalar_t<E>> make) {
  return with_opaque_model(spec.model, [&]<class Model>() -> std::unique_ptr<Engine> {
    std::vector<const BlockTransition<L, E, Model>*> transitions;
    for (const TransitionInfo* info : transitions_of(spec))
      transitions.push_back(&transition_named<L, E, Model>(info->name));
    return std::make_unique<BlockEngine<L, E, Model>>(make_model<Model>(density, spec.model), spec,
                                                      transitions, std::move(make));
  });
}

}  // namespace lockstep::testing
