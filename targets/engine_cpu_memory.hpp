// SPDX-License-Identifier: Apache-2.0
#pragma once
// What engines hold on the CPU (targets/engine_memory.hpp).
#include "kernels/launch_cpu.hpp"
#include "targets/engine_memory.hpp"

namespace lockstep {

struct CpuBackend {
  using Memory = CpuBackend;
  template <class T>
  using vector = AlignedVector<T>;
  explicit CpuBackend(const EngineSpec& spec) : threads_(spec.threads), width_(spec.pack_width) {}

  template <class T>
  static T* data(AlignedVector<T>& v) {
    return v.data();
  }
  template <class T>
  static std::vector<T> to_host(const AlignedVector<T>& v) {
    return {v.begin(), v.end()};
  }
  /// The first of them: here, or else in `room`.
  template <class T>
  static std::span<const T> seen(const AlignedVector<T>& v, std::size_t count, std::vector<T>&) {
    return {v.data(), count};
  }
  /// Calls f with the first of the rows, and how far it is from there to the next tile's.
  template <class T, class F>
  static void read_rows(const AlignedVector<T>& v, int, int rows, int first, int, F f) {
    f(v.data() + first * kTile, std::size_t(rows) * kTile);
  }
  template <class T, class F>
  static void write_rows(AlignedVector<T>& v, int, int rows, int first, int, F f) {
    f(v.data() + first * kTile, std::size_t(rows) * kTile);
  }
  template <class T>
  static void from_host(AlignedVector<T>& v, const std::vector<T>& host) {
    v.assign(host.begin(), host.end());
  }
  template <class T>
  static void fill(AlignedVector<T>& v, T value) {
    std::fill(v.begin(), v.end(), value);
  }

  /// One round of even-odd swaps in every unit.
  template <class R, class E>
  void swap(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows, const StreamKey& key,
            std::uint32_t iteration, int units) const {
    for (int unit = 0; unit < units; ++unit)
      for (int pair = 0; 2 * pair + 1 < b.levels; ++pair)
        swap_levels(b, layout, cache_rows, key, {iteration, unit, pair});
  }

 protected:
  int threads_, width_;
};

extern template class EngineMemory<CpuBackend, float, float>;
extern template class EngineMemory<CpuBackend, float, double>;
extern template class EngineMemory<CpuBackend, double, double>;

}  // namespace lockstep
