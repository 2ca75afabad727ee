// SPDX-License-Identifier: Apache-2.0
#include "targets/device_vector.hpp"

#include <thrust/device_vector.h>

#include <cstdint>

#include "kernels/launch_cuda.cuh"

namespace lockstep {

template <class T>
struct DeviceVector<T>::Memory {
  thrust::device_vector<T> v;
};

template <class T>
DeviceVector<T>::DeviceVector() : memory_(std::make_unique<Memory>()) {}
template <class T>
DeviceVector<T>::DeviceVector(const std::vector<T>& host) : DeviceVector() {
  from_host(host);
}
template <class T>
DeviceVector<T>::DeviceVector(DeviceVector&&) noexcept = default;
template <class T>
DeviceVector<T>::~DeviceVector() = default;

template <class T>
std::size_t DeviceVector<T>::size() const {
  return memory_->v.size();
}
template <class T>
T* DeviceVector<T>::data() {
  return thrust::raw_pointer_cast(memory_->v.data());
}
template <class T>
void DeviceVector<T>::resize(std::size_t size, T value) {
  memory_->v.resize(size, value);
}
template <class T>
void DeviceVector<T>::fill(T value) {
  thrust::fill(memory_->v.begin(), memory_->v.end(), value);
}
template <class T>
void DeviceVector<T>::from_host(const std::vector<T>& host) {
  memory_->v.assign(host.begin(), host.end());
}
template <class T>
std::vector<T> DeviceVector<T>::to_host() const {
  std::vector<T> host(size());
  thrust::copy(memory_->v.begin(), memory_->v.end(), host.begin());
  return host;
}

template <class T>
void DeviceVector<T>::rows_to_host(T* host, std::size_t pieces, std::size_t length, std::size_t first,
                                   std::size_t count) const {
  const T* from = thrust::raw_pointer_cast(memory_->v.data()) + first;
  LOCKSTEP_CHECK_CUDA(cudaMemcpy2D(host, count * sizeof(T), from, length * sizeof(T), count * sizeof(T),
                                   pieces, cudaMemcpyDeviceToHost));
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
