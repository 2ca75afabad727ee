// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA back end of an engine, included by the generated instantiation of each density.
#include <deque>

#include "kernels/batch_cuda.cuh"
#include "kernels/staged_cuda.cuh"
#include "targets/device_vector.hpp"
#include "targets/engine_of.hpp"
#include "targets/register_kernels.hpp"

namespace lockstep {

class CudaBackend {
 public:
  template <class T>
  using vector = DeviceVector<T>;
  explicit CudaBackend(const EngineSpec& spec) : driver_(spec.driver), transition_(spec.transition) {}

  template <int D>
  static constexpr bool specialises() {
    return D == kRegisterDim;
  }
  template <class R, int D, int N>
  static constexpr bool in_registers() {
    return fits_registers<R>(D, N);
  }
  template <class Model>
  bool needs_work_rows(const Model&) const {
    return Model::kRows == 0;
  }

  /// Copies a density's arrays to the device, and lets it read them there.
  template <class Density>
  void bind(Density& density) {
    density.arrays([&](ParameterArray& a, int count) {
      a.f = floats_.emplace_back(std::vector<float>(a.f, a.f + count)).data();
      a.d = doubles_.emplace_back(std::vector<double>(a.d, a.d + count)).data();
    });
  }
  template <class T>
  static T* data(DeviceVector<T>& v) {
    return v.data();
  }
  template <class T>
  static std::vector<T> to_host(const DeviceVector<T>& v) {
    return v.to_host();
  }
  template <class T>
  static void from_host(DeviceVector<T>& v, const std::vector<T>& host) {
    v.from_host(host);
  }
  /// Copies the rows alone, tile by tile.
  template <class T, class F>
  static void read_rows(const DeviceVector<T>& v, int tiles, int rows, int first, int count, F f) {
    std::vector<T> host(std::size_t(tiles) * count * kTile);
    v.rows_to_host(host.data(), tiles, rows * kTile, first * kTile, count * kTile);
    f(host.data(), std::size_t(count) * kTile);
  }
  template <class T, class F>
  static void write_rows(DeviceVector<T>& v, int tiles, int rows, int first, int count, F f) {
    std::vector<T> host(std::size_t(tiles) * count * kTile);
    f(host.data(), std::size_t(count) * kTile);
    v.rows_from_host(host.data(), tiles, rows * kTile, first * kTile, count * kTile);
  }
  template <class T>
  static void fill(DeviceVector<T>& v, T value) {
    v.fill(value);
  }

  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) {
    if constexpr (decltype(Model::density)::kBatch) {
      batch<R, E>(model, b, [&](auto& driver) { driver.initialize(b); });
    } else if constexpr (Model::kRows > 0) {
      RegisterKernels<decltype(model.density), R, E>::initialize(model, b);
    } else {
      initialize_tiles(model, b);
    }
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) {
    if constexpr (decltype(Model::density)::kBatch) {
      if (spec.tempering == Tempering::swap) refuse("swaps of inverse temperatures");
      batch<R, E>(model, b, [&](auto& driver) { driver.advance(b, spec); });
    } else if constexpr (Model::kRows > 0) {
      RegisterKernels<decltype(model.density), R, E>::advance(model, b, spec);
    } else {
      if constexpr (Model::kDim == 0) {  // make_engine_for gives all but fused HMC the general model
        if (transition_ == TransitionKind::random_walk) {
          if constexpr (Model::kWalks) return advance_tiles<RandomWalk>(model, b, spec);
          throw std::logic_error("random walks run on the target itself");
        }
        if (driver_ == Driver::staged)
          return advance_staged_cuda<Hmc>(model, b, spec, between<R, E>(b.tiles * kTile));
      }
      advance_tiles<Hmc>(model, b, spec);
    }
  }
  /// One round of even-odd swaps in every unit.
  template <class R, class E>
  void swap(const BatchView<R, E>& b, const ParameterLayout& layout, int cache_rows, const StreamKey& key,
            std::uint32_t iteration, int units) const {
    swap_tiles(b, layout, cache_rows, key, iteration, units);
  }

  /// Throws std::logic_error where a batch density has no driver here for what is asked.
  static void check_batch(const EngineSpec& spec) {
    if (spec.model.kind == ModelKind::pseudo_extended) refuse("pseudo-extended models");
    if (spec.transition == TransitionKind::random_walk) refuse("random walks");
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    throw std::logic_error(what + " do not run on a GPU for a density that evaluates chains in batches");
  }
  /// Runs `body` with the driver of a batch density, which is made when it is first asked for. Its models are
  /// the target itself and the path to it; for others nothing is compiled.
  template <class R, class E, class Model, class Body>
  void batch(const Model& model, const BatchView<R, E>& b, Body body) {
    if constexpr (requires { model.joint(); }) {
      using Batch = BatchCuda<R, E, Model>;
      if (batch_ == nullptr) batch_ = std::make_shared<Batch>(model, b);
      body(*static_cast<Batch*>(batch_.get()));
    } else {
      refuse("pseudo-extended models");
    }
  }
  /// Memory between the stages, made at the first staged launch.
  template <class R, class E>
  StagedView<R, E> between(std::size_t chains) {
    using P = Proposal<R, E>;
    static_assert(sizeof(P) % alignof(E) == 0 && alignof(P) <= alignof(double));
    between_.resize(chains * (sizeof(P) + sizeof(E)) / sizeof(double) + 1);
    P* proposal = reinterpret_cast<P*>(between_.data());
    return {proposal, reinterpret_cast<E*>(proposal + chains)};
  }

  Driver driver_;
  TransitionKind transition_;
  std::deque<DeviceVector<float>> floats_;
  std::deque<DeviceVector<double>> doubles_;
  DeviceVector<double> between_;
  std::shared_ptr<void> batch_;  // the one BatchCuda of this back end's engine
};

extern template class EngineMemory<CudaBackend, float, float>;
extern template class EngineMemory<CudaBackend, float, double>;
extern template class EngineMemory<CudaBackend, double, double>;

template <class Density, class R, class E>
std::unique_ptr<Engine> make_cuda_engine(const Density& density, const EngineSpec& spec) {
  if constexpr (Density::kBatch) CudaBackend::check_batch(spec);
  return make_engine_for<CudaBackend, R, E>(density, spec);
}

}  // namespace lockstep
