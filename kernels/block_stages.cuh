// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stages of the block driver on a GPU (kernels/block_cuda.cuh): a kernel each over the whole batch, a thread for every
// chain, with the stage functions of kernels/driver.hpp.
#include "kernels/block_density.hpp"
#include "kernels/density_cuda.cuh"

namespace lockstep {

/// What is not the same in every launch of a graph; in device memory.
template <class R, class E>
struct BlockLaunch {
  BatchView<R, E> batch;
  LaunchSpec spec;
  std::uint32_t iteration = 0;  // the one in progress
  int step = 1;                 // of its gradients
  int longest = 0;  // those of the chain that takes most in it, where that is not known beforehand
  int going = 0;    // chains at their own pace that are not done
};

/// Where each chain is, of a transition that ends when it sees fit: each goes through its iterations at its own pace.
enum Phase { phase_begins, phase_steps, phase_ends, phase_done };
struct OwnPace {
  std::uint32_t* iteration = nullptr;
  int *step = nullptr, *phase = nullptr;
};

/// The workspace of a batch and what the stages hand on, in device memory: [block][row][chain of the block] but for
/// `proposal`, one for each chain.
template <class R, class E>
struct BlockMemory {
  std::ptrdiff_t chains;     // of a block
  R* state;                  // position, momentum, gradient
  E* energy;                 // position, cache
  R* value;                  // [sample]
  E* log_density;            // [sample]
  E *quantities, *modes;     // [sample][quantity], [1]
  Proposal<R, E>* proposal;  // [transition of the iteration][tiles * kTile]
  OwnPace own;               // or none
  TransitionPart part;       // the one that a stage belongs to
  int parts;

