// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <new>
#include <vector>

namespace lockstep {

template <class T>
struct BareAllocator : std::allocator<T> {
  BareAllocator() = default;
  template <class U>
  BareAllocator(const BareAllocator<U>&) {}
  void construct(T* p) { ::new (static_cast<void*>(p)) T; }
};

/// For numbers that are all written before they are read: new elements are not zero.
template <class T>
using BareVector = std::vector<T, BareAllocator<T>>;

}  // namespace lockstep
