// SPDX-License-Identifier: Apache-2.0
#pragma once
// Log densities and gradients of the horseshoe regression for all chains of a batch on a GPU, by cuBLAS;
// targets/horseshoe_block.hpp has the same on the CPU.
#include "kernels/block_cuda.cuh"
#include "targets/cublas.cuh"
#include "targets/half_cauchy.hpp"
#include "targets/horseshoe_scale.hpp"

namespace lockstep {

inline constexpr int kHorseshoeChains = 1024;  // of a block
inline constexpr int kHorseshoeThreads = 128;
inline constexpr int kHorseshoeTogether = 32;  // terms that are added in the precision of the state

/// Rows are [row][chain of the block]; of chain `c` they begin at the pointers plus c.
template <class R, class E>
struct HorseshoeRows {
  R* coefficients;              // [1 + feature]; then the log likelihood's gradient in them
  R *scale, *of_tau, *of_slab;  // [feature]: HorseshoeScale
  R* logits;                    // [case]
  E *prior_sums, *case_sums;    // [group of terms]: shares of the log density
  E *near_sums, *slab_sums;     // [group of features]: of the gradient in log tau and log c
};

/// Coefficients, and the priors' shares of the gradient, where it is not null, and of the log density. Threads for 128
/// chains and one group of features in a block.
template <class Density, class R, class E>
__global__ void __launch_bounds__(kHorseshoeThreads)
    horseshoe_prior_kernel(const __grid_constant__ Density density, const R* x, R* g,
                           const __grid_constant__ HorseshoeRows<R, E> rows) {
  const int c = blockIdx.y * kHorseshoeThreads + threadIdx.x, begin = blockIdx.x * kHorseshoeTogether;
  const auto at = [&](auto* p, int row) -> auto& { return p[std::size_t(row) * kHorseshoeChains + c]; };
  const int p = density.features, end = begin + kHorseshoeTogether < p ? begin + kHorseshoeTogether : p;
  const R log_tau = at(x, Density::kLogTau), log_c = density.template log_c<R>(at(x, Density::kLogSlab));
  if (begin == 0) at(rows.coefficients, 0) = at(x, Density::kIntercept);
  R sum = 0, product = 1;
  for (int j = begin; j < end; ++j) {
    const R z = at(x, Density::kZ + j), u = at(x, Density::kZ + p + j);
    const HorseshoeScale<R> s(u, log_tau, log_c);
    at(rows.coefficients, j + 1) = z * s.scale;
    at(rows.scale, j) = s.scale;
    at(rows.of_tau, j) = s.of_tau;
    at(rows.of_slab, j) = s.of_slab;
    const R size = abs(u), e = exp(size * R(-2)), one = R(1) + e;
    if (g != nullptr) {
      const R tanh = (R(1) - e) / one;
      at(g, Density::kZ + j) = -z;
      at(g, Density::kZ + p + j) = select(u < R(0), tanh, -tanh);
    }
    sum = fma(z * R(-0.5), z, sum) - size;
    product = product * one;
  }
  at(rows.prior_sums, blockIdx.x) = E(sum - log(product));
}

/// From the logits to sigmoid(-logit), in place, and sums of log sigmoid(logit).
template <class R, class E>
__global__ void __launch_bounds__(kHorseshoeThreads)
    horseshoe_likelihood_kernel(int cases, const __grid_constant__ HorseshoeRows<R, E> rows) {
  const int c = blockIdx.y * kHorseshoeThreads + threadIdx.x, begin = blockIdx.x * kHorseshoeTogether;
  const int end = begin + kHorseshoeTogether < cases ? begin + kHorseshoeTogether : cases;
  R sum = 0, product = 1;
  for (int i = begin; i < end; ++i) {
    R& at = rows.logits[std::size_t(i) * kHorseshoeChains + c];
    const R y = at, e = exp(-abs(y)), one = R(1) + e, r = R(1) / one;
    at = select(y > R(0), e * r, r);
    sum = sum + min(R(0), y);
    product = product * one;
  }
  rows.case_sums[std::size_t(blockIdx.x) * kHorseshoeChains + c] = E(sum - log(product));
}

/// Adds the likelihood's share of the gradient in z and log lambda, and sums those in log tau and log c.
template <class Density, class R, class E>
__global__ void __launch_bounds__(kHorseshoeThreads)
    horseshoe_gradient_kernel(const __grid_constant__ Density density, const R* x, R* g,
                              const __grid_constant__ HorseshoeRows<R, E> rows) {
  const int c = blockIdx.y * kHorseshoeThreads + threadIdx.x, begin = blockIdx.x * kHorseshoeTogether;
  const auto at = [&](auto* p, int row) -> auto& { return p[std::size_t(row) * kHorseshoeChains + c]; };
  const int p = density.features, end = begin + kHorseshoeTogether < p ? begin + kHorseshoeTogether : p;
  R near = 0, slab = 0;
  for (int j = begin; j < end; ++j) {
    const R pull = at(rows.scale, j) * at(rows.coefficients, j + 1), moved = pull * at(x, Density::kZ + j),
            own = moved * at(rows.of_tau, j);
    near = near + own;
    slab = fma(moved, at(rows.of_slab, j), slab);
    at(g, Density::kZ + j) += pull;
    at(g, Density::kZ + p + j) += own;
  }
  at(rows.near_sums, blockIdx.x) = E(near);
  at(rows.slab_sums, blockIdx.x) = E(slab);
}

/// What is left, by a thread for every chain: the gradient in what the coefficients share, where it is not null, and
/// the log density, where it is wanted.
template <class Density, class R, class E>
__global__ void __launch_bounds__(kHorseshoeThreads)
    horseshoe_common_kernel(const __grid_constant__ Density density, const R* x, R* g, R* values,
                            E* log_densities, const __grid_constant__ HorseshoeRows<R, E> rows) {
  const int c = blockIdx.x * kHorseshoeThreads + threadIdx.x;
  const auto at = [&](auto* p, int row) -> auto& { return p[std::size_t(row) * kHorseshoeChains + c]; };
  const auto sum = [&](const E* sums, int terms) {
    E total = 0;
    for (int k = 0; k * kHorseshoeTogether < terms; ++k) total += at(sums, k);
    return total;
  };
  const auto prior = density.template common_prior<R>(at(x, Density::kIntercept), at(x, Density::kLogTau),
                                                      at(x, Density::kLogSlab));
  if (g != nullptr) {
    at(g, Density::kIntercept) = prior.intercept + at(rows.coefficients, 0);
    at(g, Density::kLogTau) = prior.log_tau + R(sum(rows.near_sums, density.features));
    at(g, Density::kLogSlab) = fma(R(sum(rows.slab_sums, density.features)), R(0.5), prior.log_slab);
  }
  const E value = E(density.constant) + E(prior.value) + sum(rows.prior_sums, density.features) +
                  sum(rows.case_sums, density.training);
  if (values != nullptr) values[c] = R(value);
  if (log_densities != nullptr) log_densities[c] = value;
}

template <class Density, class E>
__global__ void __launch_bounds__(kHorseshoeThreads)
    horseshoe_quantity_kernel(const __grid_constant__ Density density, const E* x, E* out) {
  const int c = blockIdx.x * kHorseshoeThreads + threadIdx.x;
  density.template quantity<0, E>(Rows<E>{const_cast<E*>(x) + c, kHorseshoeChains}, [&](int q, E value) {
    out[std::size_t(q) * kHorseshoeChains + c] = value;
  });
}

/// One block after the other, all products of the same shapes: the bits of a chain do not depend on how many there are
/// or where it stands.
template <class Density, class R, class E>
class HorseshoeCuda : public CudaDensity<R, E> {
 public:
  explicit HorseshoeCuda(const Density& density)
      : density_(density),
        coefficients_(rows(1 + density.features)),
        scale_(rows(density.features)),
        of_tau_(rows(density.features)),
        of_slab_(rows(density.features)),
        logits_(rows(density.training)),
        prior_sums_(rows(groups(density.features))),
        case_sums_(rows(groups(density.training))),
        near_sums_(rows(groups(density.features))),
        slab_sums_(rows(groups(density.features))) {}

