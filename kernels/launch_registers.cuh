// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA launchers under the register policy: as kernels/launch_cuda.cuh, with the working rows of a chain in
// its thread's registers. For models of compile-time size (Model::kRows > 0). A row that spilled to memory
// would undo the point, so files that instantiate these kernels are compiled with spills as errors
// (cmake/cuda.cmake).
#include "kernels/launch_cuda.cuh"

namespace lockstep {

// Blocks of 128 threads per multiprocessor that the compiler must leave room for: 4, 3 and 2 let a thread
// have 128, 168 and 255 registers. As many as no architecture spills with.
template <class R, class Model>
inline constexpr int kMinBlocks = Model::kRows * sizeof(R) <= 8    ? 4
                                  : Model::kRows * sizeof(R) <= 24 ? 3
                                                                   : 2;

template <class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads, (kMinBlocks<R, Model>))
    initialize_register_kernel(const __grid_constant__ Model model,
                               const __grid_constant__ BatchView<R, E> b) {
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  RegisterRows<R, E, Model> rows;
  initialize_lanes<R, E>(model, rows.lanes(model, b, chain, false));
}

template <class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads, (kMinBlocks<R, Model>))
    advance_register_kernel(const __grid_constant__ Model model, const __grid_constant__ BatchView<R, E> b,
                            const __grid_constant__ LaunchSpec spec) {
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  RegisterRows<R, E, Model> rows;
  advance_lanes<Transition, R, E>(model, spec, rows.lanes(model, b, chain, spec.covariance));
}

/// As initialize_tiles.
template <class R, class E, class Model>
void initialize_registers(const Model& model, const BatchView<R, E>& b) {
  launch_chains(b.tiles, initialize_register_kernel<R, E, Model>, model, b);
  LOCKSTEP_CHECK_CUDA(cudaDeviceSynchronize());
}

/// As advance_tiles.
template <class Transition, class R, class E, class Model>
void advance_registers(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) {
  launch_chains(b.tiles, advance_register_kernel<Transition, R, E, Model>, model, b, spec);
  LOCKSTEP_CHECK_CUDA(cudaDeviceSynchronize());
}

}  // namespace lockstep
