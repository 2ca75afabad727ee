// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuBLAS as far as the launch code calls it: matrix products as loops, on a stream.
#include "cuda_runtime.h"

#define LOCKSTEP_CUBLAS(function) function

struct cublasContext {
  cudaStream_t stream = nullptr;
};
using cublasHandle_t = cublasContext*;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasMath_t { CUBLAS_PEDANTIC_MATH = 2 };

inline const char* cublasGetStatusString(cublasStatus_t) { return "an unsupported value"; }
inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

// Defined in tests/emulation/cublas.cpp.
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                         cublasOperation_t of_b, int m, int n, int k, const float* alpha,
                                         const float* a, int lda, long long next_a, const float* b, int ldb,
                                         long long next_b, const float* beta, float* c, int ldc,
                                         long long next_c, int count);
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                         cublasOperation_t of_b, int m, int n, int k, const double* alpha,
                                         const double* a, int lda, long long next_a, const double* b, int ldb,
                                         long long next_b, const double* beta, double* c, int ldc,
                                         long long next_c, int count);
