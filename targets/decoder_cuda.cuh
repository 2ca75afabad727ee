// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log densities and gradients of a decoder for all chains of a batch on a GPU, by cuBLAS;
// targets/decoder_block.hpp has the same on the CPU.
#include <vector>

#include "kernels/block_cuda.cuh"
#include "targets/cublas.cuh"
#include "targets/dense_layer.hpp"

namespace lockstep {

inline constexpr int kDecoderChains = 1024;  // of a block
inline constexpr int kDecoderThreads = 128;
inline constexpr int kDecoderTogether = 32;  // terms that are added in the precision of the state

/// h -> activation(h + bias), a block of threads for every unit.
template <class R>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_activation_kernel(R* h, const R* bias, Activation activation) {
  h += std::size_t(blockIdx.x) * kDecoderChains;
  const R b = bias[blockIdx.x];
  for (int c = threadIdx.x; c < kDecoderChains; c += kDecoderThreads) h[c] = activate(activation, h[c] + b);
}
/// back -> back * slope at h.
template <class R>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_slope_kernel(R* back, const R* h, Activation activation) {
  const std::size_t first = std::size_t(blockIdx.x) * kDecoderChains;
  for (int c = threadIdx.x; c < kDecoderChains; c += kDecoderThreads)
    back[first + c] = back[first + c] * slope(activation, h[first + c]);
}

/// The chains of a block and what they see.
template <class R>
struct DecoderView {
  const std::uint32_t* unit;  // of all chains
  int first, chains;          // of the block; of all
  const R *images, *bias;     // [item][pixel], and that of the logits
  int items, pixels;
  R precision;  // of normal noise
};

/// From the logits to the log likelihood's gradient in them, in place, and its sums over kDecoderTogether
/// pixels, where `sums` [group][chain] is given. Threads for 128 chains and one group of pixels in a block.
/// As on the CPU, log(1 + exp y) = max(y, 0) + log(1 + exp -|y|), with one logarithm of a product of the
/// latter.
template <bool kNormal, class R, class E>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_likelihood_kernel(const __grid_constant__ DecoderView<R> view, R* logits, E* sums) {
  const int c = blockIdx.y * kDecoderThreads + threadIdx.x, group = blockIdx.x;
  const int begin = group * kDecoderTogether, full = begin + kDecoderTogether;
  const int end = full < view.pixels ? full : view.pixels;
  const int chain = view.first + c < view.chains ? view.first + c : 0;  // padding sees any image
  const R* image = view.images + std::size_t(view.unit[chain] % view.items) * view.pixels;
  R sum = 0, product = 1;
  E squares = 0;
  for (int p = begin; p < end; ++p) {
    R& at = logits[std::size_t(p) * kDecoderChains + c];
    const R y = at + view.bias[p], x = image[p];
    if constexpr (kNormal) {
      const R error = x - y;
      at = error * view.precision;
      squares = nfma(E(at) * E(0.5), E(error), squares);
    } else {
      const R e = exp(-abs(y)), one = R(1) + e, r = R(1) / one;
      at = x - select(y > R(0), r, e * r);
      sum = fma(x, y, sum) - max(y, R(0));
      product = product * one;
    }
  }
  if (sums != nullptr)
    sums[std::size_t(group) * kDecoderChains + c] = kNormal ? squares : E(sum - log(product));
}

/// What a log density is made of beside the prior's squares, and where it goes, in either precision; null: it is not
/// wanted.
template <class R, class E>
struct DecoderDensity {
  E log_norm;
  int groups;
  const E* sums;
  R* values;
  E* log_densities;
};

/// The prior's share of the gradient, where it is not null, and the log density: a thread for every chain.
template <class R, class E>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_prior_kernel(int dim, const R* z, R* gradient, DecoderDensity<R, E> to) {
  const int c = blockIdx.x * kDecoderThreads + threadIdx.x;
  E square = 0, value = to.log_norm;
  for (int i = 0; i < dim; ++i) {
    const R x = z[std::size_t(i) * kDecoderChains + c];
    if (gradient != nullptr) gradient[std::size_t(i) * kDecoderChains + c] -= x;
    square += E(x) * E(x);
  }
  if (to.values == nullptr && to.log_densities == nullptr) return;
  for (int k = 0; k < to.groups; ++k) value += to.sums[std::size_t(k) * kDecoderChains + c];
  value -= square / 2;
  if (to.values != nullptr) to.values[c] = R(value);
  if (to.log_densities != nullptr) to.log_densities[c] = value;
}

/// Matrices are [unit][chain of a block]. One block after the other, all products of the same shapes: the
/// bits of a chain do not depend on how many there are or where it stands.
template <class Network, class R, class E>
class DecoderCuda : public CudaDensity<R, E> {
 public:
  explicit DecoderCuda(const Network& network)
      : network_(network),
        groups_((network.pixels + kDecoderTogether - 1) / kDecoderTogether),
        sums_(std::size_t(groups_) * kDecoderChains) {
    for (int l = 0; l < network.num_layers; ++l) {
      h_.emplace_back(std::size_t(network.layers[l].out) * kDecoderChains);
      if (l + 1 < network.num_layers) back_.emplace_back(std::size_t(network.layers[l].out) * kDecoderChains);
    }
  }

