// SPDX-License-Identifier: Apache-2.0
#pragma once
// The block driver on a GPU (kernels/block_cpu.hpp says why there is one): one launch per stage over the whole batch,
// and between a step's move and its push the density's own launches. Same stage functions.
//
// All of it is captured in CUDA graphs when an engine first runs: three pieces of each transition (its begin, a step to
// the next gradient, the last of these with what follows it), and what an iteration has before and after its
// transitions. (A graph of whole iterations would be as long as the trajectory, and there would be one for every
// length.) A graph's arguments are constants: what differs between launches, iterations and steps is read from device
// memory. Where chains go at their own pace, a graph is a round of a step of every chain.
#include <cassert>
#include <vector>

#include "kernels/block_stages.cuh"
#include "kernels/device_array.cuh"
#include "kernels/graph_cuda.cuh"

namespace lockstep {

/// Runs one model, and the transitions of an iteration, on the chains of one engine.
template <class R, class E, class Model>
class CudaBlocks {
 public:
  using Transition = CudaTransition<R, E, Model>;
  using Parts = TransitionParts<Transition>;
  CudaBlocks(const Model& model, const Parts& parts, CudaDensity<R, E>& density, const BatchView<R, E>& b,
             cudaStream_t stream)
      : model_(model),
        parts_(parts),
        own_pace_(parts.front().first->self_ending),
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
        proposal_(std::size_t(tiles_) * kTile * parts.size()),
        own_iteration_(own_pace_ ? std::size_t(tiles_) * kTile : 0),
        own_step_(own_pace_ ? std::size_t(tiles_) * kTile : 0),
        own_phase_(own_pace_ ? std::size_t(tiles_) * kTile : 0),
        graphs_(parts.size()) {
    const auto alone = capturing();
    density_.bind(b.unit, tiles_ * kTile, grid());
    // The memory of an engine is written by another stream; libraries set themselves up at their first call,
    // which must not be while it is captured.
    wait();
    evaluate_density(true, true);
    if (own_pace_)
      capture_own_pace();
    else
      capture_iteration();
  }

  /// What a chain holds of device memory.
  static std::size_t bytes_of_chain(const Model& model, const Parts& parts) {
    const int n = model.samples(), rows = model.rows();
    return (3 * rows + n) * sizeof(R) +
           (rows + model.cache_rows() + n * (1 + model.density.quantities()) + 1) * sizeof(E) +
           parts.size() * sizeof(Proposal<R, E>) + (parts.front().first->self_ending ? 3 * sizeof(int) : 0);
  }

  /// Gradient and energy of every chain's present position; returns when they are there, as `advance` does.
  void initialize(const BatchView<R, E>& b) {
    const auto alone = capturing();
    send(b, LaunchSpec());
    run<ModelStage::start>();
    evaluate(true, true);
    run<ModelStage::keep>();
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

  /// Iterations [spec.begin, spec.end) of every chain.
  void advance(const BatchView<R, E>& b, const LaunchSpec& spec) {
    send(b, spec);
    if (own_pace_) return advance_at_own_pace(spec);
    const int parts = int(parts_.size());
    for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration) {
      if constexpr (Model::kTempered) before_.launch(stream_);
      for (int k = 0; k < parts; ++k) {
        const int p = spec.backwards ? parts - 1 - k : k;
        graphs_[p].begin.launch(stream_);
        const int last = steps(p, spec, iteration);
        for (int s = 1; s < last; ++s) graphs_[p].step.launch(stream_);
        graphs_[p].last.launch(stream_);
      }
      if (parts > 1) after_.launch(stream_);
    }
    LOCKSTEP_CHECK_CUDA(cudaStreamSynchronize(stream_));
  }

