// SPDX-License-Identifier: Apache-2.0
#pragma once
// The transitions of kernels/transitions.list as the CPU's engines see them: compiled for each model and precision, for
// no density.
#include <tuple>

// First: complaints say by how many others it came.
#include "kernels/transition_function.hpp"

#include "kernels/block_cpu.hpp"
#include "targets/bases.hpp"
#include "targets/models.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

/// One transition for every model, in one precision.
template <class R, class E>
using CpuTransition =
    std::tuple<const BlockTransition<MachinePack<R>, MachineEnergies<R, E>, OpaquePlain>*,
               const BlockTransition<MachinePack<R>, MachineEnergies<R, E>, OpaquePath>*,
               const BlockTransition<MachinePack<R>, MachineEnergies<R, E>, OpaqueExtended>*>;

/// In every precision. What EngineSpec::transition points to is one of these.
struct CpuTransitions : TransitionInfo {
  std::tuple<CpuTransition<float, float>, CpuTransition<float, double>, CpuTransition<double, double>> of;
};

template <class Transition>
const CpuTransitions& cpu_transitions() {
  static const CpuTransitions all = [] {
    CpuTransitions t;
    if constexpr (check_transition<Transition, OpaquePath>()) {
      const auto fill = []<class L, class E, class Model>(const BlockTransition<L, E, Model>*& p) {
        static const BlockTransitionOf<Transition, L, E, Model> transition;
        p = &transition;
      };
      t = {checked_info<Transition>(), {}};
      t.known_steps[0] = known_steps<Transition, float>;
      t.known_steps[1] = known_steps<Transition, double>;
      t.alone = t.alone || Transition::kSelfEnding;
      std::apply(
          [&](auto&... precision) { (std::apply([&](auto&... p) { (fill(p), ...); }, precision), ...); },
          t.of);
    }
    return t;
  }();
  return all;
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
