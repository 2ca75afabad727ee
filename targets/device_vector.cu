// SPDX-License-Identifier: Apache-2.0
#include "targets/device_vector.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep {
namespace {

template <class T>
__global__ void __launch_bounds__(kMaxBlockThreads) fill_kernel(T* to, std::size_t count, T value) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = value;
}

}  // namespace

template <class T>
void DeviceVector<T>::fill_from(std::size_t first, T value) {
  if (first >= size_) return;
  const std::size_t count = size_ - first;
  enqueue(cudaStreamPerThread, unsigned((count + kMaxBlockThreads - 1) / kMaxBlockThreads), kMaxBlockThreads,
          fill_kernel<T>, data() + first, count, value);
}
template <class T>
void DeviceVector<T>::fill(T value) {
  fill_from(0, value);
}
template <class T>
void DeviceVector<T>::resize(std::size_t size, T value) {
  if (size == size_) return;
  DeviceArray<T> memory(size);
  const std::size_t kept = std::min(size, size_);
  if (kept > 0)
    LOCKSTEP_CHECK_CUDA(cudaMemcpyAsync(memory.data(), data(), kept * sizeof(T), cudaMemcpyDeviceToDevice,
                                        cudaStreamPerThread));
  std::swap(memory_, memory);
  size_ = size;
  if (value != T()) fill_from(kept, value);
}
template <class T>
void DeviceVector<T>::from_host(const std::vector<T>& host) {
  if (host.size() != size_) {
    memory_ = DeviceArray<T>(host.size());
    size_ = host.size();
  }
  if (!host.empty())
    LOCKSTEP_CHECK_CUDA(cudaMemcpy(data(), host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
}
template <class T>
std::vector<T> DeviceVector<T>::to_host() const {
  std::vector<T> host(size_);
  if (!empty())
    LOCKSTEP_CHECK_CUDA(cudaMemcpy(host.data(), memory_.data(), size_ * sizeof(T), cudaMemcpyDeviceToHost));
  return host;
}

template <class T>
void DeviceVector<T>::rows_to_host(T* host, std::size_t pieces, std::size_t length, std::size_t first,
                                   std::size_t count) const {
  LOCKSTEP_CHECK_CUDA(cudaMemcpy2D(host, count * sizeof(T), memory_.data() + first, length * sizeof(T),
                                   count * sizeof(T), pieces, cudaMemcpyDeviceToHost));
}
template <class T>
void DeviceVector<T>::rows_from_host(const T* host, std::size_t pieces, std::size_t length, std::size_t first,
                                     std::size_t count) {
  LOCKSTEP_CHECK_CUDA(cudaMemcpy2D(data() + first, length * sizeof(T), host, count * sizeof(T),
                                   count * sizeof(T), pieces, cudaMemcpyHostToDevice));
}

template class DeviceVector<float>;
template class DeviceVector<double>;
template class DeviceVector<int>;
template class DeviceVector<std::uint32_t>;

}  // namespace lockstep
