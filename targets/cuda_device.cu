// SPDX-License-Identifier: Apache-2.0
#include "targets/cuda_device.hpp"

#include <cuda_profiler_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <memory>

#include "kernels/launch_cuda.cuh"
#include "targets/cublas.cuh"

namespace lockstep {
namespace {

__global__ void touch_kernel() {}

constexpr int kChainsPerThread = 16, kRounds = 4096, kThreads = 256;

/// Independent multiply-adds: enough in flight per thread to hide their latency at full occupancy and well
/// below.
template <class R>
__global__ void __launch_bounds__(kThreads) fma_kernel(R* out, R factor, R addend) {
  R a[kChainsPerThread];
#pragma unroll
  for (int k = 0; k < kChainsPerThread; ++k) a[k] = static_cast<R>(threadIdx.x + k);
#pragma unroll 4
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int k = 0; k < kChainsPerThread; ++k) a[k] = ::fma(a[k], factor, addend);
  }
  R sum = 0;
#pragma unroll
  for (int k = 0; k < kChainsPerThread; ++k) sum += a[k];
  if (sum == R(-1)) *out = sum;  // never; keeps the arithmetic from being dropped
}

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) { LOCKSTEP_CHECK_CUDA(cudaMalloc(&p_, bytes)); }
  ~DeviceMemory() { cudaFree(p_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* get() const { return p_; }

 private:
  void* p_ = nullptr;
};

class Event {
 public:
  Event() { LOCKSTEP_CHECK_CUDA(cudaEventCreate(&e_)); }
  ~Event() { cudaEventDestroy(e_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record() { LOCKSTEP_CHECK_CUDA(cudaEventRecord(e_)); }
  /// Seconds from `start` to this event, once it has happened.
  double seconds_since(const Event& start) const {
    float ms = 0;
    LOCKSTEP_CHECK_CUDA(cudaEventSynchronize(e_));
    LOCKSTEP_CHECK_CUDA(cudaEventElapsedTime(&ms, start.e_, e_));
    return 1e-3 * ms;
  }

 private:
  cudaEvent_t e_ = nullptr;
};

/// Seconds of the fastest of a few runs, after one that is not counted.
template <class Run>
double fastest(Run run) {
  Event start, stop;
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 6; ++repeat) {
    start.record();
    run();
    stop.record();
    const double seconds = stop.seconds_since(start);
    if (repeat > 0) best = std::min(best, seconds);
  }
  return best;
}

CudaDevice require_device() {
  std::string why_not;
  const auto device = find_cuda_device(&why_not);
  if (!device) throw std::runtime_error("no CUDA device: " + why_not);
  return *device;
}

}  // namespace

std::optional<CudaDevice> find_cuda_device(std::string* why_not) {
  int count = 0, index = 0;
  cudaDeviceProp properties;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) status = cudaGetDevice(&index);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, index);
  if (status != cudaSuccess) {
    cudaGetLastError();  // it has been dealt with: later checks must not find it
    if (why_not != nullptr) *why_not = cudaGetErrorString(status);
    return std::nullopt;
  }
  return CudaDevice{properties.name, properties.major, properties.minor, properties.multiProcessorCount,
                    properties.totalGlobalMem};
}

bool cuda_available() {
  if (!find_cuda_device()) return false;
  // A device older than every architecture of this build has no code to run.
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, touch_kernel) == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

int cuda_devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  cudaGetLastError();  // whether there is a usable device is asked elsewhere
  return count;
}

void use_cuda_device(int number) {
  const int count = cuda_devices();
  if (count > 1) cudaSetDevice(number % count);
  cudaGetLastError();
}

std::string cuda_device_name() {
  const CudaDevice device = require_device();
  return device.name + " (sm_" + std::to_string(device.major) + std::to_string(device.minor) + ")";
}

void start_cuda_profiler() {
  cudaProfilerStart();
  cudaGetLastError();  // there may be no profiler
}

std::size_t cuda_free_memory() {
  std::size_t free_bytes = 0, total = 0;
  LOCKSTEP_CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

double measure_fma_peak(bool in_double) {
  const int blocks = 16 * require_device().multiprocessors;
  const DeviceMemory out(sizeof(double));
  const double seconds = fastest([&] {
    if (in_double)
      enqueue(cudaStreamPerThread, blocks, kThreads, fma_kernel<double>, static_cast<double*>(out.get()),
              0.999, 0.5);
    else
      enqueue(cudaStreamPerThread, blocks, kThreads, fma_kernel<float>, static_cast<float*>(out.get()),
              0.999f, 0.5f);
  });
  return 2.0 * kChainsPerThread * kRounds * kThreads * blocks / seconds;
}

void* cublas_symbol(const char* name) {
  static void* const library = dlopen(LOCKSTEP_CUBLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found != nullptr) return found;
  const char* const why = dlerror();
  throw std::runtime_error(
      std::string("cuBLAS, which makes matrix products on a GPU, cannot be loaded: ") +
      (why != nullptr ? why : LOCKSTEP_CUBLAS_LIBRARY) +
      ". It comes with the CUDA toolkit; LD_LIBRARY_PATH says where else to look for it");
}

double measure_product_peak(bool in_double) {
  constexpr int n = 4096;
  constexpr std::size_t numbers = std::size_t(n) * n;
  require_device();
  const DeviceMemory a(8 * numbers), b(8 * numbers), c(8 * numbers);
  for (const DeviceMemory* m : {&a, &b})
    LOCKSTEP_CHECK_CUDA(cudaMemset(m->get(), 0x3f, 8 * numbers));  // numbers below 1
  cublasHandle_t handle = nullptr;
  LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasCreate)(&handle));
  const std::unique_ptr<cublasContext, decltype(&cublasDestroy)> owner(handle,
                                                                       LOCKSTEP_CUBLAS(cublasDestroy));
  LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasSetStream)(handle, cudaStreamPerThread));
  LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasSetMathMode)(handle, CUBLAS_PEDANTIC_MATH));
  const auto multiply = [&](auto gemm, auto one) {
    using R = decltype(one);
    const R zero = 0;
    LOCKSTEP_CHECK_CUBLAS(gemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one,
                               static_cast<const R*>(a.get()), n, static_cast<const R*>(b.get()), n, &zero,
                               static_cast<R*>(c.get()), n));
  };
  const double seconds = fastest([&] {
    in_double ? multiply(LOCKSTEP_CUBLAS(cublasDgemm), 1.0) : multiply(LOCKSTEP_CUBLAS(cublasSgemm), 1.0f);
  });
  return 2.0 * n * double(numbers) / seconds;
}

double measure_copy_bandwidth() {
  require_device();
  const std::size_t bytes = std::min(std::size_t(1) << 30, cuda_free_memory() / 8);
  const DeviceMemory from(bytes), to(bytes);
  LOCKSTEP_CHECK_CUDA(cudaMemset(from.get(), 0, bytes));
  const double seconds = fastest(
      [&] { LOCKSTEP_CHECK_CUDA(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice)); });
  return 2.0 * bytes / seconds;
}

}  // namespace lockstep