 private:
  struct Graphs {
    CudaGraph begin, step, last;
  };
  void capture_iteration() {
    if constexpr (Model::kTempered) before_.capture(stream_, [&] { run<ModelStage::anneal>(); });
    for (std::size_t p = 0; p < parts_.size(); ++p) capture(int(p));
    if (parts_.size() > 1) after_.capture(stream_, [&] { end_iteration(); });
  }
  /// One of the transitions of an iteration. The gradient is kept with the position if any of them takes it.
  void capture(int p) {
    const Transition& transition = *parts_[p].first;
    graphs_[p].begin.capture(stream_, [&] {
      enqueue(stream_, 1, 1, count_no_steps_kernel<R, E>, launch_.data());
      run<ModelStage::load>(p);
      run(TransitionStage::begin, p);
    });
    if (transition.takes_steps())
      graphs_[p].step.capture(stream_, [&] {
        step(p, transition.gradients, transition.energies);
        enqueue(stream_, 1, 1, count_step_kernel<R, E>, launch_.data());
      });
    graphs_[p].last.capture(stream_, [&] {
      if (transition.takes_steps()) {
        step(p, transition.gradients || keeps_gradients(parts_), true);
      } else {
        evaluate(keeps_gradients(parts_), true);
        if (keeps_gradients(parts_)) run<ModelStage::no_step>(p);
      }
      decide(p);
      if (parts_.size() == 1) end_iteration();
    });
  }
  /// A round of a step of every chain, and of the end of a transition and the begin of the next where one ends.
  void capture_own_pace() {
    const auto begin = [&] {
      run<ModelStage::anneal>();
      run<ModelStage::load>();
      run(TransitionStage::begin, 0);
    };
    before_.capture(stream_, begin);
    after_.capture(stream_, [&] {
      step(0, parts_[0].first->gradients, true);
      decide(0);
      accumulate();
      const BlockGrid g = grid();
      enqueue(stream_, g.blocks, g.threads, next_iteration_kernel<R, E>, launch_.data(), memory(0));
      begin();
    });
  }
  /// The host looks now and then whether any chain is not done.
  void advance_at_own_pace(const LaunchSpec& spec) {
    constexpr int kRounds = 16;
    if (spec.begin == spec.end) return;
    const BlockGrid g = grid();
    enqueue(stream_, g.blocks, g.threads, own_pace_kernel<R, E>, launch_.data(), memory(0));
    before_.launch(stream_);
    for (int going = 1; going > 0;) {
      for (int k = 0; k < kRounds; ++k) after_.launch(stream_);
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

  /// With the data of one of the transitions.
  BlockMemory<R, E> memory(int p) const {
    return {
        density_.chains(), state_.data(),       energy_.data(),
        value_.data(),     log_density_.data(), quantities_.data(),
        modes_.data(),     proposal_.data(),    {own_iteration_.data(), own_step_.data(), own_phase_.data()},
        parts_[p].second,  int(parts_.size())};
  }
  BlockGrid grid() const {
    const int threads = block_threads(tiles_, block_threads_);
    return {stream_, (tiles_ * kTile + threads - 1) / threads, threads};
  }
  template <ModelStage kStage>
  void run(int p = 0) {
    const BlockGrid g = grid();
    enqueue(stream_, g.blocks, g.threads, model_kernel<kStage, R, E, Model>, model_, launch_.data(),
            memory(p));
  }
  void run(TransitionStage stage, int p) {
    parts_[p].first->run(stage, grid(), model_, launch_.data(), memory(p));
  }

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

  void step(int p, bool gradients, bool energies) {
    run(TransitionStage::move, p);
    evaluate(gradients, energies);
    run(TransitionStage::push, p);
  }
  void decide(int p) {
    run(TransitionStage::end, p);
    run<ModelStage::decide>(p);
    run(TransitionStage::decided, p);
  }
  /// What follows the transitions of an iteration.
  void end_iteration() {
    accumulate();
    enqueue(stream_, 1, 1, count_iteration_kernel<R, E>, launch_.data());
  }
  void accumulate() {
    const int n = model_.samples(), count = density_.quantities(), chains = density_.chains();
    const std::ptrdiff_t stride = std::ptrdiff_t(model_.rows() + model_.cache_rows()) * chains;
    if (Model::kTempered || parts_.size() > 1) run<ModelStage::temper>();
    run<ModelStage::copy>();
    for (int i = 0; i < n && count > 0; ++i)
      density_.quantities(energy_.data() + std::ptrdiff_t(i) * model_.dim() * chains, stride,
                          quantities_.data() + std::ptrdiff_t(i) * count * chains,
                          std::ptrdiff_t(n) * count * chains);
    run<ModelStage::sum>();
    density_.modes(energy_.data(), stride, modes_.data(), chains);
    run<ModelStage::store>();
  }

  /// The steps of the chain that takes most in a transition that has begun. Where chains differ the device is asked, and
  /// the host waits for it.
  int steps(int p, const LaunchSpec& spec, std::uint32_t iteration) {
    const int known = parts_[p].first->steps(spec, iteration, parts_[p].second.settings);
    if (known >= 0) return known;
    return read(&launch_.data()->longest);
  }

  const Model model_;
  const Parts parts_;
  const bool own_pace_;
  CudaDensity<R, E>& density_;
  const int tiles_, block_threads_;
  const cudaStream_t stream_;
  BlockLaunch<R, E> sent_;
  DeviceArray<BlockLaunch<R, E>> launch_;
  DeviceArray<R> state_;
  DeviceArray<E> energy_;
  DeviceArray<R> value_;
  DeviceArray<E> log_density_, quantities_, modes_;
  DeviceArray<Proposal<R, E>> proposal_;
  DeviceArray<std::uint32_t> own_iteration_;
  DeviceArray<int> own_step_, own_phase_;
  std::vector<Graphs> graphs_;  // of each transition
  CudaGraph before_, after_;
};

}  // namespace lockstep
