// SPDX-License-Identifier: Apache-2.0
// A first mistake in a transition: does not compile, and must say why in a few lines (tests/misuse/run.cmake).
#include "targets/transitions.hpp"

namespace lockstep {

struct Misspelt : WithoutGradients {
  static TransitionInfo info() { return {.name = "misspelt"}; }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> beginn(const Model&, const LaunchSpec&, const Draw<L>&, const W&) {
    return {};
  }
};

template const CpuTransitions& cpu_transitions<Misspelt>();

}  // namespace lockstep
