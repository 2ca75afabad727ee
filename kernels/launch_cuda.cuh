// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA launchers under the tile policy: one thread per chain, one warp per tile, the working rows in device
// memory. Every model runs this way; kernels/launch_registers.cuh is the faster way for a few models of fixed
// size.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "kernels/driver.hpp"

namespace lockstep {

/// Throws std::runtime_error with the place and CUDA's own text unless `status` is success.
inline void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                           cudaGetErrorString(status));
}
#define LOCKSTEP_CHECK_CUDA(call) ::lockstep::check_cuda((call), #call, __FILE__, __LINE__)

inline constexpr int kMaxBlockThreads = 256;

/// Threads per block, which no bit depends on: as many as are asked for, a power of two of whole warps; where
/// that is 0, one warp as long as that spreads the tiles over more multiprocessors, else four.
inline int block_threads(int tiles, int asked) {
  if (asked != 0 && asked != 32 && asked != 64 && asked != 128 && asked != kMaxBlockThreads)
    throw std::invalid_argument("blocks of a GPU have 32, 64, 128 or 256 threads, not " +
                                std::to_string(asked));
  if (asked > 0) return asked;
  int device = 0, multiprocessors = 0;
  LOCKSTEP_CHECK_CUDA(cudaGetDevice(&device));
  LOCKSTEP_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return (tiles <= 4 * multiprocessors ? 1 : 4) * kTile;
}

/// Enqueues kernel(arguments...) on a stream.
template <class... Parameters, class... Arguments>
void enqueue(cudaStream_t stream, dim3 blocks, int threads, void (*kernel)(Parameters...),
             const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.stream = stream;
  LOCKSTEP_CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Launches kernel(arguments...) with a thread for every chain of some tiles, padding included. Does not
/// wait. Launches, copies and `wait` belong to the stream of the calling host thread (cmake/cuda.cmake), so
/// that engines of several threads run side by side.
template <class R, class E, class... Parameters, class... Arguments>
void launch_chains(const BatchView<R, E>& b, int tiles, void (*kernel)(Parameters...),
                   const Arguments&... arguments) {
  const int threads = block_threads(tiles, b.block_threads), blocks = (tiles * kTile + threads - 1) / threads;
  enqueue(cudaStreamPerThread, blocks, threads, kernel, arguments...);
}

/// Returns when all that this host thread has launched is done.
inline void wait() { LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(cudaStreamPerThread)); }

/// The chain of this thread; at or beyond `tiles * kTile` there is none.
__device__ inline int this_chain() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

template <class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    initialize_tile_kernel(const __grid_constant__ Model model, const __grid_constant__ BatchView<R, E> b) {
  const int chain = this_chain();
  if (chain < b.tiles * kTile)
    initialize_lanes<R, E>(model, make_working_lanes<R, E>(model, b, chain, false));
}

template <class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    advance_tile_kernel(const __grid_constant__ Model model, const __grid_constant__ BatchView<R, E> b,
                        const __grid_constant__ LaunchSpec spec) {
  const int chain = this_chain();
  if (chain < b.tiles * kTile)
    advance_lanes<Transition, R, E>(model, spec, make_working_lanes<R, E>(model, b, chain, spec.covariance));
}

/// A thread for every pair of neighbouring levels of every unit.
template <class R, class E>
__global__ void __launch_bounds__(kMaxBlockThreads)
    swap_kernel(const __grid_constant__ BatchView<R, E> b, const __grid_constant__ ParameterLayout layout,
                int cache_rows, const __grid_constant__ StreamKey key, std::uint32_t iteration, int units) {
  const int pairs = b.levels / 2, thread = this_chain();
  if (thread < units * pairs)
    swap_levels(b, layout, cache_rows, key, {iteration, thread / pairs, thread % pairs});
}
template <class R, class E>
void swap_tiles(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows, const StreamKey& key,
                std::uint32_t iteration, int units) {
  const int tiles = (units * (b.levels / 2) + kTile - 1) / kTile;
  if (tiles == 0) return;
  launch_chains(b, tiles, swap_kernel<R, E>, b, layout, cache_rows, key, iteration, units);
  wait();
}

/// Gradient and energy of every chain's present position. Throws std::runtime_error on any CUDA error.
template <class R, class E, class Model>
void initialize_tiles(const Model& model, const BatchView<R, E>& b) {
  launch_chains(b, b.tiles, initialize_tile_kernel<R, E, Model>, model, b);
  wait();
}

/// Iterations [spec.begin, spec.end) of every chain in one launch; returns when they are done.
template <class Transition, class R, class E, class Model>
void advance_tiles(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) {
  launch_chains(b, b.tiles, advance_tile_kernel<Transition, R, E, Model>, model, b, spec);
  wait();
}

}  // namespace lockstep
