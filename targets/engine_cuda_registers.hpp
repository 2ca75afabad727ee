// SPDX-License-Identifier: Apache-2.0
#pragma once
// The members of RegisterKernels, included by the generated file of each density and precision that compiles
// its register kernels, with spills as errors, apart from the rest of its engine.
#include "kernels/launch_registers.cuh"
#include "targets/register_kernels.hpp"

namespace lockstep {

/// Whether a density is compiled for kRegisterDim dimensions at all; its register kernels are empty where
/// not.
template <int... D>
constexpr bool compiled_for_registers(std::integer_sequence<int, D...>) {
  return ((D == kRegisterDim) || ...);
}

#define LOCKSTEP_REGISTER_KERNELS(Model, fits)                                                       \
  template <class Density, class R, class E>                                                         \
  void RegisterKernels<Density, R, E>::initialize(const Model& model, const DensityNumbers& numbers, \
                                                  const BatchView<R, E>& b) {                        \
    if constexpr (compiled_for_registers(typename Density::SpecialisedDims()) && (fits))             \
      initialize_registers(model, numbers, b);                                                       \
  }                                                                                                  \
  template <class Density, class R, class E>                                                         \
  void RegisterKernels<Density, R, E>::advance(const Model& model, const DensityNumbers& numbers,    \
                                               const BatchView<R, E>& b, const LaunchSpec& spec) {   \
    if constexpr (compiled_for_registers(typename Density::SpecialisedDims()) && (fits))             \
      advance_registers<Hmc>(model, numbers, b, spec);                                               \
  }
LOCKSTEP_REGISTER_KERNELS(Plain, true)
LOCKSTEP_REGISTER_KERNELS(Pseudo2, fits_registers<R>(kRegisterDim, 2))
LOCKSTEP_REGISTER_KERNELS(Pseudo3, fits_registers<R>(kRegisterDim, 3))
LOCKSTEP_REGISTER_KERNELS(Pseudo4, fits_registers<R>(kRegisterDim, 4))
LOCKSTEP_REGISTER_KERNELS(Pseudo5, fits_registers<R>(kRegisterDim, 5))
#undef LOCKSTEP_REGISTER_KERNELS

}  // namespace lockstep
