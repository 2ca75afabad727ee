// SPDX-License-Identifier: Apache-2.0
// The transitions that own data on the device, in mixed precision.
#include "tests/support/own_data.hpp"

#include "targets/block_engine_cuda.hpp"

namespace lockstep::testing {

void add_own_data_transitions();
void add_own_data_transitions() {
  for_each_with_data([]<class Transition>() {
    static CudaTransitions of{};
    const auto fill = []<class R, class E, class Model>(const CudaTransition<R, E, Model>*& p) {
      static const CudaTransitionOf<Transition, R, E, Model> transition;
      p = &transition;
    };
    std::apply([&](auto&... p) { (fill(p), ...); }, std::get<CudaTransitionForModels<float, double>>(of));
    cuda_transition_registry()[Transition::info().name] = &of;
  });
}

}  // namespace lockstep::testing
