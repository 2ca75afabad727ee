// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all CUDA launchers share, and the swaps of parallel tempering. kernels/launch_shared.cuh keeps a chain's working rows
// in shared memory, kernels/launch_registers.cuh, for a few models of fixed size, in registers.
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

inline int multiprocessors() {
  int device = 0, count = 0;
  LOCKSTEP_CHECK_CUDA(cudaGetDevice(&device));
  LOCKSTEP_CHECK_CUDA(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

/// Threads per block, which no bit depends on: as many as are asked for, a power of two of whole warps; where
/// that is 0, one warp as long as that spreads the tiles over more multiprocessors, else four.
inline int block_threads(int tiles, int asked) {
  if (asked != 0 && asked != 32 && asked != 64 && asked != 128 && asked != kMaxBlockThreads)
    throw std::invalid_argument("blocks of a GPU have 32, 64, 128 or 256 threads, not " +
                                std::to_string(asked));
  if (asked > 0) return asked;
  return (tiles <= 4 * multiprocessors() ? 1 : 4) * kTile;
}

/// Where a kernel runs, and the bytes of shared memory that each of its blocks has.
struct OnStream {
  cudaStream_t stream;
  std::size_t shared = 0;
  OnStream(cudaStream_t stream, std::size_t shared = 0) : stream(stream), shared(shared) {}
};
/// Enqueues kernel(arguments...) on a stream.
template <class... Parameters, class... Arguments>
void enqueue(const OnStream& on, dim3 blocks, int threads, void (*kernel)(Parameters...),
             const Arguments&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = on.shared;
  config.stream = on.stream;
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

}  // namespace lockstep
