// SPDX-License-Identifier: Apache-2.0
#pragma once
// The staged driver on a GPU: one launch per stage over the whole batch, the working rows in device memory
// (kernels/staged_cpu.hpp says why there are two drivers).
#include "kernels/launch_cuda.cuh"

namespace lockstep {

/// What the stages of one iteration hand on, one element per chain in device memory.
template <class R, class E>
struct StagedView {
  Proposal<R, E>* proposal;
  E* acceptance;
};

enum class Stage { propose, evaluate, accept, accumulate };

template <Stage kStage, class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    stage_kernel(const __grid_constant__ Model model, const __grid_constant__ BatchView<R, E> b,
                 const __grid_constant__ LaunchSpec spec, StagedView<R, E> between, std::uint32_t iteration) {
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  const auto w = make_working_lanes<R, E>(model, b, chain, spec.covariance);
  const Draw<R> draw{spec.key, iteration, w.chain, w.unit};
  if constexpr (kStage == Stage::propose) {
    between.proposal[chain] = stage_propose<Transition, R, E>(model, spec, draw, w);
  } else if constexpr (kStage == Stage::evaluate) {
    stage_evaluate<R, E>(model, w);
  } else if constexpr (kStage == Stage::accept) {
    between.acceptance[chain] = stage_decide<R, E>(model, spec, draw, between.proposal[chain], w);
  } else {
    stage_accumulate<R, E>(model, spec, draw, between.acceptance[chain], between.proposal[chain], w);
  }
}

/// Iterations [spec.begin, spec.end) of every chain, stage by stage; returns when they are done.
/// `between` has room for every chain, padding included. Throws std::runtime_error on any CUDA error.
template <class Transition, class R, class E, class Model>
void advance_staged_cuda(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec,
                         const StagedView<R, E>& between) {
  for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
    const auto run = [&](auto kernel) {
      launch_chains(b, b.tiles, kernel, model, b, spec, between, iteration);
    };
    run(stage_kernel<Stage::propose, Transition, R, E, Model>);
    run(stage_kernel<Stage::evaluate, Transition, R, E, Model>);
    run(stage_kernel<Stage::accept, Transition, R, E, Model>);
    if (spec.record || b.draws != nullptr) run(stage_kernel<Stage::accumulate, Transition, R, E, Model>);
  }
  wait();
}

}  // namespace lockstep
