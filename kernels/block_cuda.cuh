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

#include "kernels/block_stages.cuh"
#include "kernels/device_array.cuh"
#include "kernels/graph_cuda.cuh"

namespace lockstep {

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
        proposal_(std::size_t(tiles_) * kTile),
        own_iteration_(transition.self_ending ? std::size_t(tiles_) * kTile : 0),
        own_step_(transition.self_ending ? std::size_t(tiles_) * kTile : 0),
        own_phase_(transition.self_ending ? std::size_t(tiles_) * kTile : 0) {
    density_.bind(b.unit, tiles_ * kTile, grid());
    // The memory of an engine is written by another stream; libraries set themselves up at their first call,
    // which must not be while it is captured.
    wait();
    evaluate_density(true, true);
    begin_.capture(stream_, [&] {
      run<ModelStage::load>();
      run(TransitionStage::begin);
    });
    if (transition.takes_steps() && !transition.self_ending)
      step_.capture(stream_, [&] { step(transition.energies); });
    last_.capture(stream_, [&] {
      if (transition.takes_steps())
        step(true);
      else
        evaluate(false, true);
      end();
    });
  }

  /// What a chain holds of device memory.
  static std::size_t bytes_of_chain(const Model& model, const CudaTransition<R, E, Model>& transition) {
    const int n = model.samples(), rows = model.rows();
    return (3 * rows + n) * sizeof(R) +
           (rows + model.cache_rows() + n * (1 + model.density.quantities()) + 2) * sizeof(E) +
           sizeof(Proposal<R, E>) + (transition.self_ending ? 3 * sizeof(int) : 0);
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
    if (transition_.self_ending) return advance_at_own_pace(spec);
    for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
      begin_.launch(stream_);
      const int last = steps(spec, iteration);
      for (int s = 1; s < last; ++s) step_.launch(stream_);
      last_.launch(stream_);
    }
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  /// Rounds of a step of every chain, and of the end of a transition and the begin of the next where one ends; the host
  /// looks now and then whether any chain is not done.
  void advance_at_own_pace(const LaunchSpec& spec) {
    constexpr int kRounds = 16;
    if (spec.begin == spec.end) return;
    const BlockGrid g = grid();
    enqueue(stream_, g.blocks, g.threads, own_pace_kernel<R, E>, launch_.data(), memory());
    begin_.launch(stream_);
    for (int going = 1; going > 0;) {
      for (int k = 0; k < kRounds; ++k) last_.launch(stream_);
      going = read(&launch_.data()->going);
    }
  }
  /// A number of the device's, after all that was enqueued.
  int read(const int* from) {
    int number = 0;
    LOCKSTEP_CHECK_CUDA(cudaMemcpyAsync(&number, from, sizeof number, cudaMemcpyDeviceToHost, stream_));
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
    return number;
  }
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
    return {density_.chains(),   state_.data(),
            energy_.data(),      value_.data(),
            log_density_.data(), quantities_.data(),
            modes_.data(),       beta_.data(),
            proposal_.data(),    {own_iteration_.data(), own_step_.data(), own_phase_.data()}};
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
    evaluate(transition_.gradients, energies);
    run(TransitionStage::push);
    if (!transition_.self_ending) enqueue(stream_, 1, 1, count_step_kernel<R, E>, launch_.data());
  }

  /// What follows the last gradient of an iteration.
  void end() {
    const int n = model_.samples(), count = density_.quantities(), chains = density_.chains();
    const std::ptrdiff_t stride = std::ptrdiff_t(model_.rows() + model_.cache_rows()) * chains;
    run(TransitionStage::end);
    run<ModelStage::decide>();
    run(TransitionStage::decided);
    run<ModelStage::copy>();
    for (int i = 0; i < n && count > 0; ++i)
      density_.quantities(energy_.data() + std::ptrdiff_t(i) * model_.dim() * chains, stride,
                          quantities_.data() + std::ptrdiff_t(i) * count * chains,
                          std::ptrdiff_t(n) * count * chains);
    run<ModelStage::sum>();
    density_.modes(energy_.data(), stride, modes_.data(), chains);
    run<ModelStage::store>();
    if (transition_.self_ending) {
      const BlockGrid g = grid();
      enqueue(stream_, g.blocks, g.threads, next_iteration_kernel<R, E>, launch_.data(), memory());
      run<ModelStage::load>();
      run(TransitionStage::begin);
    } else {
      enqueue(stream_, 1, 1, count_iteration_kernel<R, E>, launch_.data());
    }
  }

  /// The gradients of the chain that takes most in an iteration that has begun. Where chains differ the device is
  /// asked, and the host waits for it.
  int steps(const LaunchSpec& spec, std::uint32_t iteration) {
    const int known = transition_.steps(spec, iteration);
    if (known >= 0) return known;
    return read(&launch_.data()->longest);
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
  DeviceArray<std::uint32_t> own_iteration_;
  DeviceArray<int> own_step_, own_phase_;
  CudaGraph begin_, step_, last_;
};

}  // namespace lockstep
