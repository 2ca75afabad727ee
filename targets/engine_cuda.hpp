// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GPU's engines of a density, included by the generated instantiation of each.
#include "targets/block_engine_cuda.hpp"
#include "targets/engine_of.hpp"
#include "targets/register_kernels.hpp"

namespace lockstep {

/// The fused driver on a GPU: under the register policy where it can be, else under the shared policy. For densities whose
/// numbers fit a launch.
class FusedCuda : public CudaBackend {
 public:
  using CudaBackend::CudaBackend;
  static constexpr bool fuses(ModelKind) { return true; }
  static constexpr bool kAnyBase = false;  // others go by blocks
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
  template <class Density>
  void bind(Density& density) {
    numbers_ = numbers_of(density).value();
    density.arrays([](ParameterArray& a, int) { a = {}; });
  }
  /// Whether it takes the rows of a model in the precision of R, and the density.
  template <class R, class Density>
  static bool fits(const Density& density, const ModelSpec& m) {
    const bool extended = m.kind == ModelKind::pseudo_extended;
    const int rows = extended ? m.pseudo_samples * (density.dim + 1) : density.dim + 1;
    const auto numbers = numbers_of(density);
    return numbers && shared_bytes<R>(*numbers, rows) <= most_shared_bytes();
  }
  template <class R, class E, class Model>
  void initialize(const Model& model, const BatchView<R, E>& b) {
    if constexpr (Model::kRows > 0)
      RegisterKernels<decltype(model.density), R, E>::initialize(model, numbers_, b);
    else
      initialize_shared(model, numbers_, b);
  }
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) {
    if constexpr (Model::kRows > 0)
      RegisterKernels<decltype(model.density), R, E>::advance(model, numbers_, b, spec);
    else
      advance_shared<Hmc>(model, numbers_, b, spec);
  }

 private:
  DensityNumbers numbers_ = {};
};

/// A density for the block driver, with its arrays on the device: its own Block, or chain by chain.
template <class Density, class R, class E>
auto on_device_block() {
  if constexpr (Density::kBatch)
    return std::type_identity<typename Density::template Block<R, E>>();
  else
    return std::type_identity<PointwiseCuda<Density, R, E>>();
}
template <class Density, class R, class E>
class DeviceBlock final : private OnDevice<Density>, public decltype(on_device_block<Density, R, E>())::type {
 public:
  explicit DeviceBlock(const Density& density)
      : OnDevice<Density>(density),
        decltype(on_device_block<Density, R, E>())::type(OnDevice<Density>::get()) {}
};

template <class Density, class R, class E>
std::unique_ptr<Engine> make_cuda_engine(const Density& density, const EngineSpec& spec) {
  if constexpr (!Density::kBatch)
    if (is_fused<FusedCuda, Density>(spec) && FusedCuda::fits<R>(density, spec.model))
      return make_engine_for<FusedCuda, R, E>(density, spec);
  return make_cuda_block_engine<R, E>(spec, std::make_unique<DeviceBlock<Density, R, E>>(density));
}

}  // namespace lockstep
