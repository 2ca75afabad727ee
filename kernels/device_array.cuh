// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory on a GPU.
#include <memory>

#include "kernels/graph_cuda.cuh"

namespace lockstep {

/// Elements in device memory, all bytes zero at first. Its destructor never throws: after a kernel's fault
/// every call fails, the freeing of memory too, and it is the first error that says what happened.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t size) {
    if (size == 0) return;
    void* p = nullptr;
    LOCKSTEP_CHECK_CUDA(cudaMalloc(&p, size * sizeof(T)));
    p_.reset(p);
    LOCKSTEP_CHECK_CUDA(cudaMemsetAsync(p, 0, size * sizeof(T), cudaStreamPerThread));
  }
  T* data() const { return static_cast<T*>(p_.get()); }

 private:
  struct Free {
    void operator()(void* p) const {
      const auto alone = capturing();
      cudaFree(p);
    }
  };
  std::unique_ptr<void, Free> p_;
};

}  // namespace lockstep
