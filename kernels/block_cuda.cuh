// SPDX-License-Identifier: Apache-2.0
#pragma once
// The block driver on a GPU (kernels/block_cpu.hpp says why there is one): one launch per stage over the whole batch,
// and between a step's move and its push the density's own launches. Same stage functions.
//
// All of it is captured in CUDA graphs when an engine first runs, in three pieces: the begin of an iteration, a step to
// the next gradient, and the last of these with what follows it. (A graph of whole iterations would be as long as the
// trajectory, and there would be one for every length.) A graph's arguments are constants: what differs between
// launches, iterations and steps is read from device memory.
#include <cassert>

#include "kernels/block_density.hpp"
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

/// A point of every chain of a batch, in device memory, and where to put what is wanted there: null where it is not.
/// Rows are [block][row][chain of the block]; from a block to the next of x and gradient are state_stride elements, of
/// value and log_density value_stride.
template <class R, class E>
struct DevicePoint {
  const R* x;  // [dim]
  R *gradient, *value;
  E* log_density;
  std::ptrdiff_t state_stride, value_stride;
};

/// How a stage runs over a batch.
struct BlockGrid {
  cudaStream_t stream = nullptr;
  int blocks = 0, threads = 0;
};

/// A density on a GPU for all chains of a batch. Everything is enqueued on the stream: the same work in every call, and
/// no memory but its own.
template <class R, class E>
class CudaDensity {
 public:
  virtual ~CudaDensity() = default;
  /// Of a block: a multiple of kTile.
  virtual int chains() const = 0;
  virtual int dim() const = 0;
  virtual int quantities() const = 0;
  /// Before all else: whose data each of so many chains sees (in device memory), and how a thread for each of them runs.
  virtual void bind(const std::uint32_t* unit, int chains, const BlockGrid& grid) = 0;
  virtual void evaluate(const DevicePoint<R, E>& at) = 0;
  /// The mode that x belongs to, [1], and the target's own expectations there, [quantity]; from a block to the next are
  /// x_stride and out_stride elements.
  virtual void modes(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) = 0;
  virtual void quantities(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) = 0;
};

/// What is not the same in every launch of a graph; in device memory.
template <class R, class E>
struct BlockLaunch {
  BatchView<R, E> batch;
  LaunchSpec spec;
  std::uint32_t iteration = 0;  // the one in progress
  int step = 1;                 // of its gradients
  int longest = 0;  // those of the chain that takes most in it, where that is not known beforehand
};

/// The workspace of a batch and what the stages hand on, in device memory: [block][row][chain of the block] but for
/// `proposal`, one for each chain.
template <class R, class E>
struct BlockMemory {
  std::ptrdiff_t chains;  // of a block
  R* state;               // position, momentum, gradient
  E* energy;              // position, cache
  R* value;               // [sample]
  E* log_density;         // [sample]
  E *quantities, *modes;  // [sample][quantity], [1]
  E* beta;                // [1]: of Drawn
  Proposal<R, E>* proposal;

  LOCKSTEP_FN std::ptrdiff_t block(int chain) const { return chain / chains; }
  template <class T>
  LOCKSTEP_FN Rows<T> rows(T* base, int count, int chain) const {
    return {base + block(chain) * count * chains + chain % chains, int(chains)};
  }
};

template <class R, class E, class Model>
__device__ auto block_lanes(const Model& model, const BatchView<R, E>& b, int chain, bool covariance,
                            const BlockMemory<R, E>& m) {
  return make_lanes<R, E>(model, b, chain, covariance,
                          make_workspace(model, m.rows(m.state, 3 * model.rows(), chain),
                                         m.rows(m.energy, model.rows() + model.cache_rows(), chain)));
}

enum class TransitionStage { begin, move, push, end };

template <TransitionStage kStage, class Transition, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    transition_kernel(const __grid_constant__ Model model, BlockLaunch<R, E>* launch,
                      const __grid_constant__ BlockMemory<R, E> memory) {
  const BatchView<R, E> b = launch->batch;
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  const auto w = block_lanes(model, b, chain, false, memory);
  Proposal<R, E>& proposal = memory.proposal[chain];
  if constexpr (kStage == TransitionStage::begin) {
    const LaunchSpec spec = launch->spec;
    const Draw<R> draw{spec.key, launch->iteration, w.chain, w.unit};
    proposal = Transition::template begin<R, E>(model, spec, draw, w);
    atomicMax(&launch->longest, int(proposal.steps));
  } else if constexpr (kStage == TransitionStage::move) {
    Transition::move(model, launch->step, proposal, w);
  } else if constexpr (kStage == TransitionStage::push) {
    Transition::push(model, launch->step, proposal, w);
  } else {
    Transition::end(model, proposal, w);
  }
}

