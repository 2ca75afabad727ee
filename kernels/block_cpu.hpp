// SPDX-License-Identifier: Apache-2.0
#pragma once
// The block driver on the CPU: a block of chains goes through the stages of an iteration together, and the density
// and the transition stand behind calls for the whole block. So each transition is compiled once for a model, and each
// density once, whatever they meet. Blocks share nothing: each runs through all iterations of a launch on one thread,
// its working set in that thread's cache. Same stage functions as the fused driver, so the same bits.
#include <omp.h>

#include <algorithm>
#include <concepts>
#include <span>
#include <vector>

#include "kernels/block_density.hpp"
#include "kernels/launch_cpu.hpp"
#include "kernels/transition.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

// Lane operations are named in full: here those on packs would hide those on scalars.

/// An iteration of a block, its chains in groups of lanes.
template <class L, class E, class Model>
struct BlockIteration {
  using Group = Lanes<L, E, GroupRows<L>, GroupRows<E>>;
  const Model& model;
  const LaunchSpec& spec;
  std::uint32_t number;
  std::span<const Group> groups;
  std::span<Proposal<L, E>> proposals;  // of each group
  Draw<L> draw(const Group& w) const { return {spec.key, number, w.chain, w.unit}; }
};

/// A transition for a model (kernels/transition.hpp), called for a block.
template <class L, class E, class Model>
class BlockTransition {
 public:
  using Iteration = BlockIteration<L, E, Model>;
  virtual ~BlockTransition() = default;
  /// Returns how many gradients the chain that wants most wants.
  virtual int begin(const Iteration& t) const = 0;
  virtual void move(const Iteration& t, int s) const = 0;
  virtual void push(const Iteration& t, int s) const = 0;
  virtual void end(const Iteration& t) const = 0;
};

/// What kernels/transition.hpp asks of a transition, for one model in one precision.
template <class T, class L, class E, class Model>
concept TransitionFunction = requires(const BlockIteration<L, E, Model>& t,
                                      const typename BlockIteration<L, E, Model>::Group& w,
                                      Proposal<L, E>& proposal) {
  { T::info() } -> std::same_as<TransitionInfo>;
  { T::template known_steps<scalar_t<L>>(t.spec, t.number) } -> std::same_as<int>;
  { T::template begin<L, E>(t.model, t.spec, t.draw(w), w) } -> std::same_as<Proposal<L, E>>;
  T::move(t.model, 1, proposal, w);
  T::push(t.model, 1, proposal, w);
  T::end(t.model, proposal, w);
};

template <class Transition, class L, class E, class Model>
requires TransitionFunction<Transition, L, E, Model>
class BlockTransitionOf final : public BlockTransition<L, E, Model> {
  using Iteration = BlockIteration<L, E, Model>;

 public:
  int begin(const Iteration& t) const override {
    int last = 0;
    for (std::size_t k = 0; k < t.groups.size(); ++k) {
      const auto& w = t.groups[k];
      t.proposals[k] = Transition::template begin<L, E>(t.model, t.spec, t.draw(w), w);
      last = std::max(last, static_cast<int>(lockstep::reduce_max(t.proposals[k].steps)));
    }
    return last;
  }
  void move(const Iteration& t, int s) const override {
    for (std::size_t k = 0; k < t.groups.size(); ++k)
      Transition::move(t.model, s, t.proposals[k], t.groups[k]);
  }
  void push(const Iteration& t, int s) const override {
    for (std::size_t k = 0; k < t.groups.size(); ++k)
      Transition::push(t.model, s, t.proposals[k], t.groups[k]);
  }
  void end(const Iteration& t) const override {
    for (std::size_t k = 0; k < t.groups.size(); ++k) Transition::end(t.model, t.proposals[k], t.groups[k]);
  }
};

/// The chains [first, first + density.chains()) of a batch, as far as there are so many. Its memory is [group][row]
/// [chain of the group].
template <class L, class E, class Model>
class ChainBlock {
  using R = scalar_t<L>;
  using S = scalar_t<E>;
  using Iteration = BlockIteration<L, E, Model>;
  static constexpr int W = lane_width<L>;
  static constexpr bool kOnePrecision = std::is_same_v<L, E>;

 public:
  ChainBlock(const Model& model, BlockDensity<R, S>& density)
      : model_(model),
        density_(density),
        chains_(density.chains()),
        state_rows_(3 * model.rows()),
        energy_rows_(model.rows() + model.cache_rows()),
        quantity_rows_(model.samples() * model.density.quantities()),
        state_(std::size_t(state_rows_) * chains_),
        energy_(std::size_t(energy_rows_) * chains_),
        value_(std::size_t(model.samples()) * chains_),
        log_density_(std::size_t(model.samples()) * chains_),
        quantities_(std::size_t(quantity_rows_) * chains_),
        modes_(chains_) {}

