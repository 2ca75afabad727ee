// SPDX-License-Identifier: Apache-2.0
#include "targets/device_vector.hpp"

#include <thrust/device_vector.h>

#include <cstdint>

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

template class DeviceVector<float>;
template class DeviceVector<double>;
template class DeviceVector<int>;
template class DeviceVector<std::uint32_t>;

}  // namespace lockstep