  /// Large enough to fill a device with the wide layers; a batch of few chains pays for as many.
  int chains() const override { return kDecoderChains; }
  int dim() const override { return network_.dim; }
  int quantities() const override { return 0; }
  void bind(const std::uint32_t* unit, int chains, const BlockGrid& grid) override {
    unit_ = unit;
    chains_ = chains;
    stream_ = grid.stream;
    cublas_ = std::make_unique<Cublas>(stream_);
  }

  void evaluate(const DevicePoint<R, E>& at) override {
    const int last = network_.num_layers - 1;
    for (int block = 0; block * kDecoderChains < chains_; ++block) {
      const R* z = at.x + block * at.state_stride;
      R* g = at.gradient == nullptr ? nullptr : at.gradient + block * at.state_stride;
      for (int l = 0; l <= last; ++l) {
        const auto& layer = network_.layers[l];
        cublas_->multiply(true, {kDecoderChains, layer.out, layer.in}, l == 0 ? z : above(l - 1), weight(l),
                          above(l));
        if (l < last)
          enqueue(stream_, layer.out, kDecoderThreads, decoder_activation_kernel<R>, above(l), bias(l),
                  layer.activation);
      }
      likelihood(block * kDecoderChains, at.value != nullptr || at.log_density != nullptr);
      for (int l = last; l >= 0 && g != nullptr; --l) {
        const auto& layer = network_.layers[l];
        R* below = l == 0 ? g : back(l - 1);
        cublas_->multiply(false, {kDecoderChains, layer.in, layer.out}, back(l), weight(l), below);
        if (l > 0)
          enqueue(stream_, layer.in, kDecoderThreads, decoder_slope_kernel<R>, below, above(l - 1),
                  network_.layers[l - 1].activation);
      }
      const std::ptrdiff_t first = block * at.value_stride;
      const DecoderDensity<R, E> to{E(network_.log_norm()), groups_, sums_.data(),
                                    at.value == nullptr ? nullptr : at.value + first,
                                    at.log_density == nullptr ? nullptr : at.log_density + first};
      enqueue(stream_, kDecoderChains / kDecoderThreads, kDecoderThreads, decoder_prior_kernel<R, E>,
              network_.dim, z, g, to);
    }
  }
  /// There is one mode, 0, as the memory has it from the start.
  void modes(const E*, std::ptrdiff_t, E*, std::ptrdiff_t) override {}
  void quantities(const E*, std::ptrdiff_t, E*, std::ptrdiff_t) override {}

 private:
  /// `above(l)` are the activations of layer l, `back(l)` the log density's gradient in them; the last layer
  /// has the logits, and one array for both.
  R* above(int l) const { return h_[l].data(); }
  R* back(int l) const { return l + 1 < network_.num_layers ? back_[l].data() : h_[l].data(); }

  void likelihood(int first, bool values) {
    const int last = network_.num_layers - 1;
    const double noise = network_.noise;
    const DecoderView<R> view{
        unit_,      first,          chains_,         network_.images.template get<R>(),
        bias(last), network_.items, network_.pixels, noise > 0 ? R(1 / (noise * noise)) : R(0)};
    const dim3 grid(groups_, kDecoderChains / kDecoderThreads);
    E* sums = values ? sums_.data() : nullptr;
    enqueue(stream_, grid, kDecoderThreads,
            noise > 0 ? decoder_likelihood_kernel<true, R, E> : decoder_likelihood_kernel<false, R, E>, view,
            above(last), sums);
  }

  const R* weight(int l) const { return network_.layers[l].weight.template get<R>(); }  // [in][out]
  const R* bias(int l) const { return network_.layers[l].bias.template get<R>(); }

  const Network network_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Cublas> cublas_;
  const std::uint32_t* unit_ = nullptr;
  int chains_ = 0, groups_;
  DeviceArray<E> sums_;
  std::vector<DeviceArray<R>> h_, back_;
};

}  // namespace lockstep