  int chains() const override { return kHorseshoeChains; }
  int dim() const override { return density_.dim; }
  int quantities() const override { return density_.quantities(); }
  void bind(const std::uint32_t*, int chains, const BlockGrid& grid) override {
    blocks_ = (chains + kHorseshoeChains - 1) / kHorseshoeChains;
    stream_ = grid.stream;
    cublas_ = std::make_unique<Cublas>(stream_);
  }

  void evaluate(const DevicePoint<R, E>& at) override {
    const HorseshoeRows<R, E> rows{coefficients_.data(), scale_.data(),     of_tau_.data(),
                                   of_slab_.data(),      logits_.data(),    prior_sums_.data(),
                                   case_sums_.data(),    near_sums_.data(), slab_sums_.data()};
    const int p = density_.features, n = density_.training;
    const R* cases = density_.cases.template get<R>();
    const dim3 by_feature(groups(p), kAcross), by_case(groups(n), kAcross);
    for (int block = 0; block < blocks_; ++block) {
      const R* x = at.x + block * at.state_stride;
      R* g = at.gradient == nullptr ? nullptr : at.gradient + block * at.state_stride;
      enqueue(stream_, by_feature, kHorseshoeThreads, horseshoe_prior_kernel<Density, R, E>, density_, x, g,
              rows);
      cublas_->multiply(true, {kHorseshoeChains, n, 1 + p}, rows.coefficients, cases, rows.logits);
      enqueue(stream_, by_case, kHorseshoeThreads, horseshoe_likelihood_kernel<R, E>, n, rows);
      if (g != nullptr) {
        cublas_->multiply(false, {kHorseshoeChains, 1 + p, n}, rows.logits, cases, rows.coefficients);
        enqueue(stream_, by_feature, kHorseshoeThreads, horseshoe_gradient_kernel<Density, R, E>, density_, x,
                g, rows);
      }
      const std::ptrdiff_t first = block * at.value_stride;
      enqueue(stream_, kAcross, kHorseshoeThreads, horseshoe_common_kernel<Density, R, E>, density_, x, g,
              at.value == nullptr ? nullptr : at.value + first,
              at.log_density == nullptr ? nullptr : at.log_density + first, rows);
    }
  }
  /// There is one mode, 0, as the memory has it from the start.
  void modes(const E*, std::ptrdiff_t, E*, std::ptrdiff_t) override {}
  void quantities(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) override {
    for (int block = 0; block < blocks_; ++block)
      enqueue(stream_, kAcross, kHorseshoeThreads, horseshoe_quantity_kernel<Density, E>, density_,
              x + block * x_stride, out + block * out_stride);
  }

 private:
  static constexpr int kAcross = kHorseshoeChains / kHorseshoeThreads;
  static std::size_t rows(int count) { return std::size_t(count) * kHorseshoeChains; }
  static int groups(int terms) { return (terms + kHorseshoeTogether - 1) / kHorseshoeTogether; }

  const Density density_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Cublas> cublas_;
  int blocks_ = 0;
  DeviceArray<R> coefficients_, scale_, of_tau_, of_slab_, logits_;
  DeviceArray<E> prior_sums_, case_sums_, near_sums_, slab_sums_;
};

}  // namespace lockstep
