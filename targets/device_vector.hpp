// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device memory that grows like a std::vector. What it does belongs to the stream of the calling host thread.
#include <vector>

#include "kernels/device_array.cuh"

namespace lockstep {

/// n numbers of type float, double, int or std::uint32_t on the current CUDA device. Functions that allocate
/// or copy throw std::runtime_error on a CUDA error.
template <class T>
class DeviceVector {
 public:
  using value_type = T;
  DeviceVector() = default;
  explicit DeviceVector(const std::vector<T>& host) { from_host(host); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The address on the device.
  T* data() { return memory_.data(); }
  /// Keeps the first elements; new ones are `value`.
  void resize(std::size_t size, T value = T());
  void fill(T value);
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    from_host(std::vector<T>(first, last));
  }
  void from_host(const std::vector<T>& host);
  std::vector<T> to_host() const;
  /// Copies `count` elements from element `first` on of each of the `pieces` stretches of `length` elements,
  /// which lie one after the other here and packed on the host.
  void rows_to_host(T* host, std::size_t pieces, std::size_t length, std::size_t first,
                    std::size_t count) const;
  void rows_from_host(const T* host, std::size_t pieces, std::size_t length, std::size_t first,
                      std::size_t count);

 private:
  void fill_from(std::size_t first, T value);
  DeviceArray<T> memory_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