  LOCKSTEP_FN Proposal<R, E>* of_part(int tiles) const {
    return proposal + std::ptrdiff_t(part.number) * tiles * kTile;
  }
  LOCKSTEP_FN std::ptrdiff_t block(int chain) const { return chain / chains; }
  template <class T>
  LOCKSTEP_FN Rows<T> rows(T* base, int count, int chain) const {
    return {base + block(chain) * count * chains + chain % chains, int(chains)};
  }
};

template <class R, class E, class Model>
__device__ auto block_lanes(const Model& model, const BatchView<R, E>& b, int chain, bool covariance,
                            const BlockMemory<R, E>& m) {
  return make_lanes<R, E>(model, m.part.of(b), chain, covariance,
                          make_workspace(model, m.rows(m.state, 3 * model.rows(), chain),
                                         m.rows(m.energy, model.rows() + model.cache_rows(), chain)));
}

enum class TransitionStage { begin, move, push, end, decided };

template <TransitionStage kStage, class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    transition_kernel(const __grid_constant__ Model model, BlockLaunch<R, E>* launch,
                      const __grid_constant__ BlockMemory<R, E> memory) {
  constexpr bool kOwn = Transition::kSelfEnding;
  const BatchView<R, E> b = launch->batch;
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  [[maybe_unused]] int* const phase = kOwn ? memory.own.phase + chain : nullptr;
  if (kOwn && kStage == TransitionStage::begin && *phase != phase_begins) return;
  if (kOwn && kStage >= TransitionStage::end && *phase != phase_ends) return;
  const auto w = block_lanes(model, b, chain, false, memory);
  Proposal<R, E>& proposal = memory.of_part(b.tiles)[chain];
  const Draw<R> draw{launch->spec.key, kOwn ? memory.own.iteration[chain] : launch->iteration, w.chain,
                     w.unit, memory.part.number};
  const int step = kOwn ? memory.own.step[chain] : launch->step;
  if constexpr (kStage == TransitionStage::begin) {
    const LaunchSpec spec = launch->spec;
    proposal = Transition::template begin<R, E>(model, spec, draw, w);
    if constexpr (kOwn) {
      memory.own.step[chain] = 1;
      *phase = phase_steps;
    } else {
      atomicMax(&launch->longest, int(proposal.steps));
    }
  } else if constexpr (kStage == TransitionStage::move) {
    Transition::move(model, draw, R(step), proposal, w);
  } else if constexpr (kStage == TransitionStage::push) {
    Transition::push(model, draw, R(step), proposal, w);
    if (kOwn && *phase == phase_steps) {
      if (R(step) < proposal.steps)
        ++memory.own.step[chain];
      else
        *phase = phase_ends;
    }
  } else if constexpr (kStage == TransitionStage::end) {
    Transition::end(model, proposal, w);
  } else {
    const LaunchSpec spec = launch->spec;
    Transition::decided(model, spec, draw, proposal, w);
  }
}

/// The stages that know no transition. `start`: position to workspace; `gradient`, `energy`: the model's, from the
/// density's; `keep`: both to the state.
enum class ModelStage {
  start,
  keep,
  anneal,
  load,
  gradient,
  energy,
  no_step,
  decide,
  temper,
  copy,
  sum,
  store
};

template <ModelStage kStage, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    model_kernel(const __grid_constant__ Model model, BlockLaunch<R, E>* launch,
                 const __grid_constant__ BlockMemory<R, E> memory) {
  const BatchView<R, E> b = launch->batch;
  const LaunchSpec spec = launch->spec;
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  std::uint32_t iteration = launch->iteration;
  if (memory.own.phase != nullptr && kStage >= ModelStage::anneal && kStage != ModelStage::gradient &&
      kStage != ModelStage::energy) {
    if (memory.own.phase[chain] != (kStage <= ModelStage::load ? phase_begins : phase_ends)) return;
    iteration = memory.own.iteration[chain];
  }
  const auto w = block_lanes(model, b, chain, spec.covariance, memory);
  const Draw<R> draw{spec.key, iteration, w.chain, w.unit, memory.part.number};
  Proposal<R, E>& proposal = memory.of_part(b.tiles)[chain];
  if constexpr (kStage == ModelStage::start) {
    copy_rows<R>(model.rows(), w.position, w.x);
  } else if constexpr (kStage == ModelStage::keep) {
    copy_rows<R>(model.rows(), w.g, w.gradient);
    copy_rows<E>(model.cache_rows(), w.ce, w.cache);
  } else if constexpr (kStage == ModelStage::anneal) {
    stage_anneal<R, E>(model, spec, iteration, w);
  } else if constexpr (kStage == ModelStage::load) {
    stage_load<R>(model, w);
  } else if constexpr (kStage == ModelStage::gradient) {
    model.template finish_gradient<R>(memory.rows(memory.value, model.samples(), chain), w.x, w.parameters,
                                      w.g);
  } else if constexpr (kStage == ModelStage::energy) {
    const auto log_density = memory.rows(memory.log_density, model.samples(), chain);
    if constexpr (std::is_same_v<R, E>) {
      model.template finish_log_density<E>(log_density, w.x, w.energy_parameters, w.ce);
    } else {
      copy_rows<E>(model.rows(), w.x, w.xe);
      model.template finish_log_density<E>(log_density, w.xe, w.energy_parameters, w.ce);
    }
  } else if constexpr (kStage == ModelStage::no_step) {  // but a gradient
    proposal.steps = R(1);
  } else if constexpr (kStage == ModelStage::decide) {
    stage_decide<R, E>(model, spec, draw, proposal, w);
  } else if constexpr (kStage == ModelStage::temper) {
    for (int p = 1; p < memory.parts; ++p)
      proposal.steps = proposal.steps + memory.proposal[std::ptrdiff_t(p) * b.tiles * kTile + chain].steps;
    stage_temper<R, E>(model, spec, draw, w);
  } else if (spec.record || b.draws != nullptr) {
    if constexpr (kStage == ModelStage::copy) {
      copy_rows<E>(model.rows(), w.position, w.xe);
    } else if constexpr (kStage == ModelStage::sum) {
      const int count = model.density.quantities();
      const auto values = memory.rows(memory.quantities, model.samples() * count, chain);
      stage_sum<R, E>(model, spec, draw, w, w.xe, [&](int i, auto&& put) {
        for (int q = 0; q < count; ++q) put(q, E(values[i * count + q]));
      });
    } else if (spec.record || w.draws != nullptr) {
      const Drawn drawn{w.xe, memory.rows(memory.modes, 1, chain)[0]};
      stage_store<R, E>(model, spec, iteration, proposal, drawn, w);
    }
  }
}

/// To the next gradient of a transition, or to the next iteration. One thread, after all who read the numbers.
template <class R, class E>
__global__ void count_step_kernel(BlockLaunch<R, E>* launch) {
  ++launch->step;
}
template <class R, class E>
__global__ void count_iteration_kernel(BlockLaunch<R, E>* launch) {
  ++launch->iteration;
}
/// Before a transition begins.
template <class R, class E>
__global__ void count_no_steps_kernel(BlockLaunch<R, E>* launch) {
  launch->step = 1;
  launch->longest = 0;
}

/// Every chain at its own pace before the first of its iterations.
template <class R, class E>
__global__ void __launch_bounds__(kMaxBlockThreads)
    own_pace_kernel(BlockLaunch<R, E>* launch, const __grid_constant__ BlockMemory<R, E> memory) {
  const int chains = launch->batch.tiles * kTile, chain = this_chain();
  if (chain >= chains) return;
  memory.own.iteration[chain] = launch->spec.begin;
  memory.own.phase[chain] = phase_begins;
  launch->going = chains;
}
/// Those that have ended an iteration begin the next, or wait, at a step where nothing moves.
template <class R, class E>
__global__ void __launch_bounds__(kMaxBlockThreads)
    next_iteration_kernel(BlockLaunch<R, E>* launch, const __grid_constant__ BlockMemory<R, E> memory) {
  const int chains = launch->batch.tiles * kTile, chain = this_chain();
  if (chain >= chains) return;
  if (memory.own.phase[chain] != phase_ends) return;
  const bool done = ++memory.own.iteration[chain] == launch->spec.end;
  memory.own.phase[chain] = done ? phase_done : phase_begins;
  if (!done) return;
  memory.own.step[chain] = int(memory.proposal[chain].steps) + 1;
  atomicAdd(&launch->going, -1);
}

/// A transition for a model (kernels/transition.hpp), stage by stage over a batch.
template <class R, class E, class Model>
class CudaTransition {
 public:
  const bool gradients, energies, self_ending;
  virtual ~CudaTransition() = default;
  virtual void run(TransitionStage stage, const BlockGrid& grid, const Model& model,
                   BlockLaunch<R, E>* launch, const BlockMemory<R, E>& memory) const = 0;
  /// The steps that every chain takes in an iteration, or -1 where they are not known beforehand.
  virtual int steps(const LaunchSpec& spec, std::uint32_t iteration, const double* settings) const = 0;
  bool takes_steps() const { return gradients || energies; }