  void take(const BatchView<R, S>& b, int first, bool covariance) {
    groups_.clear();
    const int count = std::min(chains_, b.chains - first);
    std::vector<std::uint32_t> unit(chains_);
    for (int c = 0; c < chains_; ++c) unit[c] = b.unit[first + (c < count ? c : 0)];
    density_.bind(unit.data(), count);
    for (int c = 0, k = 0; c < count; c += W, ++k)
      groups_.push_back(make_lanes<L, E>(
          model_, b, first + c, covariance,
          make_workspace(model_, rows<L>(state_, state_rows_, k), rows<E>(energy_, energy_rows_, k))));
    proposals_.assign(groups_.size(), {});
    beta_.resize(groups_.size());
  }

  void initialize() {
    for (const auto& w : groups_) copy_rows<L>(model_.rows(), w.position, w.x);
    evaluate(true, true);
    for (const auto& w : groups_) {
      copy_rows<L>(model_.rows(), w.g, w.gradient);
      copy_rows<E>(model_.cache_rows(), w.ce, w.cache);
    }
  }

  void iterate(const BlockTransition<L, E, Model>& transition, const LaunchSpec& spec, std::uint32_t number) {
    const Iteration t{model_, spec, number, groups_, proposals_};
    for (const auto& w : groups_) stage_load<L, E>(model_, spec, t.draw(w), w);
    const int last = transition.begin(t);
    for (int s = 1; s <= last; ++s) {
      transition.move(t, s);
      evaluate(true, s == last);
      transition.push(t, s);
    }
    if (last == 0) evaluate(false, true);
    transition.end(t);
    for (std::size_t k = 0; k < groups_.size(); ++k)
      stage_decide<L, E>(model_, spec, t.draw(groups_[k]), proposals_[k], groups_[k]);
    accumulate(t);
  }

 private:
  /// Of group k, in an array of so many rows.
  template <class V, class Array>
  static GroupRows<V> rows(Array& array, int count, std::size_t k) {
    return {array.data() + k * count * W};
  }

  /// The model's gradients and energies at the working positions, from the target's.
  void evaluate(bool gradients, bool energies) {
    const int n = model_.samples();
    const bool finishes = gradients && model_.gradient_takes_value();
    if (energies && !kOnePrecision)
      for (const auto& w : groups_) copy_rows<E>(model_.rows(), w.x, w.xe);
    for (int i = 0; i < n; ++i) {
      const std::size_t at = std::size_t(i) * model_.dim() * W;
      BlockPoint<R, S> point{.x = state_.data() + at};
      point.state_stride = std::ptrdiff_t(state_rows_) * W;
      point.value_stride = std::ptrdiff_t(n) * W;
      if constexpr (kOnePrecision) {
        point.energy_x = point.x;
        point.energy_stride = point.state_stride;
      } else {
        point.energy_x = energy_.data() + at;
        point.energy_stride = std::ptrdiff_t(energy_rows_) * W;
      }
      if (gradients) point.gradient = state_.data() + std::size_t(2) * model_.rows() * W + at;
      if (finishes) point.value = value_.data() + i * W;
      if (energies) point.log_density = log_density_.data() + i * W;
      density_.evaluate(point);
    }
    for (std::size_t k = 0; k < groups_.size() && (finishes || energies); ++k) {
      const auto& w = groups_[k];
      if (finishes) model_.template finish_gradient<L>(rows<L>(value_, n, k), w.x, w.parameters, w.g);
      const auto log_density = rows<E>(log_density_, n, k);
      if (energies) {
        if constexpr (kOnePrecision)
          model_.template finish_log_density<E>(log_density, w.x, w.energy_parameters, w.ce);
        else
          model_.template finish_log_density<E>(log_density, w.xe, w.energy_parameters, w.ce);
      }
    }
  }

  void accumulate(const Iteration& t) {
    const auto wanted = [&](const auto& w) { return t.spec.record || w.draws != nullptr; };
    if (std::none_of(groups_.begin(), groups_.end(), wanted)) return;
    const int count = model_.density.quantities();
    const std::ptrdiff_t stride = std::ptrdiff_t(energy_rows_) * W;
    for (const auto& w : groups_) copy_rows<E>(model_.rows(), w.position, w.xe);
    for (int i = 0; i < model_.samples() && count > 0 && t.spec.record; ++i)
      density_.quantities(energy_.data() + std::size_t(i) * model_.dim() * W, stride,
                          quantities_.data() + std::size_t(i) * count * W,
                          std::ptrdiff_t(quantity_rows_) * W);
    for (std::size_t k = 0; k < groups_.size(); ++k)
      beta_[k] = stage_sum<L, E>(model_, t.spec, t.draw(groups_[k]), groups_[k], [&](int i, auto&& put) {
        const auto values = rows<E>(quantities_, quantity_rows_, k);
        for (int q = 0; q < count; ++q) put(q, values[i * count + q]);
      });
    density_.modes(energy_.data(), stride, modes_.data());
    for (std::size_t k = 0; k < groups_.size(); ++k)
      if (wanted(groups_[k]))
        stage_store<L, E>(model_, t.spec, t.number, proposals_[k],
                          Drawn<E>{lockstep::load<E>(&modes_[k * W]), beta_[k]}, groups_[k]);
  }

