// SPDX-License-Identifier: Apache-2.0
#include <cublas_v2.h>

#include <algorithm>
#include <vector>

namespace {

/// sum += y column; the sanitizer has seen to the whole column.
template <class R>
__attribute__((no_sanitize_address)) void add(R* sum, const R* column, R y, int rows) {
  if (__asan_region_is_poisoned(const_cast<R*>(column), rows * sizeof(R)) != nullptr)
    emulated::Device::the().complain("a product reads beyond its matrix");
  for (int i = 0; i < rows; ++i) sum[i] += column[i] * y;
}

/// c = alpha a b + beta c, all by columns; with CUBLAS_OP_T, the transpose of b. That of a is asked for nowhere.
template <class R>
cublasStatus_t multiply(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                        int k, const R* alpha, const R* a, int lda, const R* b, int ldb, const R* beta, R* c,
                        int ldc) {
  if (of_a != CUBLAS_OP_N || lda < m || ldb < (of_b == CUBLAS_OP_N ? k : n) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream->enqueue("a product", [=, alpha = *alpha, beta = *beta] {
    std::vector<R> sum(m);
    for (int j = 0; j < n; ++j) {
      std::fill(sum.begin(), sum.end(), R(0));
      for (int l = 0; l < k; ++l)
        add(sum.data(), a + std::size_t(l) * lda,
            of_b == CUBLAS_OP_N ? b[l + std::size_t(j) * ldb] : b[j + std::size_t(l) * ldb], m);
      for (int i = 0; i < m; ++i) {
        R& to = c[i + std::size_t(j) * ldc];
        to = alpha * sum[i] + (beta == 0 ? R(0) : beta * to);  // with beta = 0, what is there is not read
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}

/// The same for matrices that follow each other.
template <class R>
cublasStatus_t multiply_all(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                            int n, int k, const R* alpha, const R* a, int lda, long long next_a, const R* b,
                            int ldb, long long next_b, const R* beta, R* c, int ldc, long long next_c,
                            int count) {
  auto status = count < 1 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; ++i)
    status = multiply(handle, of_a, of_b, m, n, k, alpha, a + i * next_a, lda, b + i * next_b, ldb, beta,
                      c + i * next_c, ldc);
  return status;
}

}  // namespace

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                         cublasOperation_t of_b, int m, int n, int k, const float* alpha,
                                         const float* a, int lda, long long next_a, const float* b, int ldb,
                                         long long next_b, const float* beta, float* c, int ldc,
                                         long long next_c, int count) {
  return multiply_all(handle, of_a, of_b, m, n, k, alpha, a, lda, next_a, b, ldb, next_b, beta, c, ldc,
                      next_c, count);
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a,
                                         cublasOperation_t of_b, int m, int n, int k, const double* alpha,
                                         const double* a, int lda, long long next_a, const double* b, int ldb,
                                         long long next_b, const double* beta, double* c, int ldc,
                                         long long next_c, int count) {
  return multiply_all(handle, of_a, of_b, m, n, k, alpha, a, lda, next_a, b, ldb, next_b, beta, c, ldc,
                      next_c, count);
}
