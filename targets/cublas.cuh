// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products on a GPU, by cuBLAS.
#include <cublas_v2.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "kernels/device_array.cuh"
#include "kernels/graph_cuda.cuh"

namespace lockstep {

/// The function of that name in cuBLAS's library, which is loaded when first asked for: loading takes a tenth of a second
/// and 200 MiB, which every command would pay for. Throws std::runtime_error where it is not to be had.
void* cublas_symbol(const char* name);

#ifndef LOCKSTEP_CUBLAS  // the emulation has functions of its own
#define LOCKSTEP_CUBLAS_TEXT(name) #name
#define LOCKSTEP_CUBLAS(function)                                                         \
  ([] {                                                                                   \
    static void* const found = ::lockstep::cublas_symbol(LOCKSTEP_CUBLAS_TEXT(function)); \
    return reinterpret_cast<decltype(&function)>(found);                                  \
  }())
#endif

/// Throws std::runtime_error with the place, cuBLAS's own text and CUDA's unless `status` is success.
inline void check_cublas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                           LOCKSTEP_CUBLAS(cublasGetStatusString)(status) +
                           " (CUDA: " + cudaGetErrorString(cudaPeekAtLastError()) + ")");
}
#define LOCKSTEP_CHECK_CUBLAS(call) ::lockstep::check_cublas((call), #call, __FILE__, __LINE__)

/// Matrix products on one stream, by the same algorithm whenever the shapes are the same: cuBLAS adds in an
/// order of its own choice, which depends on the shapes and on its workspace. No tensor cores where they
/// would round.
class Cublas {
 public:
  explicit Cublas(cudaStream_t stream) : workspace_(kWorkspace) {
    cublasHandle_t handle = nullptr;
    LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasCreate)(&handle));
    handle_.reset(handle);
    LOCKSTEP_CHECK_CUBLAS(
        LOCKSTEP_CUBLAS(cublasSetStream)(handle, stream));  // first: it takes a workspace away
    LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasSetWorkspace)(handle, workspace_.data(), kWorkspace));
    LOCKSTEP_CHECK_CUBLAS(LOCKSTEP_CUBLAS(cublasSetMathMode)(handle, CUBLAS_PEDANTIC_MATH));
  }

  struct Shape {
    int rows, columns, inner;
  };
  /// So many products with one b: elements from one a, and one c, to the next.
  struct Batch {
    int count;
    std::ptrdiff_t a, c;
  };
  /// c = a b, or a b' for `transposed`: a [inner][rows], c [columns][rows], and b [columns][inner], or
  /// [inner][columns].
  template <class R>
  void multiply(bool transposed, const Shape& shape, const R* a, const R* b, R* c,
                const Batch& batch = {1, 0, 0}) {
    const R one = 1, zero = 0;
    const auto op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int stride = transposed ? shape.columns : shape.inner;
    const auto gemm = [&](auto function) {
      LOCKSTEP_CHECK_CUBLAS(function(handle_.get(), CUBLAS_OP_N, op, shape.rows, shape.columns, shape.inner,
                                     &one, a, shape.rows, batch.a, b, stride, 0, &zero, c, shape.rows,
                                     batch.c, batch.count));
    };
    if constexpr (std::is_same_v<R, float>) {
      gemm(LOCKSTEP_CUBLAS(cublasSgemmStridedBatched));
    } else {
      gemm(LOCKSTEP_CUBLAS(cublasDgemmStridedBatched));
    }
  }

 private:
  static constexpr std::size_t kWorkspace = 32 << 20;  // what NVIDIA recommends for its larger devices
  struct Destroy {
    void operator()(cublasHandle_t handle) const {
      const auto alone = capturing();
      LOCKSTEP_CUBLAS(cublasDestroy)(handle);
    }
  };
  DeviceArray<char> workspace_;
  std::unique_ptr<cublasContext, Destroy> handle_;
};

}  // namespace lockstep