/// The stages that know no transition. `start`: position to workspace; `gradient`, `energy`: the model's, from the
/// density's; `keep`: both to the state.
enum class ModelStage { start, keep, load, gradient, energy, decide, copy, sum, store };

template <ModelStage kStage, class R, class E, class Model>
__global__ void __launch_bounds__(kMaxBlockThreads)
    model_kernel(const __grid_constant__ Model model, BlockLaunch<R, E>* launch,
                 const __grid_constant__ BlockMemory<R, E> memory) {
  const BatchView<R, E> b = launch->batch;
  const LaunchSpec spec = launch->spec;
  const int chain = this_chain();
  if (chain >= b.tiles * kTile) return;
  const auto w = block_lanes(model, b, chain, spec.covariance, memory);
  const Draw<R> draw{spec.key, launch->iteration, w.chain, w.unit};
  Proposal<R, E>& proposal = memory.proposal[chain];
  if constexpr (kStage == ModelStage::start) {
    copy_rows<R>(model.rows(), w.position, w.x);
  } else if constexpr (kStage == ModelStage::keep) {
    copy_rows<R>(model.rows(), w.g, w.gradient);
    copy_rows<E>(model.cache_rows(), w.ce, w.cache);
  } else if constexpr (kStage == ModelStage::load) {
    stage_load<R, E>(model, spec, draw, w);
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
  } else if constexpr (kStage == ModelStage::decide) {
    stage_decide<R, E>(model, spec, draw, proposal, w);
  } else if (spec.record || b.draws != nullptr) {
    if constexpr (kStage == ModelStage::copy) {
      copy_rows<E>(model.rows(), w.position, w.xe);
    } else if constexpr (kStage == ModelStage::sum) {
      const int count = model.density.quantities();
      const auto values = memory.rows(memory.quantities, model.samples() * count, chain);
      memory.rows(memory.beta, 1, chain).set(0, stage_sum<R, E>(model, spec, draw, w, [&](int i, auto&& put) {
                                               for (int q = 0; q < count; ++q)
                                                 put(q, E(values[i * count + q]));
                                             }));
    } else if (spec.record || w.draws != nullptr) {
      const Drawn<E> drawn{memory.rows(memory.modes, 1, chain)[0], memory.rows(memory.beta, 1, chain)[0]};
      stage_store<R, E>(model, spec, launch->iteration, proposal, drawn, w);
    }
  }
}

/// To the next gradient of an iteration, or to the next iteration's first. One thread, after all who read the numbers.
template <class R, class E>
__global__ void count_step_kernel(BlockLaunch<R, E>* launch) {
  ++launch->step;
}
template <class R, class E>
__global__ void count_iteration_kernel(BlockLaunch<R, E>* launch) {
  ++launch->iteration;
  launch->step = 1;
  launch->longest = 0;
}

/// A transition for a model (kernels/transition.hpp), stage by stage over a batch.
template <class R, class E, class Model>
class CudaTransition {
 public:
  virtual ~CudaTransition() = default;
  virtual void run(TransitionStage stage, const BlockGrid& grid, const Model& model,
                   BlockLaunch<R, E>* launch, const BlockMemory<R, E>& memory) const = 0;
  /// The gradients that every chain takes in an iteration, or -1 where they are not known beforehand.
  virtual int steps(const LaunchSpec& spec, std::uint32_t iteration) const = 0;
  virtual bool gradients() const = 0;
};

template <class Transition, class R, class E, class Model>
class CudaTransitionOf final : public CudaTransition<R, E, Model> {
 public:
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
  }
  int steps(const LaunchSpec& spec, std::uint32_t iteration) const override {
    return Transition::template known_steps<R>(spec, iteration);
  }
  bool gradients() const override { return Transition::info().gradients; }
};

