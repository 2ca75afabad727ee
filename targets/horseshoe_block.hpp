// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log densities and gradients of the horseshoe regression for a block of chains on the CPU, by Eigen's matrix products.
#include <vector>

#include "kernels/block_density.hpp"
#include "targets/dense_layer.hpp"
#include "targets/horseshoe_scale.hpp"
#include "targets/packed_product.hpp"

namespace lockstep {

/// Chains run along the rows of every matrix (targets/decoder_block.hpp). An evaluation passes over the coefficients
/// twice, with what the second needs of the first kept; between them are the products with the cases, [chain][feature]
/// by [feature][case] and back.
template <class Density, class L, class E>
class HorseshoeBlock final : public BlockDensity<scalar_t<L>, scalar_t<E>> {
  using R = scalar_t<L>;
  using S = scalar_t<E>;
  using Matrix = typename PackedProduct<R>::Matrix;
  using Row = typename Density::Row;

 public:
  /// The rows that Eigen's kernels take at a time with AVX-512. The state of more chains leaves the caches.
  static constexpr int kChains = 48;

  HorseshoeBlock(const Density& density, int)
      : density_(density),
        features_(density.features),
        to_cases_(kChains, density.cases.template get<L>(), 1 + features_, density.training, false),
        from_cases_(kChains, density.cases.template get<L>(), 1 + features_, density.training, true),
        coefficients_(Matrix::Zero(kChains, 1 + features_)),
        scale_(Matrix::Zero(kChains, features_)),
        of_tau_(scale_),
        of_slab_(scale_),
        logits_(Matrix::Zero(kChains, density.training)),
        value_(kChains) {}

  int chains() const override { return kChains; }
  void bind(const std::uint32_t*, int count) override { groups_ = (count + W - 1) / W; }

  void evaluate(const BlockPoint<R, S>& at) override {
    const bool values = at.value != nullptr || at.log_density != nullptr;
    for (int k = 0; k < groups_; ++k) values ? prior<true>(k, at) : prior<false>(k, at);
    to_cases_(coefficients_, logits_);
    for (int k = 0; k < groups_; ++k) values ? likelihood<true>(k) : likelihood<false>(k);
    if (at.gradient != nullptr) {
      from_cases_(logits_, coefficients_);
      for (int k = 0; k < groups_; ++k) likelihood_gradient(k, at);
    }
    for (int k = 0; k < groups_ && values; ++k) {
      const E value = load<E>(&value_[k * W]);
      if (at.value != nullptr) store(at.value + k * at.value_stride, cast<L>(value));
      if (at.log_density != nullptr) store(at.log_density + k * at.value_stride, value);
    }
  }
  void modes(const S*, std::ptrdiff_t, S* mode) override { std::fill(mode, mode + kChains, S(0)); }
  void quantities(const S* x, std::ptrdiff_t x_stride, S* values, std::ptrdiff_t stride) override {
    struct Position {
      const S* x;
      E operator[](int row) const { return load<E>(x + row * W); }
    };
    for (int k = 0; k < groups_; ++k)
      density_.template quantity<0, E>(Position{x + k * x_stride},
                                       [&](int q, E value) { store(values + k * stride + q * W, value); });
  }

 private:
  static constexpr int W = lane_width<L>;
  static constexpr int kTogether = 32;  // terms that are added in the precision of the state

  static R* at_column(Matrix& m, int k, int j) { return m.data() + std::ptrdiff_t(j) * kChains + k * W; }

