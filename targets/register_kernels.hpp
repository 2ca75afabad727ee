// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which models the GPU runs under the register policy, and their launches.
#include "kernels/launch_shared.cuh"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"

namespace lockstep {

inline constexpr int kRegisterDim = 2;

/// Whether a pseudo-extended model of N samples in D dimensions keeps its rows in registers. In double a
/// few registers are lacking from N = 3 on (banana): the tile policy has it.
template <class R>
constexpr bool fits_registers(int D, int N) {
  return D == kRegisterDim && N >= 2 && N <= (sizeof(R) == sizeof(float) ? 5 : 2);
}

/// The register policy's models, the one list of them, and their launches. The members are compiled apart, in
/// a file of their own for each density and precision (targets/engine_cuda_registers.hpp).
template <class Density, class R, class E>
struct RegisterKernels {
  using Plain = Path<Density, kRegisterDim, false>;
  using Pseudo2 = PseudoExtended<Density, kRegisterDim, 2>;
  using Pseudo3 = PseudoExtended<Density, kRegisterDim, 3>;
  using Pseudo4 = PseudoExtended<Density, kRegisterDim, 4>;
  using Pseudo5 = PseudoExtended<Density, kRegisterDim, 5>;
#define LOCKSTEP_DECLARE(Model)                                                                        \
  static void initialize(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b); \
  static void advance(const Model& model, const DensityNumbers& numbers, const BatchView<R, E>& b,     \
                      const LaunchSpec& spec);
  LOCKSTEP_DECLARE(Plain)
  LOCKSTEP_DECLARE(Pseudo2)
  LOCKSTEP_DECLARE(Pseudo3)
  LOCKSTEP_DECLARE(Pseudo4)
  LOCKSTEP_DECLARE(Pseudo5)
#undef LOCKSTEP_DECLARE
};

}  // namespace lockstep
