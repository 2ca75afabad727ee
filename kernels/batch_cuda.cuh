// SPDX-License-Identifier: Apache-2.0
#pragma once
// The staged driver on a GPU for batch densities, whose gradients are matrix products over many chains: one
// launch per stage over the whole batch, and between a step's move and its push the density's own launches.
// Same stage functions as kernels/batch_cpu.hpp.
//
// All of it is captured in CUDA graphs when an engine first runs, in three pieces: the begin of an iteration,
// a leapfrog step, and the last step with what follows it. (A graph of whole iterations would be as long as
// the trajectory, and there would be one for every length.) A graph's arguments are constants: what differs
// between launches, iterations and steps is read from device memory.
#include <cassert>

#include "kernels/device_array.cuh"

namespace lockstep {

/// A stream that waits for no other, nor the other way round.
class CudaStream {
 public:
  CudaStream() { LOCKSTEP_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaGraph {
 public:
  CudaGraph() = default;
  ~CudaGraph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  /// Takes what `body` enqueues on the stream, which does not run. Once per graph.
  template <class Body>
  void capture(cudaStream_t stream, Body body) {
    cudaGraph_t captured = nullptr;
    // Relaxed: a kernel that was never launched before is loaded now, which may allocate.
    LOCKSTEP_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    body();
    LOCKSTEP_CHECK_CUDA(cudaStreamEndCapture(stream, &captured));
    const cudaError_t status = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    LOCKSTEP_CHECK_CUDA(status);
  }
  void launch(cudaStream_t stream) const { LOCKSTEP_CHECK_CUDA(cudaGraphLaunch(graph_, stream)); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// What is not the same in every launch of a graph; in device memory.
template <class R, class E>
struct BatchLaunch {
  BatchView<R, E> batch;
  LaunchSpec spec;
  std::uint32_t iteration = 0;  // the one in progress
  int step = 1;                 // of its trajectories
  int longest = 0;              // the steps of the chain that takes most in it, where chains differ
};

/// What the stages hand on, one element per chain in device memory, and the density's rows.
template <class R, class E>
struct BatchMemory {
  Proposal<R, E>* proposal;
  R* step_size;
  E* acceptance;
  R *position, *gradient;  // [block][row][chain in block]
  const E* value;          // log densities
};

enum class BatchStage { load, initialize, begin, move, push, decide, accumulate };

/// kChains: of a block of the density's rows.
template <BatchStage kStage, int kChains, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    batch_kernel(const __grid_constant__ Model model, BatchLaunch<R, E>* launch,
                 const __grid_constant__ BatchMemory<R, E> memory) {
  const BatchView<R, E> b = launch->batch;
  const LaunchSpec spec = launch->spec;
  const int chain = this_chain(), step = launch->step;
  if (chain >= b.tiles * kTile) return;
  const auto w = make_working_lanes<R, E>(model, b, chain, spec.covariance);
  const Draw<R> draw{spec.key, launch->iteration, w.chain, w.unit};
  const int d = model.dim();
  const auto rows = [&](R* base) {
    return Rows<R>{base + std::ptrdiff_t(chain / kChains) * d * kChains + chain % kChains, kChains};
  };
  const auto send_position = [&] {
    const Rows<R> to = rows(memory.position);
    for (int j = 0; j < d; ++j) to.set(j, w.x[j]);
  };
  const auto fetch_gradient = [&] {
    const Rows<R> from = rows(memory.gradient);
    for (int j = 0; j < d; ++j) w.g.set(j, from[j]);
    model.template finish_gradient<R>(R(memory.value[chain]), w.x, w.parameters, w.g);
  };
  const auto fetch_energy = [&] {
    if constexpr (std::is_same_v<R, E>) {
      model.template finish_log_density<E>(memory.value[chain], w.x, w.energy_parameters, w.ce);
    } else {
      for (int j = 0; j < model.rows(); ++j) w.xe.set(j, E(w.x[j]));
      model.template finish_log_density<E>(memory.value[chain], w.xe, w.energy_parameters, w.ce);
    }
  };

  if constexpr (kStage == BatchStage::load) {
    for (int j = 0; j < model.rows(); ++j) w.x.set(j, w.position[j]);
    send_position();
  } else if constexpr (kStage == BatchStage::initialize) {
    fetch_gradient();
    for (int j = 0; j < model.rows(); ++j) w.gradient.set(j, w.g[j]);
    fetch_energy();
    for (int j = 0; j < model.cache_rows(); ++j) w.cache.set(j, w.ce[j]);
  } else if constexpr (kStage == BatchStage::begin) {
    stage_load<R, E>(model, spec, draw, w);
    const R size = Hmc::step_size(w.parameters, spec, draw);
    const auto proposal = Hmc::begin<R, E>(model, w.parameters, spec, draw, size, w.x, w.p, w.g);
    memory.step_size[chain] = size;
    memory.proposal[chain] = proposal;
    if (spec.num_leapfrog == 0) atomicMax(&launch->longest, int(proposal.steps));
  } else if constexpr (kStage == BatchStage::move) {
    Hmc::move(model, w.parameters, step, memory.step_size[chain], memory.proposal[chain].steps, w.x, w.p);
    send_position();
  } else if constexpr (kStage == BatchStage::push) {
    fetch_gradient();
    Hmc::push(model, w.parameters, step, memory.step_size[chain], memory.proposal[chain].steps, w.x, w.g,
              w.p);
  } else if constexpr (kStage == BatchStage::decide) {
    Proposal<R, E> proposal = memory.proposal[chain];
    Hmc::end(model, w.p, proposal);
    fetch_energy();
    memory.acceptance[chain] = stage_decide<R, E>(model, spec, draw, proposal, w);
  } else {
    if (spec.record || w.draws != nullptr)
      stage_accumulate<R, E>(model, spec, draw, memory.acceptance[chain], memory.proposal[chain], w);
  }
}

/// To the next step of a trajectory, or to the next iteration's first. One thread, after all who read the
/// numbers.
template <class R, class E>
__global__ void count_step_kernel(BatchLaunch<R, E>* launch) {
  ++launch->step;
}
template <class R, class E>
__global__ void count_iteration_kernel(BatchLaunch<R, E>* launch) {
  ++launch->iteration;
  launch->step = 1;
  launch->longest = 0;
}

/// Runs one model on the chains of one engine.
///
/// The density's Batch<R, E>(density, unit, chains, stream) has `kChains`, the chains of its blocks, and in
/// device memory for `chains` of them, padded to whole blocks, `position()` and `gradient()`, both
/// [block][row][chain in block], and `value()`, [chain]; `unit` says whose data each chain sees.
/// `evaluate(values)` enqueues the gradients at the positions and, where asked, the log densities: the same
/// work in every call, and no memory but its own.
template <class R, class E, class Model>
class BatchCuda {
  using Batch = typename decltype(Model::density)::template Batch<R, E>;

 public:
  BatchCuda(const Model& model, const BatchView<R, E>& b)
      : model_(model),
        tiles_(b.tiles),
        block_threads_(b.block_threads),
        launch_(1),
        proposal_(chains()),
        step_size_(chains()),
        acceptance_(chains()),
        batch_(model.density, b.unit, chains(), stream_) {
    // The memory of an engine is written by another stream; libraries set themselves up at their first call,
    // which must not be while it is captured.
    wait();
    batch_.evaluate(true);
    begin_.capture(stream_, [&] { run<BatchStage::begin>(); });
    step_.capture(stream_, [&] { step(model_.joint()); });
    last_.capture(stream_, [&] {
      step(true);
      run<BatchStage::decide>();
      run<BatchStage::accumulate>();
      enqueue(stream_, 1, 1, count_iteration_kernel<R, E>, launch_.data());
    });
  }

  /// Gradient and energy of every chain's present position; returns when they are there, as `advance` does.
  void initialize(const BatchView<R, E>& b) {
    send(b, LaunchSpec());
    run<BatchStage::load>();
    batch_.evaluate(true);
    run<BatchStage::initialize>();
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

  /// Iterations [spec.begin, spec.end) of every chain.
  void advance(const BatchView<R, E>& b, const LaunchSpec& spec) {
    send(b, spec);
    for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
      begin_.launch(stream_);
      const int last = steps(spec, iteration);
      for (int s = 1; s < last; ++s) step_.launch(stream_);
      last_.launch(stream_);
    }
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  int chains() const { return tiles_ * kTile; }
  void send(const BatchView<R, E>& b, const LaunchSpec& spec) {
    assert(b.tiles == tiles_);
    sent_ = {b, spec, spec.begin};
    wait();
    LOCKSTEP_CHECK_CUDA(
        cudaMemcpyAsync(launch_.data(), &sent_, sizeof sent_, cudaMemcpyHostToDevice, stream_));
  }

  template <BatchStage kStage>
  void run() {
    const int threads = block_threads(tiles_, block_threads_), blocks = (chains() + threads - 1) / threads;
    const BatchMemory<R, E> memory{proposal_.data(),  step_size_.data(), acceptance_.data(),
                                   batch_.position(), batch_.gradient(), batch_.value()};
    enqueue(stream_, blocks, threads, batch_kernel<kStage, Batch::kChains, R, E, Model>, model_,
            launch_.data(), memory);
  }

  void step(bool values) {
    run<BatchStage::move>();
    batch_.evaluate(values);
    run<BatchStage::push>();
    enqueue(stream_, 1, 1, count_step_kernel<R, E>, launch_.data());
  }

  /// Of the longest trajectory of an iteration that has begun. All are of one length, known beforehand, but
  /// where each chain has a trajectory time of its own: then the device is asked, and the host waits for it.
  int steps(const LaunchSpec& spec, std::uint32_t iteration) {
    if (spec.num_leapfrog > 0) {
      R jitter;
      return int(num_steps<R>(spec, iteration, Rows<R>{nullptr, 0}, jitter));
    }
    int longest = 0;
    LOCKSTEP_CHECK_CUDA(
        cudaMemcpyAsync(&longest, &launch_.data()->longest, sizeof longest, cudaMemcpyDeviceToHost, stream_));
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return longest;
  }

  const Model model_;
  const int tiles_, block_threads_;
  CudaStream stream_;
  BatchLaunch<R, E> sent_;
  DeviceArray<BatchLaunch<R, E>> launch_;
  DeviceArray<Proposal<R, E>> proposal_;
  DeviceArray<R> step_size_;
  DeviceArray<E> acceptance_;
  Batch batch_;
  CudaGraph begin_, step_, last_;
};

}  // namespace lockstep
