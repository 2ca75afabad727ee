// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace lockstep {

/// For numbers that are all written before they are read: new elements are not zero. Megabytes come in large pages where the
/// system has them (to come by pages of 4 KiB takes longer than to write them), and go back to it when they are done with.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}
  bool operator==(const PageAllocator&) const = default;

  T* allocate(std::size_t count) {
    if (count < kFew) return std::allocator<T>().allocate(count);
    void* const p = mmap(nullptr, bytes(count), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, bytes(count), MADV_HUGEPAGE);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t count) {
    if (count < kFew) return std::allocator<T>().deallocate(p, count);
    munmap(p, bytes(count));
  }
  void construct(T* p) { ::new (static_cast<void*>(p)) T; }

 private:
  static constexpr std::size_t kPage = std::size_t(1) << 21, kFew = kPage / 2 / sizeof(T);
  static std::size_t bytes(std::size_t count) { return (count * sizeof(T) + kPage - 1) / kPage * kPage; }
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace lockstep