 protected:
  CudaTransition(bool takes_gradients, bool takes_energies, bool ends_itself)
      : gradients(takes_gradients), energies(takes_energies), self_ending(ends_itself) {}
};

template <class Transition, class R, class E, class Model>
class CudaTransitionOf final : public CudaTransition<R, E, Model> {
 public:
  CudaTransitionOf()
      : CudaTransition<R, E, Model>(Transition::kGradients, Transition::kEnergies, Transition::kSelfEnding) {}
  void run(TransitionStage stage, const BlockGrid& grid, const Model& model, BlockLaunch<R, E>* launch,
           const BlockMemory<R, E>& memory) const override {
    const auto one = [&]<TransitionStage kStage>() {
      if (stage == kStage)
        enqueue(grid.stream, grid.blocks, grid.threads, transition_kernel<kStage, Transition, R, E, Model>,
                model, launch, memory);
    };
    one.template operator()<TransitionStage::begin>();
    one.template operator()<TransitionStage::move>();
    one.template operator()<TransitionStage::push>();
    one.template operator()<TransitionStage::end>();
    one.template operator()<TransitionStage::decided>();
  }
  int steps(const LaunchSpec& spec, std::uint32_t iteration, const double* settings) const override {
    return Transition::template known_steps<R>(spec, iteration, KnownRows<R>{nullptr, settings});
  }
};

}  // namespace lockstep
