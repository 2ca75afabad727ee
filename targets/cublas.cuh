// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cublas_v2.h>

#include <stdexcept>
#include <string>

namespace lockstep {

/// Throws std::runtime_error with the place and cuBLAS's own text unless `status` is success.
inline void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                           cublasGetStatusString(status));
}
#define LOCKSTEP_CHECK_CUBLAS(call) ::lockstep::check_cublas((call), #call, __FILE__, __LINE__)

}  // namespace lockstep
