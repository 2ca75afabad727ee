// SPDX-License-Identifier: Apache-2.0
#pragma once
// LOCKSTEP_DEVICE_CODE: this file is being compiled for a device, and leaves out what is for the host alone.
#ifdef __CUDACC__
#define LOCKSTEP_DEVICE_CODE
#endif

namespace lockstep {
/// Whether these instructions are a device's; of a file compiled for one, the host's are compiled as well.
#ifdef __CUDA_ARCH__
inline constexpr bool kOnDevice = true;
#else
inline constexpr bool kOnDevice = false;
#endif
}  // namespace lockstep
