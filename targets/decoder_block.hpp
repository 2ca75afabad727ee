// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log densities and gradients of a decoder for a block of chains on the CPU, by Eigen's matrix products.
#include <vector>

#include "kernels/block_density.hpp"
#include "targets/dense_layer.hpp"
#include "targets/packed_product.hpp"

namespace lockstep {

/// Chains run along the rows of every matrix, so that each is [unit][chain] in memory and packs work on it
/// element by element. All products have the same shapes in every call: Eigen then adds in the same order for
/// every chain (a test holds it to that).
template <class Network, class L, class E>
class DecoderBlock final : public BlockDensity<scalar_t<L>, scalar_t<E>> {
  using R = scalar_t<L>;
  using Matrix = typename PackedProduct<R>::Matrix;

 public:
  /// A multiple of 48 rows, which Eigen's kernels take at a time with AVX-512, and of a tile.
  static constexpr int kChains = 192;

  DecoderBlock(const Network& network, int) : network_(network), value_(kChains) {
    h_.push_back(Matrix::Zero(kChains, network.dim));
    back_ = h_;
    for (int l = 0; l < network.num_layers; ++l) {
      const auto& layer = network.layers[l];
      h_.push_back(Matrix::Zero(kChains, layer.out));
      back_.push_back(h_.back());
      const R* w = layer.weight.template get<L>();
      up_.emplace_back(kChains, w, layer.in, layer.out, false);
      down_.emplace_back(kChains, w, layer.in, layer.out, true);
    }
    image_ = h_.back();
  }

  int chains() const override { return kChains; }

  /// The image that each chain sees is its unit's.
  void bind(const std::uint32_t* unit, int) override {
    const R* images = network_.images.template get<L>();
    for (int p = 0; p < network_.pixels; ++p)
      for (int c = 0; c < kChains; ++c)
        image_(c, p) = images[std::size_t(unit[c] % network_.items) * network_.pixels + p];
  }

  void evaluate(const BlockPoint<R, scalar_t<E>>& at) override {
    const int last = network_.num_layers;
    const bool values = at.value != nullptr || at.log_density != nullptr;
    each(h_[0],
         [&](int j, R* to) { store(to, load<L>(at.x + element(to - &h_[0](0, j), j, at.state_stride))); });
    for (int l = 0; l < last; ++l) {
      up_[l](h_[l], h_[l + 1]);
      if (l + 1 < last)
        each(h_[l + 1], [&](int j, R* at) {
          store(at, activate(network_.layers[l].activation, load<L>(at) + bias(l, j)));
        });
    }
    if (values) value_.assign(kChains, scalar_t<E>(network_.log_norm()));
    if (network_.noise > 0)
      normal_likelihood(values);
    else
      values ? likelihood<true>() : likelihood<false>();
    for (int l = last - 1; l >= 0 && at.gradient != nullptr; --l) {
      down_[l](back_[l + 1], back_[l]);
      if (l > 0)
        each(back_[l], [&](int j, R* at) {
          const L h = load<L>(&h_[l](at - &back_[l](0, j), j));
          store(at, load<L>(at) * slope(network_.layers[l - 1].activation, h));
        });
    }
    if (at.gradient != nullptr)
      each(back_[0], [&](int j, R* from) {
        const std::ptrdiff_t c = from - &back_[0](0, j);
        store(at.gradient + element(c, j, at.state_stride), load<L>(from) - load<L>(&h_[0](c, j)));
      });
    if (values)
      for (int c = 0; c < kChains; ++c) {
        scalar_t<E> square = 0;
        for (int i = 0; i < network_.dim; ++i) square += scalar_t<E>(h_[0](c, i)) * scalar_t<E>(h_[0](c, i));
        value_[c] -= square / 2;
        const std::ptrdiff_t to = element(c, 0, at.value_stride);
        if (at.value != nullptr) at.value[to] = R(value_[c]);
        if (at.log_density != nullptr) at.log_density[to] = value_[c];
      }
  }
  void modes(const scalar_t<E>*, std::ptrdiff_t, scalar_t<E>* mode) override {
    std::fill(mode, mode + kChains, scalar_t<E>(0));
  }
  void quantities(const scalar_t<E>*, std::ptrdiff_t, scalar_t<E>*, std::ptrdiff_t) override {}

 private:
  static constexpr int W = lane_width<L>;
  static constexpr int kTogether = 32;  // terms that are added in the precision of the state

  /// Of chain c and a row, in memory of the block driver.
  static std::ptrdiff_t element(std::ptrdiff_t c, int row, std::ptrdiff_t stride) {
    return c / W * stride + row * W + c % W;
  }
  L bias(int l, int j) const { return L(network_.layers[l].bias.template get<L>()[j]); }
  /// f(column, pack) for all packs of a matrix.
  template <class F>
  static void each(Matrix& m, F&& f) {
    for (int j = 0; j < m.cols(); ++j)
      for (int c = 0; c < kChains; c += W) f(j, &m(c, j));
  }

  /// x - sigmoid(y) from the logits, and the log likelihood sum_p x_p y_p - log(1 + exp y_p).
  template <bool kValues>
  void likelihood() {
    const int l = network_.num_layers;
    Matrix& logits = h_[l];
    for (int first = 0; first < network_.pixels; first += kTogether)
      for (int c = 0; c < kChains; c += W) {
        // log(1 + exp y) = max(y, 0) + log(1 + exp -|y|), and one logarithm of a product of 32 of the latter.
        L sum = L(0), product = L(1);
        for (int p = first; p < first + kTogether && p < network_.pixels; ++p) {
          const L y = load<L>(&logits(c, p)) + bias(l - 1, p), x = load<L>(&image_(c, p));
          const L e = exp(-abs(y)), one = L(1) + e, r = L(1) / one;
          store(&back_[l](c, p), x - select(y > L(0), r, e * r));
          if constexpr (kValues) {
            sum = fma(x, y, sum) - max(y, L(0));
            product = product * one;
          }
        }
        if constexpr (kValues) store(&value_[c], load<E>(&value_[c]) + cast<E>(sum - log(product)));
      }
  }

  /// (x - y) / noise^2, and -((x - y) / noise)^2 / 2.
  void normal_likelihood(bool values) {
    const int l = network_.num_layers;
    const L precision = L(R(1 / (network_.noise * network_.noise)));
    for (int p = 0; p < network_.pixels; ++p)
      for (int c = 0; c < kChains; c += W) {
        const L error = load<L>(&image_(c, p)) - (load<L>(&h_[l](c, p)) + bias(l - 1, p));
        store(&back_[l](c, p), error * precision);
        if (values)
          store(&value_[c], nfma(cast<E>(error * precision) * E(0.5), cast<E>(error), load<E>(&value_[c])));
      }
  }

  const Network& network_;
  std::vector<PackedProduct<R>> up_, down_;  // [layer]: with its weights, and with their transpose
  std::vector<Matrix> h_, back_;             // [layer]: activations, and the log density's gradient in them
  Matrix image_;
  std::vector<scalar_t<E>> value_;
};

}  // namespace lockstep
