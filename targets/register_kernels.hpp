// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which models the GPU runs under the register policy, and their launches.
#include "kernels/launch_spec.hpp"
#include "targets/path.hpp"
#include "targets/pseudo_extended.hpp"

namespace lockstep {

inline constexpr int kRegisterDim = 2;

/// Whether a pseudo-extended model of N samples in D dimensions keeps its rows in registers. With N = 5 in
/// double, a few registers are lacking for sm_90 and sm_100: the tile policy has it.
template <class R>
constexpr bool fits_registers(int D, int N) {
  return D == kRegisterDim && (N == 2 || (N == 5 && sizeof(R) == sizeof(float)));
}

/// The register policy's models, the one list of them, and their launches. The members are compiled apart, in
/// a file of their own for each density and precision (targets/engine_cuda_registers.hpp).
template <class Density, class R, class E>
struct RegisterKernels {
  using Plain = Path<Density, kRegisterDim, false>;
  using Pseudo2 = PseudoExtended<Density, kRegisterDim, 2>;
  using Pseudo5 = PseudoExtended<Density, kRegisterDim, 5>;
  static void initialize(const Plain& model, const BatchView<R, E>& b);
  static void initialize(const Pseudo2& model, const BatchView<R, E>& b);
  static void initialize(const Pseudo5& model, const BatchView<R, E>& b);
  static void advance(const Plain& model, const BatchView<R, E>& b, const LaunchSpec& spec);
  static void advance(const Pseudo2& model, const BatchView<R, E>& b, const LaunchSpec& spec);
  static void advance(const Pseudo5& model, const BatchView<R, E>& b, const LaunchSpec& spec);
};

}  // namespace lockstep
