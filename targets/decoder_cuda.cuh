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

/// The row of a block of chains that a block of threads works on: x counts rows, y blocks.
__device__ inline std::size_t decoder_row() {
  return (std::size_t(blockIdx.y) * gridDim.x + blockIdx.x) * kDecoderChains;
}
/// h -> activation(h + bias), a block of threads for every unit and block of chains.
template <class R>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_activation_kernel(R* h, const R* bias, Activation activation) {
  h += decoder_row();
  const R b = bias[blockIdx.x];
  for (int c = threadIdx.x; c < kDecoderChains; c += kDecoderThreads) h[c] = activate(activation, h[c] + b);
}
/// back -> back * slope at h.
template <class R>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_slope_kernel(R* back, const R* h, Activation activation) {
  const std::size_t first = decoder_row();
  for (int c = threadIdx.x; c < kDecoderChains; c += kDecoderThreads)
    back[first + c] = back[first + c] * slope(activation, h[first + c]);
}

/// The chains and what they see.
template <class R>
struct DecoderView {
  const std::uint32_t* unit;
  int chains;
  const R *images, *bias;  // [item][pixel], and that of the logits
  int items, pixels;
  R precision;  // of normal noise
};

/// From the logits to the log likelihood's gradient in them, in place, and its sums over kDecoderTogether
/// pixels, where `sums` [block][group][chain] is given. Threads for 128 chains and one group of pixels in a block.
/// As on the CPU, log(1 + exp y) = max(y, 0) + log(1 + exp -|y|), with one logarithm of a product of the
/// latter.
template <bool kNormal, class R, class E>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_likelihood_kernel(const __grid_constant__ DecoderView<R> view, R* logits, E* sums) {
  const int at_chain = blockIdx.y * kDecoderThreads + threadIdx.x, group = blockIdx.x;
  const int block = at_chain / kDecoderChains, c = at_chain % kDecoderChains;
  const int begin = group * kDecoderTogether, full = begin + kDecoderTogether;
  const int end = full < view.pixels ? full : view.pixels;
  const int chain = at_chain < view.chains ? at_chain : 0;  // padding sees any image
  logits += std::size_t(block) * view.pixels * kDecoderChains + c;
  const R* image = view.images + std::size_t(view.unit[chain] % view.items) * view.pixels;
  R sum = 0, product = 1;
  E squares = 0;
  for (int p = begin; p < end; ++p) {
    R& at = logits[std::size_t(p) * kDecoderChains];
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
    sums[(std::size_t(block) * gridDim.x + group) * kDecoderChains + c] =
        kNormal ? squares : E(sum - log(product));
}

/// What the likelihood gives, [block][row][chain]: the gradient in z, and sums of the log density.
template <class R, class E>
struct DecoderLikelihood {
  E log_norm;
  int dim, groups;
  const R* gradient;
  const E* sums;
};

/// Both with the prior's share: a thread for every chain.
template <class R, class E>
__global__ void __launch_bounds__(kDecoderThreads)
    decoder_prior_kernel(const __grid_constant__ DecoderLikelihood<R, E> likelihood,
                         const __grid_constant__ DevicePoint<R, E> to) {
  const int chain = blockIdx.x * kDecoderThreads + threadIdx.x;
  const int block = chain / kDecoderChains, c = chain % kDecoderChains;
  const auto row = [=](int rows, int i) { return (std::size_t(block) * rows + i) * kDecoderChains + c; };
  const std::ptrdiff_t state = block * to.state_stride + c, value_at = block * to.value_stride + c;
  E square = 0, value = likelihood.log_norm;
  for (int i = 0; i < likelihood.dim; ++i) {
    const std::ptrdiff_t at = state + std::ptrdiff_t(i) * kDecoderChains;
    const R x = to.x[at];
    if (to.gradient != nullptr) to.gradient[at] = likelihood.gradient[row(likelihood.dim, i)] - x;
    square += E(x) * E(x);
  }
  if (to.value == nullptr && to.log_density == nullptr) return;
  for (int k = 0; k < likelihood.groups; ++k) value += likelihood.sums[row(likelihood.groups, k)];
  value -= square / 2;
  if (to.value != nullptr) to.value[value_at] = R(value);
  if (to.log_density != nullptr) to.log_density[value_at] = value;
}

/// Matrices are [block][unit][chain of a block]. A product goes over all blocks at once, and over two where there is one,
/// the second of which nobody reads: the same algorithm however many there are, so that the bits of a chain do not depend
/// on their number or on where it stands (measured: cuBLAS takes another for one block alone).
template <class Network, class R, class E>
class DecoderCuda : public CudaDensity<R, E> {
 public:
  explicit DecoderCuda(const Network& network)
      : network_(network), groups_((network.pixels + kDecoderTogether - 1) / kDecoderTogether) {}

  /// Large enough to fill a device with the wide layers; a batch of few chains pays for as many.
  int chains() const override { return kDecoderChains; }
  int dim() const override { return network_.dim; }
  int quantities() const override { return 0; }
  std::size_t bytes_of_chain() const override {
    std::size_t rows = 0;
    for (int l = 0; l < network_.num_layers; ++l) rows += network_.layers[l].in + network_.layers[l].out;
    return rows * sizeof(R) + groups_ * sizeof(E);
  }
  void bind(const std::uint32_t* unit, int chains, const BlockGrid& grid) override {
    unit_ = unit;
    chains_ = chains;
    stream_ = grid.stream;
    blocks_ = (chains + kDecoderChains - 1) / kDecoderChains;
    products_ = blocks_ < 2 ? 2 : blocks_;
    cublas_ = std::make_unique<Cublas>(stream_);
    sums_ = DeviceArray<E>(rows(groups_));
    for (int l = 0; l < network_.num_layers; ++l) {
      above_.emplace_back(rows(network_.layers[l].out));
      below_.emplace_back(rows(network_.layers[l].in));
    }
  }

  void evaluate(const DevicePoint<R, E>& at) override {
    const int last = network_.num_layers - 1;
    for (int l = 0; l <= last; ++l) {
      const auto& layer = network_.layers[l];
      const std::ptrdiff_t stride = l > 0 ? block(layer.in) : blocks_ > 1 ? at.state_stride : 0;
      cublas_->multiply(true, {kDecoderChains, layer.out, layer.in}, l == 0 ? at.x : above(l - 1), weight(l),
                        above(l), {products_, stride, block(layer.out)});
      if (l < last)
        enqueue(stream_, dim3(layer.out, blocks_), kDecoderThreads, decoder_activation_kernel<R>, above(l),
                bias(l), layer.activation);
    }
    likelihood(at.value != nullptr || at.log_density != nullptr);
    for (int l = last; l >= 0 && at.gradient != nullptr; --l) {
      const auto& layer = network_.layers[l];
      cublas_->multiply(false, {kDecoderChains, layer.in, layer.out}, l == last ? above(l) : below(l + 1),
                        weight(l), below(l), {products_, block(layer.out), block(layer.in)});
      if (l > 0)
        enqueue(stream_, dim3(layer.in, blocks_), kDecoderThreads, decoder_slope_kernel<R>, below(l),
                above(l - 1), network_.layers[l - 1].activation);
    }
    enqueue(stream_, blocks_ * kDecoderChains / kDecoderThreads, kDecoderThreads, decoder_prior_kernel<R, E>,
            DecoderLikelihood<R, E>{E(network_.log_norm()), network_.dim, groups_, below(0), sums_.data()},
            at);
  }
  /// There is one mode, 0, as the memory has it from the start.
  void modes(const E*, std::ptrdiff_t, E*, std::ptrdiff_t) override {}
  void quantities(const E*, std::ptrdiff_t, E*, std::ptrdiff_t) override {}

 private:
  /// `above(l)` are the activations of layer l, `below(l)` the log density's gradient in what it is given; that in the
  /// logits takes their place.
  R* above(int l) const { return above_[l].data(); }
  R* below(int l) const { return below_[l].data(); }
  static std::ptrdiff_t block(int rows) { return std::ptrdiff_t(rows) * kDecoderChains; }
  std::size_t rows(int count) const { return std::size_t(count) * kDecoderChains * products_; }

  void likelihood(bool values) {
    const int last = network_.num_layers - 1;
    const double noise = network_.noise;
    const DecoderView<R> view{
        unit_,          chains_,         network_.images.template get<R>(),        bias(last),
        network_.items, network_.pixels, noise > 0 ? R(1 / (noise * noise)) : R(0)};
    const dim3 grid(groups_, blocks_ * kDecoderChains / kDecoderThreads);
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
  int chains_ = 0, blocks_ = 0, products_ = 0;
  const int groups_;
  DeviceArray<E> sums_;
  std::vector<DeviceArray<R>> above_, below_;
};

}  // namespace lockstep
