// SPDX-License-Identifier: Apache-2.0
#pragma once
// Device memory that grows like a std::vector. Thrust owns it, in targets/device_vector.cu alone: its headers
// take longer to compile than the kernels of a small density, and none of its types is seen elsewhere.
#include <cstddef>
#include <memory>
#include <vector>

namespace lockstep {

/// n numbers of type float, double, int or std::uint32_t on the current CUDA device. Functions that allocate
/// or copy throw std::runtime_error on a CUDA error.
template <class T>
class DeviceVector {
 public:
  using value_type = T;
  DeviceVector();
  explicit DeviceVector(const std::vector<T>& host);
  DeviceVector(DeviceVector&&) noexcept;
  ~DeviceVector();

  std::size_t size() const;
  bool empty() const { return size() == 0; }
  /// The address on the device.
  T* data();
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
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace lockstep