/// Runs one model and transition on the chains of one engine.
template <class R, class E, class Model>
class CudaBlocks {
 public:
  CudaBlocks(const Model& model, const CudaTransition<R, E, Model>& transition, CudaDensity<R, E>& density,
             const BatchView<R, E>& b, cudaStream_t stream)
      : model_(model),
        transition_(transition),
        density_(density),
        tiles_(b.tiles),
        block_threads_(b.block_threads),
        stream_(stream),
        launch_(1),
        state_(rows(3 * model.rows())),
        energy_(rows(model.rows() + model.cache_rows())),
        value_(rows(model.samples())),
        log_density_(rows(model.samples())),
        quantities_(rows(model.samples() * density.quantities())),
        modes_(rows(1)),
        beta_(rows(1)),
        proposal_(std::size_t(tiles_) * kTile) {
    density_.bind(b.unit, tiles_ * kTile, grid());
    // The memory of an engine is written by another stream; libraries set themselves up at their first call,
    // which must not be while it is captured.
    wait();
    evaluate_density(true, true);
    begin_.capture(stream_, [&] {
      run<ModelStage::load>();
      run(TransitionStage::begin);
    });
    if (transition.gradients()) step_.capture(stream_, [&] { step(false); });
    last_.capture(stream_, [&] {
      if (transition.gradients())
        step(true);
      else
        evaluate(false, true);
      end();
    });
  }

  /// What a chain holds of device memory.
  static std::size_t bytes_of_chain(const Model& model) {
    const int n = model.samples(), rows = model.rows();
    return (3 * rows + n) * sizeof(R) +
           (rows + model.cache_rows() + n * (1 + model.density.quantities()) + 2) * sizeof(E) +
           sizeof(Proposal<R, E>);
  }

