// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA launchers under the shared policy: one thread per chain, one warp per tile; position, momentum and gradient of a
// tile stand in a multiprocessor's shared memory, beside a copy of the density's numbers in their precision. Those in the
// other precision, for energies, stay in the kernel's parameters. For densities whose numbers and rows fit; others go by
// blocks (kernels/block_cuda.cuh). What was measured: docs/decisions/0020-gpu.md.
#include <optional>

#include "kernels/launch_cuda.cuh"

namespace lockstep {

/// The numbers of a density's arrays, one after another: with all else of a launch they must stay below 32,764 bytes.
inline constexpr int kMostNumbers = 1024;
struct DensityNumbers {
  int count = 0;
  alignas(16) float f[kMostNumbers];
  double d[kMostNumbers];

  template <class R>
  LOCKSTEP_FN const R* get() const {
    if constexpr (std::is_same_v<R, float>) {
      return f;
    } else {
      return d;
    }
  }
};

/// Those of a density on the host, or none where they do not fit.
template <class Density>
std::optional<DensityNumbers> numbers_of(Density density) {
  int total = 0;
  density.arrays([&](ParameterArray&, int count) { total += count; });
  if (total > kMostNumbers) return std::nullopt;
  DensityNumbers numbers = {};
  numbers.count = total;
  int at = 0;
  density.arrays([&](const ParameterArray& a, int count) {
    std::copy_n(a.f, count, numbers.f + at);
    std::copy_n(a.d, count, numbers.d + at);
    at += count;
  });
  return numbers;
}
/// The model with its density's arrays there.
template <class Model>
__device__ __forceinline__ Model with_arrays(Model model, const float* f, const double* d) {
  int at = 0;
  model.density.arrays([&](ParameterArray& a, int count) {
    a.f = f + at;
    a.d = d + at;
    at += count;
  });
  return model;
}

#ifndef LOCKSTEP_SHARED_MEMORY  // tests/emulation has its own
#define LOCKSTEP_SHARED_MEMORY(name) extern __shared__ float4 name[]
#endif

/// Elements of R that a warp has of its block's memory: numbers, to whole lines of banks, and three times so many rows.
template <class R>
LOCKSTEP_FN int shared_elements(int numbers, int rows) {
  return (numbers + kTile - 1) / kTile * kTile + 3 * rows * kTile;
}
/// Copies the numbers to where the warp has them, and returns when all of its threads have.
template <class R>
__device__ __forceinline__ void copy_numbers(const DensityNumbers& numbers, R* to) {
#ifdef __CUDA_ARCH__
  for (int i = int(threadIdx.x) % kTile; i < numbers.count; i += kTile) to[i] = numbers.get<R>()[i];
  __syncwarp();
#else  // the emulation's threads run one after another
  std::copy_n(numbers.get<R>(), numbers.count, to);
#endif
}

/// Calls f(model, lanes) for the chain of this thread.
template <class R, class E, class Model, class F>
__device__ __forceinline__ void in_shared_memory(const Model& given, const DensityNumbers& numbers,
                                                 const BatchView<R, E>& b, bool covariance, F f) {
  LOCKSTEP_SHARED_MEMORY(pool);
  const int thread = int(threadIdx.x) % kTile, warp = int(threadIdx.x) / kTile, chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  R* const mine = reinterpret_cast<R*>(pool) + warp * shared_elements<R>(numbers.count, given.rows());
  copy_numbers(numbers, mine);
  const auto arrays = [&](auto precision) {
    using P = decltype(precision);
    if constexpr (std::is_same_v<P, R>) {
      return static_cast<const P*>(mine);
    } else {
      return numbers.get<P>();
    }
  };
  const Model model = with_arrays(given, arrays(float()), arrays(double()));
  const TileRows<R> rows{mine + shared_elements<R>(numbers.count, 0) + thread};
  f(model, make_working_lanes<R, E>(model, b, chain, covariance, rows));
}

/// Threads of a block at most: more could not have all the registers that they want.
inline constexpr int kMostSharedThreads = 128;

template <class R, class E, class Model>
__global__ void __launch_bounds__(kMostSharedThreads)
    initialize_shared_kernel(const __grid_constant__ Model given,
                             const __grid_constant__ DensityNumbers numbers,
                             const __grid_constant__ BatchView<R, E> b) {
  in_shared_memory(given, numbers, b, false,
                   [&](const Model& model, const auto& w) { initialize_lanes<R, E>(model, w); });
}

template <class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMostSharedThreads)
    advance_shared_kernel(const __grid_constant__ Model given, const __grid_constant__ DensityNumbers numbers,
                          const __grid_constant__ BatchView<R, E> b,
                          const __grid_constant__ LaunchSpec spec) {
  in_shared_memory(given, numbers, b, spec.covariance, [&](const Model& model, const auto& w) {
    advance_lanes<Transition, R, E>(model, spec, w);
  });
}

/// What a warp may have, so that a multiprocessor holds four at least.
inline std::size_t most_shared_bytes() {
  constexpr int kReserved = 1024;  // of a block
  int device = 0, bytes = 0;
  LOCKSTEP_CHECK_CUDA(cudaGetDevice(&device));
  LOCKSTEP_CHECK_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  return std::size_t(bytes / 4 - kReserved);
}
template <class R>
std::size_t shared_bytes(const DensityNumbers& numbers, int rows) {
  return sizeof(R) * shared_elements<R>(numbers.count, rows);
}

/// Launches kernel(model, numbers, batch, more...) with a thread for every chain, in blocks of a warp, or of as many as are
/// asked for and have room. Does not wait.
template <class R, class E, class Model, class Kernel, class... More>
void launch_shared(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b, Kernel kernel,
                   const More&... more) {
  const std::size_t of_warp = shared_bytes<R>(numbers, model.rows());
  int threads = block_threads(b.tiles, b.block_threads == 0 ? kTile : b.block_threads);
  while (threads > kMostSharedThreads || (threads > kTile && threads / kTile * of_warp > most_shared_bytes()))
    threads /= 2;
  const std::size_t bytes = threads / kTile * of_warp;
  LOCKSTEP_CHECK_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes)));
  enqueue({cudaStreamPerThread, bytes}, (b.tiles * kTile + threads - 1) / threads, threads, kernel, model,
          numbers, b, more...);
}

/// Gradient and energy of every chain's present position. Throws std::runtime_error on any CUDA error.
template <class R, class E, class Model>
void initialize_shared(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b) {
  launch_shared(model, numbers, b, initialize_shared_kernel<R, E, Model>);
  wait();
}

/// Iterations [spec.begin, spec.end) of every chain in one launch; returns when they are done.
template <class Transition, class R, class E, class Model>
void advance_shared(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b,
                    const LaunchSpec& spec) {
  launch_shared(model, numbers, b, advance_shared_kernel<Transition, R, E, Model>, spec);
  wait();
}

}  // namespace lockstep
