// SPDX-License-Identifier: Apache-2.0
#pragma once
// What engines hold on a GPU (targets/engine_memory.hpp).
#include <deque>

#include "kernels/launch_cuda.cuh"
#include "targets/device_vector.hpp"
#include "targets/engine_memory.hpp"

namespace lockstep {

/// A density with its arrays on the device, where they are read. Stays where it is.
template <class Density>
class OnDevice {
 public:
  explicit OnDevice(const Density& density) : density_(density) { bind(density_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  const Density& get() const { return density_; }

 private:
  void bind(Density& density) {
    density.arrays([&](ParameterArray& a, int count) {
      a.f = floats_.emplace_back(std::vector<float>(a.f, a.f + count)).data();
      a.d = doubles_.emplace_back(std::vector<double>(a.d, a.d + count)).data();
    });
  }
  std::deque<DeviceVector<float>> floats_;
  std::deque<DeviceVector<double>> doubles_;
  Density density_;
};

class CudaBackend {
 public:
  using Memory = CudaBackend;
  template <class T>
  using vector = DeviceVector<T>;
  explicit CudaBackend(const EngineSpec&) {}
  template <class T>
  static T* data(DeviceVector<T>& v) {
    return v.data();
  }
  template <class T>
  static std::vector<T> to_host(const DeviceVector<T>& v) {
    return v.to_host();
  }
  template <class T>
  static std::span<const T> seen(const DeviceVector<T>& v, std::size_t count, std::vector<T>& room) {
    room.resize(count);
    v.rows_to_host(room.data(), 1, count, 0, count);
    return room;
  }
  template <class T>
  static void from_host(DeviceVector<T>& v, const std::vector<T>& host) {
    v.from_host(host);
  }
  /// Copies the rows alone, tile by tile.
  template <class T, class F>
  static void read_rows(const DeviceVector<T>& v, int tiles, int rows, int first, int count, F f) {
    std::vector<T> host(std::size_t(tiles) * count * kTile);
    v.rows_to_host(host.data(), tiles, rows * kTile, first * kTile, count * kTile);
    f(host.data(), std::size_t(count) * kTile);
  }
  template <class T, class F>
  static void write_rows(DeviceVector<T>& v, int tiles, int rows, int first, int count, F f) {
    std::vector<T> host(std::size_t(tiles) * count * kTile);
    f(host.data(), std::size_t(count) * kTile);
    v.rows_from_host(host.data(), tiles, rows * kTile, first * kTile, count * kTile);
  }
  template <class T>
  static void fill(DeviceVector<T>& v, T value) {
    v.fill(value);
  }

  /// One round of even-odd swaps in every unit.
  template <class R, class E>
  void swap(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows, const StreamKey& key,
            std::uint32_t iteration, int units) const {
    swap_tiles(b, layout, cache_rows, key, iteration, units);
  }
};

extern template class EngineMemory<CudaBackend, float, float>;
extern template class EngineMemory<CudaBackend, float, double>;
extern template class EngineMemory<CudaBackend, double, double>;

}  // namespace lockstep