  const Model& model_;
  BlockDensity<R, S>& density_;
  const int chains_, state_rows_, energy_rows_, quantity_rows_;
  AlignedVector<R> state_;               // position, momentum, gradient
  AlignedVector<S> energy_;              // position, cache
  AlignedVector<R> value_;               // [sample]
  AlignedVector<S> log_density_;         // [sample]
  AlignedVector<S> quantities_, modes_;  // [sample][quantity], [1]
  std::vector<typename Iteration::Group> groups_;
  std::vector<Proposal<L, E>> proposals_;
  std::vector<E> beta_;  // of Drawn
};

/// How many chains a block has, where its density does not say: as many as stay in the caches near a core, since what a
/// stage costs beside its arithmetic is shared by all of a block; but few enough for the threads. No bit depends on it.
template <class L, class E, class Model>
int block_chains(const Model& model, int chains, int threads) {
  constexpr int kBytes = 48 << 10, kMost = 4 * kTile;
  const std::size_t bytes =
      3 * model.rows() * sizeof(scalar_t<L>) + (model.rows() + model.cache_rows()) * sizeof(scalar_t<E>);
  int size = lane_width<L>;
  while (size < kMost && 2 * size * bytes <= kBytes && 2 * size * 4 * threads <= chains) size *= 2;
  return size;
}

/// Runs `body(block)` for every block of chains, in parallel.
template <class L, class E, class Model, class Body>
void for_each_block(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    int threads, const BlockDensityMaker<scalar_t<L>, scalar_t<E>>& make, Body body) {
  const int size = block_chains<L, E>(model, b.chains, threads);
  auto first = make(size);
  const int chains = first->chains(), blocks = (b.chains + chains - 1) / chains,
            used = std::min(threads, blocks);
#pragma omp parallel num_threads(used) if (used > 1)
  {
    const FlushToZero guard;
    const auto density = omp_get_thread_num() == 0 ? std::move(first) : make(size);
    ChainBlock<L, E, Model> block(model, *density);
#pragma omp for schedule(dynamic)
    for (int k = 0; k < blocks; ++k) {
      block.take(b, k * chains, covariance);
      body(block);
    }
  }
}

/// A density without products over chains, pack by pack.
template <class Density, class L, class E>
class PointwiseBlock final : public BlockDensity<scalar_t<L>, scalar_t<E>> {
  using R = scalar_t<L>;
  using S = scalar_t<E>;
  static constexpr int W = lane_width<L>;

 public:
  PointwiseBlock(const Density& density, int chains) : density_(density), chains_(chains) {}
  int chains() const override { return chains_; }
  void bind(const std::uint32_t*, int count) override { count_ = count; }
  void evaluate(const BlockPoint<R, S>& at) override {
    in_dimension(density_, [&]<int D>() {
      for (int k = 0; k * W < count_ && at.gradient != nullptr; ++k) {
        const L value = density_.template log_density<D, L>(rows<L>(at.x, k * at.state_stride),
                                                            GroupRows<L>{at.gradient + k * at.state_stride});
        if (at.value != nullptr) lockstep::store(at.value + k * at.value_stride, value);
      }
      for (int k = 0; k * W < count_ && at.log_density != nullptr; ++k)
        lockstep::store(
            at.log_density + k * at.value_stride,
            density_.template log_density<D, E>(rows<E>(at.energy_x, k * at.energy_stride), NoGradient{}));
    });
  }
  void modes(const S* x, std::ptrdiff_t x_stride, S* mode) override {
    in_dimension(density_, [&]<int D>() {
      for (int k = 0; k * W < count_; ++k)
        lockstep::store(mode + k * W, density_.template mode<D, E>(rows<E>(x, k * x_stride)));
    });
  }
  void quantities(const S* x, std::ptrdiff_t x_stride, S* values, std::ptrdiff_t stride) override {
    in_dimension(density_, [&]<int D>() {
      for (int k = 0; k * W < count_; ++k)
        density_.template quantity<D, E>(rows<E>(x, k * x_stride), [&](int q, E value) {
          lockstep::store(values + k * stride + q * W, value);
        });
    });
  }

 private:
  template <class V>
  static GroupRows<V> rows(const scalar_t<V>* x, std::ptrdiff_t at) {
    return {const_cast<scalar_t<V>*>(x) + at};
  }
  const Density& density_;
  const int chains_;
  int count_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
