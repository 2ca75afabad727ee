// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA launchers under the register policy: as kernels/launch_shared.cuh, with the working rows of a chain in
// its thread's registers. For models of compile-time size (Model::kRows > 0). A row that spilled to memory
// would undo the point, so files that instantiate these kernels are compiled with spills as errors
// (cmake/cuda.cmake).
#include "kernels/launch_shared.cuh"

namespace lockstep {

// Registers that a thread may have, which leave room for 512, 384 and 256 threads on a multiprocessor: as few
// as no architecture spills with.
template <class R, class Model>
inline constexpr int kRegisters = Model::kRows * sizeof(R) <= 8    ? 128
                                  : Model::kRows * sizeof(R) <= 24 ? 168
                                                                   : 255;

template <class R, class E, class Model>
__global__ void __maxnreg__((kRegisters<R, Model>))
    initialize_register_kernel(const __grid_constant__ Model given,
                               const __grid_constant__ DensityNumbers numbers,
                               const __grid_constant__ BatchView<R, E> b) {
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  const Model model = with_arrays(given, numbers.f, numbers.d);
  RegisterRows<R, E, Model> rows;
  initialize_lanes<R, E>(model, rows.lanes(model, b, chain, false));
}

template <class Transition, class R, class E, class Model>
__global__ void __maxnreg__((kRegisters<R, Model>))
    advance_register_kernel(const __grid_constant__ Model given,
                            const __grid_constant__ DensityNumbers numbers,
                            const __grid_constant__ BatchView<R, E> b,
                            const __grid_constant__ LaunchSpec spec) {
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  const Model model = with_arrays(given, numbers.f, numbers.d);
  RegisterRows<R, E, Model> rows;
  advance_lanes<Transition, R, E>(model, spec, rows.lanes(model, b, chain, spec.covariance));
}

/// As initialize_shared.
template <class R, class E, class Model>
void initialize_registers(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b) {
  launch_chains(b, b.tiles, initialize_register_kernel<R, E, Model>, model, numbers, b);
  wait();
}

/// As advance_shared.
template <class Transition, class R, class E, class Model>
void advance_registers(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b,
                       const LaunchSpec& spec) {
  launch_chains(b, b.tiles, advance_register_kernel<Transition, R, E, Model>, model, numbers, b, spec);
  wait();
}

}  // namespace lockstep
