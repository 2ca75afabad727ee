// SPDX-License-Identifier: Apache-2.0
#include "targets/engine_cpu_memory.hpp"

namespace lockstep {
template class EngineMemory<CpuBackend, float, float>;
template class EngineMemory<CpuBackend, float, double>;
template class EngineMemory<CpuBackend, double, double>;
}  // namespace lockstep
