// SPDX-License-Identifier: Apache-2.0
#pragma once
// The CUDA back end of an engine, included by the generated instantiation of each density and by nothing else:
// Thrust owns the device memory, and no Thrust type goes beyond this header.
#include <thrust/device_vector.h>

#include <deque>

#include "kernels/staged_cuda.cuh"
#include "targets/engine_of.hpp"

namespace lockstep {

inline constexpr int kRegisterDim = 2;

/// Whether a pseudo-extended model of N samples in D dimensions keeps its rows in registers. With N = 5 in double,
/// a few registers are lacking for sm_90 and sm_100: the tile policy has it.
template <class R>
constexpr bool fits_registers(int D, int N) {
  return D == kRegisterDim && (N == 2 || (N == 5 && sizeof(R) == sizeof(float)));
}

/// The register policy's models, the one list of them, and their launches. The members are compiled apart, in a
/// file of their own for each density and precision (targets/engine_cuda_registers.hpp).
template <class Density, class R, class E>
struct RegisterKernels {
  using Plain = Path<Density, kRegisterDim, false>;
  using Tempered = Path<Density, kRegisterDim, true>;
  using Pseudo2 = PseudoExtended<Density, kRegisterDim, 2>;
  using Pseudo5 = PseudoExtended<Density, kRegisterDim, 5>;
  static void initialize(const Plain& model, const BatchView<R, E>& b);
  static void initialize(const Tempered& model, const BatchView<R, E>& b);
  static void initialize(const Pseudo2& model, const BatchView<R, E>& b);
  static void initialize(const Pseudo5& model, const BatchView<R, E>& b);
  static void advance(const Plain& model, const BatchView<R, E>& b, const LaunchSpec& spec);
  static void advance(const Tempered& model, const BatchView<R, E>& b, const LaunchSpec& spec);
  static void advance(const Pseudo2& model, const BatchView<R, E>& b, const LaunchSpec& spec);
  static void advance(const Pseudo5& model, const BatchView<R, E>& b, const LaunchSpec& spec);
};

class CudaBackend {
 public:
  template <class T>
  using vector = thrust::device_vector<T>;
  explicit CudaBackend(const EngineSpec& spec) : driver_(spec.driver), transition_(spec.transition) {}

  template <int D>
  static constexpr bool specialises() { return D == kRegisterDim; }
  template <class R, int D, int N>
  static constexpr bool in_registers() { return fits_registers<R>(D, N); }
  template <class Model>
  bool needs_work_rows(const Model&) const { return Model::kRows == 0; }

  /// Copies a density's arrays to the device, and lets it read them there.
  template <class Density>
  void bind(Density& density) {
    density.arrays([&](ParameterArray& a, int count) {
      a.f = data(floats_.emplace_back(a.f, a.f + count));
      a.d = data(doubles_.emplace_back(a.d, a.d + count));
    });
  }
  template <class T>
  static T* data(vector<T>& v) { return thrust::raw_pointer_cast(v.data()); }
  template <class T>
  static std::vector<T> to_host(const vector<T>& v) {
    std::vector<T> host(v.size());
    thrust::copy(v.begin(), v.end(), host.begin());
    return host;
  }
  template <class T>
  static void from_host(vector<T>& v, const std::vector<T>& host) { thrust::copy(host.begin(), host.end(), v.begin()); }
  template <class T>
  static void fill(vector<T>& v, T value) { thrust::fill(v.begin(), v.end(), value); }

  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) const {
    if constexpr (Model::kRows > 0) {
      RegisterKernels<decltype(model.density), R, E>::initialize(model, b);
    } else {
      initialize_tiles(model, b);
    }
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) {
    if constexpr (Model::kRows > 0) {
      RegisterKernels<decltype(model.density), R, E>::advance(model, b, spec);
    } else {
      if constexpr (Model::kDim == 0) {  // make_engine_for gives all but fused HMC the general model
        if (transition_ == TransitionKind::random_walk) {
          if constexpr (Model::kWalks) return advance_tiles<RandomWalk>(model, b, spec);
          throw std::logic_error("random walks run on the target itself");
        }
        if (driver_ == Driver::staged) return advance_staged_cuda<Hmc>(model, b, spec, between<R, E>(b.tiles * kTile));
      }
      advance_tiles<Hmc>(model, b, spec);
    }
  }

 private:
  /// Memory between the stages, made at the first staged launch.
  template <class R, class E>
  StagedView<R, E> between(std::size_t chains) {
    using P = Proposal<R, E>;
    static_assert(sizeof(P) % alignof(E) == 0 && alignof(P) <= alignof(double));
    between_.resize(chains * (sizeof(P) + sizeof(E)) / sizeof(double) + 1);
    P* proposal = reinterpret_cast<P*>(data(between_));
    return {proposal, reinterpret_cast<E*>(proposal + chains)};
  }

  Driver driver_;
  TransitionKind transition_;
  std::deque<vector<float>> floats_;
  std::deque<vector<double>> doubles_;
  vector<double> between_;
};

template <class Density, class R, class E>
std::unique_ptr<Engine> make_cuda_engine(const Density& density, const EngineSpec& spec) {
  return make_engine_for<CudaBackend, R, E>(density, spec);
}

}  // namespace lockstep
