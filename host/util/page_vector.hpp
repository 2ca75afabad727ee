// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace lockstep {

/// Megabytes that are written once: in large pages where the system has them (it takes longer to come by pages of 4 KiB
/// than to write them), and given back when they are done with. New elements are not zero.
template <class T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <class U>
  PageAllocator(const PageAllocator<U>&) {}
  bool operator==(const PageAllocator&) const = default;

  T* allocate(std::size_t count) {
    void* const p = mmap(nullptr, bytes(count), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    madvise(p, bytes(count), MADV_HUGEPAGE);
    return static_cast<T*>(p);
  }
  void deallocate(T* p, std::size_t count) { munmap(p, bytes(count)); }
  void construct(T* p) { ::new (static_cast<void*>(p)) T; }

 private:
  static std::size_t bytes(std::size_t count) {
    constexpr std::size_t kLarge = std::size_t(1) << 21, kSmall = 4096;
    const std::size_t page = count * sizeof(T) < kLarge / 2 ? kSmall : kLarge;
    return (count * sizeof(T) + page - 1) / page * page;
  }
};

template <class T>
using PageVector = std::vector<T, PageAllocator<T>>;

}  // namespace lockstep
