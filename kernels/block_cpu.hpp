// SPDX-License-Identifier: Apache-2.0
#pragma once
// The block driver on the CPU: a block of chains goes through the stages of an iteration together, and the density
// and the transition stand behind calls for the whole block. So each transition is compiled once for a model, and each
// density once, whatever they meet. Blocks share nothing: each runs through all iterations of a launch on one thread,
// its working set in that thread's cache. Same stage functions as the fused driver, so the same bits.
#include <omp.h>

#include "kernels/chain_block.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

// Lane operations are named in full: here those on packs would hide those on scalars.

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

/// How blocks are made, and by how many threads.
template <class L, class E, class Model>
struct BlockWork {
  int threads;
  BlockDensityMaker<scalar_t<L>, scalar_t<E>> density;
  typename ChainBlock<L, E, Model>::Parts parts;
};

/// Runs `body(block)` for every block of chains, in parallel.
template <class L, class E, class Model, class Body>
void for_each_block(const Model& model, const BatchView<scalar_t<L>, scalar_t<E>>& b, bool covariance,
                    const BlockWork<L, E, Model>& work, Body body) {
  const int size = block_chains<L, E>(model, b.chains, work.threads);
  auto first = work.density(size);
  const int chains = first->chains(), blocks = (b.chains + chains - 1) / chains,
            used = std::min(work.threads, blocks);
#pragma omp parallel num_threads(used) if (used > 1)
  {
    const FlushToZero guard;
    const auto density = omp_get_thread_num() == 0 ? std::move(first) : work.density(size);
    ChainBlock<L, E, Model> block(model, *density, work.parts);
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