  /// Gradient and energy of every chain's present position; returns when they are there, as `advance` does.
  void initialize(const BatchView<R, E>& b) {
    send(b, LaunchSpec());
    run<ModelStage::start>();
    evaluate(true, true);
    run<ModelStage::keep>();
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
  int blocks() const { return (tiles_ * kTile + density_.chains() - 1) / density_.chains(); }
  std::size_t rows(int count) const { return std::size_t(count) * blocks() * density_.chains(); }
  void send(const BatchView<R, E>& b, const LaunchSpec& spec) {
    assert(b.tiles == tiles_);
    sent_ = {b, spec, spec.begin};
    wait();
    LOCKSTEP_CHECK_CUDA(
        cudaMemcpyAsync(launch_.data(), &sent_, sizeof sent_, cudaMemcpyHostToDevice, stream_));
  }

  BlockMemory<R, E> memory() const {
    return {density_.chains(),  state_.data(), energy_.data(), value_.data(),   log_density_.data(),
            quantities_.data(), modes_.data(), beta_.data(),   proposal_.data()};
  }
  BlockGrid grid() const {
    const int threads = block_threads(tiles_, block_threads_);
    return {stream_, (tiles_ * kTile + threads - 1) / threads, threads};
  }
  template <ModelStage kStage>
  void run() {
    const BlockGrid g = grid();
    enqueue(stream_, g.blocks, g.threads, model_kernel<kStage, R, E, Model>, model_, launch_.data(),
            memory());
  }
  void run(TransitionStage stage) { transition_.run(stage, grid(), model_, launch_.data(), memory()); }

  bool takes_values(bool gradients) const { return gradients && model_.gradient_takes_value(); }
  /// The target's gradients and log densities at the working positions, sample by sample.
  void evaluate_density(bool gradients, bool energies) {
    const int n = model_.samples(), d = model_.dim(), chains = density_.chains();
    for (int i = 0; i < n; ++i) {
      const std::ptrdiff_t at = std::ptrdiff_t(i) * d * chains, sample = std::ptrdiff_t(i) * chains;
      R* x = state_.data() + at;
      density_.evaluate({x, gradients ? x + std::ptrdiff_t(2) * model_.rows() * chains : nullptr,
                         takes_values(gradients) ? value_.data() + sample : nullptr,
                         energies ? log_density_.data() + sample : nullptr,
                         std::ptrdiff_t(3) * model_.rows() * chains, std::ptrdiff_t(n) * chains});
    }
  }
  /// The model's, from these.
  void evaluate(bool gradients, bool energies) {
    evaluate_density(gradients, energies);
    if (takes_values(gradients)) run<ModelStage::gradient>();
    if (energies) run<ModelStage::energy>();
  }

  void step(bool energies) {
    run(TransitionStage::move);
    evaluate(true, energies);
    run(TransitionStage::push);
    enqueue(stream_, 1, 1, count_step_kernel<R, E>, launch_.data());
  }

  /// What follows the last gradient of an iteration.
  void end() {
    const int n = model_.samples(), count = density_.quantities(), chains = density_.chains();
    const std::ptrdiff_t stride = std::ptrdiff_t(model_.rows() + model_.cache_rows()) * chains;
    run(TransitionStage::end);
    run<ModelStage::decide>();
    run<ModelStage::copy>();
    for (int i = 0; i < n && count > 0; ++i)
      density_.quantities(energy_.data() + std::ptrdiff_t(i) * model_.dim() * chains, stride,
                          quantities_.data() + std::ptrdiff_t(i) * count * chains,
                          std::ptrdiff_t(n) * count * chains);
    run<ModelStage::sum>();
    density_.modes(energy_.data(), stride, modes_.data(), chains);
    run<ModelStage::store>();
    enqueue(stream_, 1, 1, count_iteration_kernel<R, E>, launch_.data());
  }

  /// The gradients of the chain that takes most in an iteration that has begun. Where chains differ the device is
  /// asked, and the host waits for it.
  int steps(const LaunchSpec& spec, std::uint32_t iteration) {
    const int known = transition_.steps(spec, iteration);
    if (known >= 0) return known;
    int longest = 0;
    LOCKSTEP_CHECK_CUDA(
        cudaMemcpyAsync(&longest, &launch_.data()->longest, sizeof longest, cudaMemcpyDeviceToHost, stream_));
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return longest;
  }

  const Model model_;
  const CudaTransition<R, E, Model>& transition_;
  CudaDensity<R, E>& density_;
  const int tiles_, block_threads_;
  const cudaStream_t stream_;
  BlockLaunch<R, E> sent_;
  DeviceArray<BlockLaunch<R, E>> launch_;
  DeviceArray<R> state_;
  DeviceArray<E> energy_;
  DeviceArray<R> value_;
  DeviceArray<E> log_density_, quantities_, modes_, beta_;
  DeviceArray<Proposal<R, E>> proposal_;
  CudaGraph begin_, step_, last_;
};

template <class R, class E, class Density>
__global__ void __launch_bounds__(kMaxBlockThreads)
    evaluate_kernel(const __grid_constant__ Density density, int chains,
                    const __grid_constant__ DevicePoint<R, E> at) {
  const int chain = this_chain();
  if (chain >= chains) return;
  const std::ptrdiff_t block = chain / kTile;
  const int lane = chain % kTile;
  R* x = const_cast<R*>(at.x) + block * at.state_stride + lane;
  if (at.gradient != nullptr) {
    const R value = density.template log_density<0, R>(
        Rows<R>{x, kTile}, Rows<R>{at.gradient + block * at.state_stride + lane, kTile});
    if (at.value != nullptr) at.value[block * at.value_stride + lane] = value;
  }
  if (at.log_density != nullptr)
    at.log_density[block * at.value_stride + lane] =
        density.template log_density<0, E>(Rows<E, R>{x, kTile}, NoGradient{});
}

template <bool kModes, class E, class Density>
__global__ void __launch_bounds__(kMaxBlockThreads)
    describe_kernel(const __grid_constant__ Density density, int chains, const E* x, std::ptrdiff_t x_stride,
                    E* out, std::ptrdiff_t out_stride) {
  const int chain = this_chain();
  if (chain >= chains) return;
  const std::ptrdiff_t block = chain / kTile;
  const int lane = chain % kTile;
  const Rows<E> at{const_cast<E*>(x) + block * x_stride + lane, kTile},
      to{out + block * out_stride + lane, kTile};
  if constexpr (kModes)
    to.set(0, density.template mode<0, E>(at));
  else
    density.template quantity<0, E>(at, [&](int q, E value) { to.set(q, value); });
}

/// A density without products over chains: a thread for every chain, a block for every tile.
template <class Density, class R, class E>
class PointwiseCuda : public CudaDensity<R, E> {
 public:
  explicit PointwiseCuda(const Density& density) : density_(density) {}
  int chains() const override { return kTile; }
  int dim() const override { return density_.dim; }
  int quantities() const override { return density_.quantities(); }
  void bind(const std::uint32_t*, int chains, const BlockGrid& grid) override {
    chains_ = chains;
    grid_ = grid;
  }
  void evaluate(const DevicePoint<R, E>& at) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, evaluate_kernel<R, E, Density>, density_, chains_, at);
  }
  void modes(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, describe_kernel<true, E, Density>, density_, chains_,
            x, x_stride, out, out_stride);
  }
  void quantities(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, describe_kernel<false, E, Density>, density_, chains_,
            x, x_stride, out, out_stride);
  }

 private:
  const Density density_;
  int chains_ = 0;
  BlockGrid grid_;
};

}  // namespace lockstep
