// SPDX-License-Identifier: Apache-2.0
#pragma once
// The staged driver on the CPU: every stage runs over the whole batch before the next begins, with the
// working rows of all chains in memory. Same stage functions as the fused driver, so the same bits, to which
// the tests hold the fused one; densities that are matrix products over many chains have kernels/batch_cpu.hpp.
#include "kernels/launch_cpu.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

template <class Transition, class L, class E, class Model>
void advance_staged(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, const LaunchSpec& spec,
                    int threads) {
  constexpr int W = lane_width<L>;
  const int groups = (b.chains + W - 1) / W;
  std::vector<Proposal<L, E>> proposals(groups);
  std::vector<E> acceptance(groups);
  auto stage = [&](auto body) {
#pragma omp parallel num_threads(threads)
    {
      const FlushToZero guard;
#pragma omp for
      for (int group = 0; group < groups; ++group)
        body(group, make_working_lanes<L, E>(model, b, group * W, spec.covariance));
    }
  };
  for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
    auto draw = [&](const auto& w) { return Draw<L>{spec.key, iteration, w.chain, w.unit}; };
    stage([&](int k, const auto& w) {
      proposals[k] = stage_propose<Transition, L, E>(model, spec, draw(w), w);
    });
    stage([&](int, const auto& w) { stage_evaluate<L, E>(model, w); });
    stage([&](int k, const auto& w) {
      acceptance[k] = stage_decide<L, E>(model, spec, draw(w), proposals[k], w);
    });
    if (spec.record || b.draws != nullptr)
      stage([&](int k, const auto& w) {
        stage_accumulate<L, E>(model, spec, draw(w), acceptance[k], proposals[k], w);
      });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
