// SPDX-License-Identifier: Apache-2.0
#pragma once
// CPU launchers: packs of W chains over OpenMP threads. The tile policy, with the working rows in this
// thread's cache. W, the number of threads and the split into launches change no bit of any chain.
#include <immintrin.h>

#include "kernels/aligned.hpp"
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

/// How many groups of W chains a thread takes at a time: all of a tile, since of a row of integers beside packs of
/// doubles a group has but half a line, and two threads would write one; but one by one where, with few chains,
/// whole tiles would let threads wait for more than a sixteenth of the time.
inline int groups_together(int groups, int groups_of_tile, int threads) {
  const int tiles = (groups + groups_of_tile - 1) / groups_of_tile;
  const int by_tile = groups_of_tile * ((tiles + threads - 1) / threads),
            by_group = (groups + threads - 1) / threads;
  return by_tile <= by_group + by_group / 16 ? groups_of_tile : 1;
}

/// Runs `body(lanes)` for every group of W chains, in parallel.
template <class L, class E, class Model, class Body>
void for_each_group(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    int threads, Body body) {
  constexpr int W = lane_width<L>;
  static_assert(kTile % W == 0);
  const int groups = (b.chains + W - 1) / W, together = groups_together(groups, kTile / W, threads);
#pragma omp parallel num_threads(threads < groups ? threads : groups) if (threads > 1 && groups > 1)
  {
    const FlushToZero guard;
    AlignedVector<scalar_t<L>> state(3 * model.rows() * W);
    AlignedVector<scalar_t<E>> energy((model.rows() + model.cache_rows()) * W);
    const auto workspace = make_workspace(model, GroupRows<L>{state.data()}, GroupRows<E>{energy.data()});
#pragma omp for schedule(dynamic, together)
    for (int group = 0; group < groups; ++group)
      body(make_lanes<L, E>(model, b, group * W, covariance, workspace));
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
