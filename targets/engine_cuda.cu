// SPDX-License-Identifier: Apache-2.0
#include "targets/engine_cuda_memory.hpp"

namespace lockstep {
template class EngineMemory<CudaBackend, float, float>;
template class EngineMemory<CudaBackend, float, double>;
template class EngineMemory<CudaBackend, double, double>;
}  // namespace lockstep
