// SPDX-License-Identifier: Apache-2.0
#pragma once
// CPU launchers: packs of W chains over OpenMP threads. The tile policy, with the working rows in this
// thread's cache. W, the number of threads and the split into launches change no bit of any chain.
#include <immintrin.h>

#include <vector>

#include "kernels/driver.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

/// Flush-to-zero and denormals-are-zero for this thread, as long as it lives: subnormals cost 30 times the
/// time.
class FlushToZero {
 public:
  FlushToZero() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
  ~FlushToZero() { _mm_setcsr(saved_); }
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;

 private:
  unsigned saved_;
};

/// Working rows of one group of lanes.
template <class L, class E>
class CpuScratch {
 public:
  CpuScratch(int rows, int cache_rows)
      : rows_(rows),
        state_(3 * rows * lane_width<L> + 16),
        energy_((rows + cache_rows) * lane_width<E> + 16) {}
  scalar_t<L>* state(int block) { return align(state_) + block * rows_ * lane_width<L>; }
  scalar_t<E>* energy(int row) { return align(energy_) + row * lane_width<E>; }

 private:
  template <class T>
  static T* align(std::vector<T>& v) {
    return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(v.data()) + 63) & ~std::uintptr_t(63));
  }
  int rows_;
  std::vector<scalar_t<L>> state_;
  std::vector<scalar_t<E>> energy_;
};

/// Runs `body(lanes)` for every group of W chains, in parallel.
template <class L, class E, class Model, class Body>
void for_each_group(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    int threads, Body body) {
  constexpr int W = lane_width<L>;
  static_assert(kTile % W == 0);
  const int groups = (b.chains + W - 1) / W;
#pragma omp parallel num_threads(threads < groups ? threads : groups) if (threads > 1 && groups > 1)
  {
    const FlushToZero guard;
    CpuScratch<L, E> scratch(model.rows(), model.cache_rows());
#pragma omp for schedule(dynamic)
    for (int group = 0; group < groups; ++group)
      body(make_lanes<L, E>(model, b, group * W, covariance, Rows<L>{scratch.state(0), W},
                            Rows<L>{scratch.state(1), W}, Rows<L>{scratch.state(2), W},
                            Rows<E>{scratch.energy(0), W}, Rows<E>{scratch.energy(model.rows()), W}));
  }
}

template <class Transition, class L, class E, class Model>
void advance_cpu(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, const LaunchSpec& spec,
                 int threads) {
  for_each_group<L, E>(model, b, spec.covariance, threads,
                       [&](const auto& w) { advance_lanes<Transition, L, E>(model, spec, w); });
}

template <class L, class E, class Model>
void initialize_cpu(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    int threads) {
  for_each_group<L, E>(model, b, covariance, threads,
                       [&](const auto& w) { initialize_lanes<L, E>(model, w); });
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
