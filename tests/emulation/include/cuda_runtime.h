// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA's runtime as far as the launch code calls it, on the device of tests/emulation/device.hpp. No barriers: the kernels
// have none, and their threads run one after another. Shared memory is the host's, of a block's size to the byte.
#include <math.h>  // ::exp and the others for float too, as CUDA has them
#include <pmmintrin.h>

#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulation/device.hpp"

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline  // calls stay calls: a third of the time to compile
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorInvalidConfiguration,
  cudaErrorMemoryAllocation,
  cudaErrorStreamCaptureUnsupported,
  cudaErrorIllegalAddress
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum {
  cudaStreamNonBlocking = 1,
  cudaStreamCaptureModeRelaxed = 2,
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
inline constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) float4 {
  float x, y, z, w;
};
namespace emulated {
inline constinit thread_local float4* shared_memory = nullptr;
}
#define LOCKSTEP_SHARED_MEMORY(name) float4* const name = ::emulated::shared_memory

using cudaStream_t = emulated::Stream*;
using cudaGraph_t = emulated::Recording*;
using cudaGraphExec_t = emulated::Recording*;
#define cudaStreamPerThread (&::emulated::stream_of_this_thread)

namespace emulated {
/// What a call gives that does what it is asked to.
inline cudaError_t status() { return Device::the().broken ? cudaErrorIllegalAddress : cudaSuccess; }
}  // namespace emulated

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      return "invalid argument";
  }
}
inline cudaError_t cudaPeekAtLastError() { return emulated::status(); }
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return emulated::status();
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int) {
  // Few multiprocessors, so that small batches have blocks of several warps.
  *value = attribute == cudaDevAttrMultiProcessorCount ? 2 : 160 << 10;
  return emulated::status();
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, int, int bytes) {
  return bytes <= 160 << 10 ? emulated::status() : cudaErrorInvalidValue;
}

inline cudaError_t cudaMalloc(void** p, std::size_t size) {
  *p = nullptr;
  if (emulated::status() != cudaSuccess || size == 0) return emulated::status();
  *p = emulated::Device::the().allocate(size);
  return *p == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** p, std::size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(p), size);
}
/// When all streams are done.
inline cudaError_t cudaFree(void* p) {
  auto& device = emulated::Device::the();
  std::lock_guard lock(device.mutex);
  for (emulated::Stream* stream : device.streams) stream->run();
  if (p != nullptr && !device.free(p)) return cudaErrorInvalidValue;
  return emulated::status();
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->recording != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->synchronize();
  return emulated::status();
}

inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t size, cudaStream_t stream) {
  stream->enqueue("a memset", [=] { emulated::Device::the().set(static_cast<char*>(p), value, size); });
  return emulated::status();
}
inline cudaError_t cudaMemset(void* p, int value, std::size_t size) {
  return cudaMemsetAsync(p, value, size, cudaStreamPerThread);
}
/// The host's memory is read or written when the copy is made: as if it were pinned, which is the strictest. Until then
/// what is to be there must not be looked at.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  const bool to_host = kind == cudaMemcpyDeviceToHost;
  if (to_host) ASAN_POISON_MEMORY_REGION(to, size);
  stream->enqueue("a copy", [=] {
    if (to_host) ASAN_UNPOISON_MEMORY_REGION(to, size);
    std::memcpy(to, from, size);
  });
  return emulated::status();
}
/// To the device, it returns when the host's memory may be used again, which is sooner than it is there.
inline cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  const auto copy = [=](void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch) {
    for (std::size_t k = 0; k < height; ++k)
      std::memcpy(static_cast<char*>(to) + k * to_pitch, static_cast<const char*>(from) + k * from_pitch,
                  width);
  };
  if (kind == cudaMemcpyHostToDevice) {
    std::vector<char> staged(width * height);
    copy(staged.data(), width, from, from_pitch);
    cudaStreamPerThread->enqueue("a copy from the host", [=, staged = std::move(staged)] {
      copy(to, to_pitch, staged.data(), width);
    });
    return emulated::status();
  }
  cudaStreamPerThread->enqueue("a copy", [=] { copy(to, to_pitch, from, from_pitch); });
  return kind == cudaMemcpyDeviceToHost ? cudaStreamSynchronize(cudaStreamPerThread) : emulated::status();
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
  return cudaMemcpy2D(to, size, from, size, size, 1, kind);
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new emulated::Stream;
  return emulated::status();
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return emulated::status();
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int) {
  stream->recording = std::make_unique<emulated::Recording>();
  return emulated::status();
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->recording.release();
  return emulated::status();
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned) {
  *ready = new emulated::Recording(*graph);
  return emulated::status();
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return emulated::status();
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const auto& [name, body] : *graph) stream->enqueue(name, body);
  return emulated::status();
}

inline int atomicMax(int* to, int value) {
  const int old = *to;
  if (value > old) *to = value;
  return old;
}
inline int atomicAdd(int* to, int value) {
  const int old = *to;
  *to += value;
  return old;
}

struct cudaLaunchConfig_t {
  dim3 gridDim = 0, blockDim = 0;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

/// No order of blocks is promised: they run backwards. As the CPU's launchers, with subnormals as zero.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const dim3 grid = config->gridDim, block = config->blockDim;
  if (block.x == 0 || block.x > 1024 || grid.x == 0 || grid.x > 2147483647u || grid.y == 0 || grid.y > 65535u)
    return cudaErrorInvalidConfiguration;
  std::tuple<Parameters...> given(std::forward<Arguments>(arguments)...);
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  // One by one, and without what fills up the room in them: it may be anything.
  std::apply(
      [](auto&... one) {
        ((__builtin_clear_padding(&one), emulated::Device::the().check_arguments(&one, sizeof one)), ...);
      },
      given);
  const std::size_t shared = config->dynamicSmemBytes;
  config->stream->enqueue("a kernel", [=] {
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
    gridDim = grid;
    blockDim = block;
    std::apply(
        [&](const Parameters&... parameters) {
          for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
            for (unsigned x = grid.x; x-- > 0;) {
              const std::unique_ptr<char[]> memory(new char[shared]);
              std::memset(memory.get(), 0x7f, shared);
              emulated::shared_memory = reinterpret_cast<float4*>(memory.get());
              blockIdx.x = x;
              for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kernel(parameters...);
            }
        },
        given);
    _mm_setcsr(mode);
  });
  return emulated::status();
}
