// SPDX-License-Identifier: Apache-2.0
#pragma once
// cuBLAS's matrix products as loops, on a stream.
#include <vector>

#include "cuda_runtime.h"

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

namespace emulated {
/// c = alpha a b + beta c, all by columns; with CUBLAS_OP_T, the transpose.
template <class R>
cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                        const R* alpha, const R* a, int lda, const R* b, int ldb, const R* beta, R* c, int ldc) {
  if (lda < (of_a == CUBLAS_OP_N ? m : k) || ldb < (of_b == CUBLAS_OP_N ? k : n) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto at = [](cublasOperation_t of, const R* matrix, int stride, int row, int column) {
    return of == CUBLAS_OP_N ? matrix[row + std::size_t(column) * stride] : matrix[column + std::size_t(row) * stride];
  };
  handle->stream->enqueue("a product", [=, alpha = *alpha, beta = *beta] {
    std::vector<R> sum(m);
    for (int j = 0; j < n; ++j) {
      std::fill(sum.begin(), sum.end(), R(0));
      for (int l = 0; l < k; ++l) {
        const R y = at(of_b, b, ldb, l, j);
        for (int i = 0; i < m; ++i) sum[i] += at(of_a, a, lda, i, l) * y;
      }
      for (int i = 0; i < m; ++i) {
        R& to = c[i + std::size_t(j) * ldc];
        to = alpha * sum[i] + (beta == 0 ? R(0) : beta * to);  // with beta = 0, what is there is not read
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace emulated

inline cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                  int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                                  const float* beta, float* c, int ldc) {
  return emulated::multiply(handle, of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                                  int k, const double* alpha, const double* a, int lda, const double* b, int ldb,
                                  const double* beta, double* c, int ldc) {
  return emulated::multiply(handle, of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
