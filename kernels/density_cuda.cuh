// SPDX-License-Identifier: Apache-2.0
#pragma once
// A density on a GPU behind calls for all chains of a batch: what the block driver (kernels/block_cuda.cuh) asks of it.
#include "kernels/launch_cuda.cuh"

namespace lockstep {

/// A point of every chain of a batch, in device memory, and where to put what is wanted there: null where it is not.
/// Rows are [block][row][chain of the block]; from a block to the next of x and gradient are state_stride elements, of
/// value and log_density value_stride.
template <class R, class E>
struct DevicePoint {
  const R* x;  // [dim]
  R *gradient, *value;
  E* log_density;
  std::ptrdiff_t state_stride, value_stride;
};

/// How a stage runs over a batch.
struct BlockGrid {
  cudaStream_t stream = nullptr;
  int blocks = 0, threads = 0;
};

/// A density on a GPU for all chains of a batch. Everything is enqueued on the stream: the same work in every call, and
/// no memory but its own.
template <class R, class E>
class CudaDensity {
 public:
  virtual ~CudaDensity() = default;
  /// Of a block: a multiple of kTile.
  virtual int chains() const = 0;
  virtual int dim() const = 0;
  virtual int quantities() const = 0;
  /// What it holds of device memory for a chain.
  virtual std::size_t bytes_of_chain() const { return 0; }
  /// Before all else: whose data each of so many chains sees (in device memory), and how a thread for each of them runs.
  virtual void bind(const std::uint32_t* unit, int chains, const BlockGrid& grid) = 0;
  virtual void evaluate(const DevicePoint<R, E>& at) = 0;
  /// The mode that x belongs to, [1], and the target's own expectations there, [quantity]; from a block to the next are
  /// x_stride and out_stride elements.
  virtual void modes(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) = 0;
  virtual void quantities(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) = 0;
};

template <class R, class E, class Density>
__global__ void __launch_bounds__(kMaxBlockThreads)
    evaluate_kernel(const __grid_constant__ Density density, int chains,
                    const __grid_constant__ DevicePoint<R, E> at) {
  const int chain = this_chain();
  if (chain >= chains) return;
  const std::ptrdiff_t block = chain / kTile;
  const int lane = chain % kTile;
  R* x = const_cast<R*>(at.x) + block * at.state_stride + lane;
  if (at.gradient != nullptr) {
    const R value = density.template log_density<0, R>(
        Rows<R>{x, kTile}, Rows<R>{at.gradient + block * at.state_stride + lane, kTile});
    if (at.value != nullptr) at.value[block * at.value_stride + lane] = value;
  }
  if (at.log_density != nullptr)
    at.log_density[block * at.value_stride + lane] =
        density.template log_density<0, E>(Rows<E, R>{x, kTile}, NoGradient{});
}

template <bool kModes, class E, class Density>
__global__ void __launch_bounds__(kMaxBlockThreads)
    describe_kernel(const __grid_constant__ Density density, int chains, const E* x, std::ptrdiff_t x_stride,
                    E* out, std::ptrdiff_t out_stride) {
  const int chain = this_chain();
  if (chain >= chains) return;
  const std::ptrdiff_t block = chain / kTile;
  const int lane = chain % kTile;
  const Rows<E> at{const_cast<E*>(x) + block * x_stride + lane, kTile},
      to{out + block * out_stride + lane, kTile};
  if constexpr (kModes)
    to.set(0, density.template mode<0, E>(at));
  else
    density.template quantity<0, E>(at, [&](int q, E value) { to.set(q, value); });
}

/// A density without products over chains: a thread for every chain, a block for every tile.
template <class Density, class R, class E>
class PointwiseCuda : public CudaDensity<R, E> {
 public:
  explicit PointwiseCuda(const Density& density) : density_(density) {}
  int chains() const override { return kTile; }
  int dim() const override { return density_.dim; }
  int quantities() const override { return density_.quantities(); }
  void bind(const std::uint32_t*, int chains, const BlockGrid& grid) override {
    chains_ = chains;
    grid_ = grid;
  }
  void evaluate(const DevicePoint<R, E>& at) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, evaluate_kernel<R, E, Density>, density_, chains_, at);
  }
  void modes(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, describe_kernel<true, E, Density>, density_, chains_,
            x, x_stride, out, out_stride);
  }
  void quantities(const E* x, std::ptrdiff_t x_stride, E* out, std::ptrdiff_t out_stride) override {
    enqueue(grid_.stream, grid_.blocks, grid_.threads, describe_kernel<false, E, Density>, density_, chains_,
            x, x_stride, out, out_stride);
  }

 private:
  const Density density_;
  int chains_ = 0;
  BlockGrid grid_;
};

}  // namespace lockstep