  /// Coefficients, and the priors' shares of the gradient, where it is wanted, and of the log density.
  template <bool kValues>
  void prior(int k, const BlockPoint<R, S>& at) {
    const R* x = at.x + k * at.state_stride;
    R* g = at.gradient == nullptr ? nullptr : at.gradient + k * at.state_stride;
    const L intercept = load<L>(x + Row::kIntercept * W), log_tau = load<L>(x + Row::kLogTau * W),
            log_slab = load<L>(x + Row::kLogSlab * W), log_c = density_.log_c(log_slab);
    const auto common = density_.common_prior(intercept, log_tau, log_slab);
    store(at_column(coefficients_, k, 0), intercept);
    E value = E(S(density_.constant)) + cast<E>(common.value);
    for (int first = 0; first < features_; first += kTogether) {
      L sum = L(0), product = L(1);  // one logarithm of a product of the terms of LogHalfCauchy
      for (int j = first; j < first + kTogether && j < features_; ++j) {
        const L z = load<L>(x + (Row::kZ + j) * W), u = load<L>(x + (Row::kZ + features_ + j) * W);
        const HorseshoeScale<L> s(u, log_tau, log_c);
        store(at_column(coefficients_, k, j + 1), z * s.scale);
        store(at_column(scale_, k, j), s.scale);
        store(at_column(of_tau_, k, j), s.of_tau);
        store(at_column(of_slab_, k, j), s.of_slab);
        const L size = abs(u), e = exp(size * L(R(-2))), one = L(1) + e;
        if (g != nullptr) {
          const L tanh = (L(1) - e) / one;
          store(g + (Row::kZ + j) * W, -z);
          store(g + (Row::kZ + features_ + j) * W, select(u < L(0), tanh, -tanh));
        }
        if constexpr (kValues) {
          sum = fma(z * L(R(-0.5)), z, sum) - size;
          product = product * one;
        }
      }
      if constexpr (kValues) value = value + cast<E>(sum - log(product));
    }
    if (g != nullptr) {
      store(g + Row::kIntercept * W, common.intercept);
      store(g + Row::kLogTau * W, common.log_tau);
      store(g + Row::kLogSlab * W, common.log_slab);
    }
    store(&value_[k * W], value);
  }

  /// From the logits to sigmoid(-logit), and sum log sigmoid(logit).
  template <bool kValues>
  void likelihood(int k) {
    E value = load<E>(&value_[k * W]);
    for (int first = 0; first < density_.training; first += kTogether) {
      L sum = L(0), product = L(1);
      for (int i = first; i < first + kTogether && i < density_.training; ++i) {
        const L y = load<L>(at_column(logits_, k, i)), e = exp(-abs(y)), one = L(1) + e, r = L(1) / one;
        store(at_column(logits_, k, i), select(y > L(0), e * r, r));
        if constexpr (kValues) {
          sum = sum + min(L(0), y);
          product = product * one;
        }
      }
      if constexpr (kValues) value = value + cast<E>(sum - log(product));
    }
    store(&value_[k * W], value);
  }

  /// Adds the likelihood's share of the gradient, from that in the coefficients.
  void likelihood_gradient(int k, const BlockPoint<R, S>& at) {
    const R* x = at.x + k * at.state_stride;
    R* g = at.gradient + k * at.state_stride;
    const auto add = [&](int row, L v) { store(g + row * W, load<L>(g + row * W) + v); };
    L near = L(0), slab = L(0);
    for (int j = 0; j < features_; ++j) {
      const L pull = load<L>(at_column(scale_, k, j)) * load<L>(at_column(coefficients_, k, j + 1)),
              moved = pull * load<L>(x + (Row::kZ + j) * W), own = moved * load<L>(at_column(of_tau_, k, j));
      near = near + own;
      slab = fma(moved, load<L>(at_column(of_slab_, k, j)), slab);
      add(Row::kZ + j, pull);
      add(Row::kZ + features_ + j, own);
    }
    add(Row::kIntercept, load<L>(at_column(coefficients_, k, 0)));
    add(Row::kLogTau, near);
    add(Row::kLogSlab, slab * L(R(0.5)));
  }

  const Density& density_;
  const int features_;
  int groups_ = 0;  // packs of the chains that count
  PackedProduct<R> to_cases_, from_cases_;
  Matrix coefficients_;              // [chain][1 + feature]; then the log likelihood's gradient in them
  Matrix scale_, of_tau_, of_slab_;  // [chain][feature]: HorseshoeScale
  Matrix logits_;                    // [chain][case]
  std::vector<S> value_;
};

}  // namespace lockstep
