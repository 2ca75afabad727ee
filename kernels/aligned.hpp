// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory in whole cache lines: rows of packs begin where a line does, and no array shares a line with another.
#include <cstddef>
#include <new>
#include <vector>

namespace lockstep {

inline constexpr std::size_t kLineBytes = 64;

/// For standard containers: storage from the start of a line to the end of one.
template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  bool operator==(const LineAllocator&) const = default;

  T* allocate(std::size_t count) {
    const std::size_t lines = (count * sizeof(T) + kLineBytes - 1) / kLineBytes;
    return static_cast<T*>(::operator new(lines* kLineBytes, std::align_val_t(kLineBytes)));
  }
  void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t(kLineBytes)); }
};

template <class T>
using AlignedVector = std::vector<T, LineAllocator<T>>;

}  // namespace lockstep
