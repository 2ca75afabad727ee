// SPDX-License-Identifier: Apache-2.0
#pragma once
// The staged driver on the CPU for batch densities, whose gradients are matrix products over many chains. A
// block of chains of fixed size goes through the stages of an iteration together, and blocks share nothing:
// each runs through all iterations of a launch on one thread, its working set in that thread's cache. A block
// is padded, never cut, so that the bits of a chain do not depend on how many there are or where it stands.
// Same stage functions as the fused driver.
#include "kernels/launch_cpu.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

/// The chains [first, first + Batch::kChains) of a batch, as far as there are so many.
///
/// Batch: `position(row)` and `gradient(row)` are rows of kChains numbers, `value()` is one of their log
/// densities in the energy precision; `bind(unit)` says whose data chains see, `evaluate(values)` fills
/// gradients and, where asked, values.
template <class L, class E, class Model, class Batch>
class ChainBlock {
  static constexpr int W = lane_width<L>;
  using Working = decltype(make_working_lanes<L, E>(std::declval<const Model&>(),
                                                    BatchView<scalar_t<L>, scalar_t<E>>(), 0, false));

 public:
  static_assert(Batch::kChains % kTile == 0 && kTile % W == 0);
  ChainBlock(const Model& model, Batch& batch) : model_(model), batch_(batch) {
    lanes_.reserve(Batch::kChains / W);
    proposals_.reserve(Batch::kChains / W);
    steps_.reserve(Batch::kChains / W);
  }

  void take(const BatchView<scalar_t<L>, scalar_t<E>>& b, int first, bool covariance) {
    lanes_.clear();
    std::uint32_t unit[Batch::kChains];
    for (int c = 0; c < Batch::kChains; ++c) unit[c] = b.unit[first + c < b.chains ? first + c : first];
    batch_.bind(unit);
    for (int c = first; c < b.chains && c < first + Batch::kChains; c += W)
      lanes_.push_back(make_working_lanes<L, E>(model_, b, c, covariance));
    proposals_.resize(lanes_.size());
    steps_.resize(lanes_.size());
  }

  void initialize() {
    for (const auto& w : lanes_) copy_rows<L>(model_.rows(), w.position, w.x);
    gradients(true);
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      const auto& w = lanes_[k];
      copy_rows<L>(model_.rows(), w.g, w.gradient);
      energy(k);
      copy_rows<E>(model_.cache_rows(), w.ce, w.cache);
    }
  }

  void iterate(const LaunchSpec& spec, std::uint32_t iteration) {
    const auto draw = [&](const Working& w) { return Draw<L>{spec.key, iteration, w.chain, w.unit}; };
    int last = 0;
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      const auto& w = lanes_[k];
      stage_load<L, E>(model_, spec, draw(w), w);
      steps_[k] = Hmc::step_size(w.parameters, spec, draw(w));
      proposals_[k] = Hmc::begin<L, E>(model_, w.parameters, spec, draw(w), steps_[k], w.x, w.p, w.g);
      last = std::max(last, static_cast<int>(reduce_max(proposals_[k].steps)));
    }
    for (int s = 1; s <= last; ++s) {
      for (std::size_t k = 0; k < lanes_.size(); ++k)
        Hmc::move(model_, lanes_[k].parameters, s, steps_[k], proposals_[k].steps, lanes_[k].x, lanes_[k].p);
      gradients(s == last || model_.joint());
      for (std::size_t k = 0; k < lanes_.size(); ++k) {
        const auto& w = lanes_[k];
        Hmc::push(model_, w.parameters, s, steps_[k], proposals_[k].steps, w.x, w.g, w.p);
      }
    }
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      const auto& w = lanes_[k];
      Hmc::end(model_, w.p, proposals_[k]);
      energy(k);
      const E a = stage_decide<L, E>(model_, spec, draw(w), proposals_[k], w);
      if (spec.record || w.draws != nullptr)
        stage_accumulate<L, E>(model_, spec, draw(w), a, proposals_[k], w);
    }
  }

 private:
  /// At the working positions, into the working gradients; with values, these too.
  void gradients(bool values) {
    const int d = model_.dim();
    for (std::size_t k = 0; k < lanes_.size(); ++k)
      for (int j = 0; j < d; ++j) store(batch_.position(j) + k * W, lanes_[k].x[j]);
    batch_.evaluate(values);
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      const auto& w = lanes_[k];
      for (int j = 0; j < d; ++j) w.g.set(j, load<L>(batch_.gradient(j) + k * W));
      model_.template finish_gradient<L>(cast<L>(value(k)), w.x, w.parameters, w.g);
    }
  }
  E value(std::size_t k) const { return load<E>(batch_.value() + k * W); }
  /// The model's energies from the target's values at the working positions.
  void energy(std::size_t k) {
    const auto& w = lanes_[k];
    if constexpr (std::is_same_v<L, E>) {
      model_.template finish_log_density<E>(value(k), w.x, w.energy_parameters, w.ce);
    } else {
      copy_rows<E>(model_.rows(), w.x, w.xe);
      model_.template finish_log_density<E>(value(k), w.xe, w.energy_parameters, w.ce);
    }
  }

  const Model& model_;
  Batch& batch_;
  std::vector<Working> lanes_;
  std::vector<Proposal<L, E>> proposals_;
  std::vector<L> steps_;
};

/// Runs `body(block)` for every block of chains, in parallel.
template <class L, class E, class Model, class Body>
void for_each_block(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    int threads, Body body) {
  using Batch = typename decltype(model.density)::template Batch<L, E>;
  const int blocks = (b.chains + Batch::kChains - 1) / Batch::kChains;
#pragma omp parallel num_threads(threads < blocks ? threads : blocks)
  {
    const FlushToZero guard;
    Batch batch(model.density);
    ChainBlock<L, E, Model, Batch> block(model, batch);
#pragma omp for schedule(dynamic)
    for (int k = 0; k < blocks; ++k) {
      block.take(b, k * Batch::kChains, covariance);
      body(block);
    }
  }
}

template <class L, class E, class Model>
void advance_batch(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, const LaunchSpec& spec,
                   int threads) {
  for_each_block<L, E>(model, b, spec.covariance, threads, [&](auto& block) {
    for (std::uint32_t iteration = spec.begin; iteration < spec.end; ++iteration)
      block.iterate(spec, iteration);
  });
}

template <class L, class E, class Model>
void initialize_batch(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, int threads) {
  for_each_block<L, E>(model, b, false, threads, [](auto& block) { block.initialize(); });
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
