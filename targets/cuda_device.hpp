// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA device that engines run on: whether there is one, what it is, and what it can do at most.
// Only in builds with the CUDA back end (LOCKSTEP_CUDA).
#include <cstddef>
#include <optional>
#include <string>

namespace lockstep {

struct CudaDevice {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::size_t memory = 0;  // bytes
};

/// The current CUDA device, or nothing; then `why_not`, where given, says why. Never throws.
std::optional<CudaDevice> find_cuda_device(std::string* why_not = nullptr);

/// Whether an engine can run: there is a device, and this build holds code for it. Never throws.
bool cuda_available();

/// How many devices there are. Never throws.
int cuda_devices();

/// Where there are several devices, `number` (counted round and round) is the current one of this thread from here on.
/// Never throws.
void use_cuda_device(int number);

/// The device's name and compute capability, such as "NVIDIA H100 (sm_90)". Throws std::runtime_error without
/// one.
std::string cuda_device_name();

/// Tells a profiler that waits for it (ncu --profile-from-start off) that what counts begins here. Never throws.
void start_cuda_profiler();

/// Bytes of memory that are free on the device. Throws std::runtime_error on any CUDA error.
std::size_t cuda_free_memory();

/// Floating-point operations per second in float or double, a fused multiply-add counting as two: the best of
/// a few runs of a kernel of independent multiply-adds in registers. Throws std::runtime_error on any CUDA
/// error.
double measure_fma_peak(bool in_double);

/// Floating-point operations per second of cuBLAS's product of two square matrices, in float or double and
/// without tensor cores' roundings, as gradients use it: the best of a few. Throws std::runtime_error on any
/// error.
double measure_product_peak(bool in_double);

/// Bytes per second of a copy within device memory, what is read and what is written both counted: the best
/// of a few runs over 1 GiB, or an eighth of the free memory where that is less. Throws std::runtime_error on
/// any CUDA error.
double measure_copy_bandwidth();

}  // namespace lockstep
