// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bases that are mixtures, in the machine's packs: compiled once (bases.cpp).
#include "kernels/base.hpp"

namespace lockstep {
inline namespace HWY_NAMESPACE {

/// The machine's packs: 16 floats or 8 doubles to a register with AVX-512. E: of energies, of the same width.
template <class R>
using MachinePack = Pack<R, HWY_MAX_BYTES / int(sizeof(R))>;
template <class R, class E>
using MachineEnergies = Pack<E, lane_width<MachinePack<R>>>;
using MixedEnergies = MachineEnergies<float, double>;

}  // namespace HWY_NAMESPACE

/// One number for each lane, where chains of a group are of several units.
template <class L>
using UnitRows = TileRows<L, const scalar_t<L>>;

// NOLINTBEGIN(bugprone-macro-parentheses): of words and types
/// All of them: `extern` declares, nothing before `template` compiles (bases.cpp).
#define LOCKSTEP_MIXTURE(EXTERN, Base, L)                        \
  EXTERN template struct MixtureOnPacks<Base, L, CommonRows<L>>; \
  EXTERN template struct MixtureOnPacks<Base, L, UnitRows<L>>;
#define LOCKSTEP_MIXTURES(EXTERN)                              \
  LOCKSTEP_MIXTURE(EXTERN, NormalMixture, MachinePack<float>)  \
  LOCKSTEP_MIXTURE(EXTERN, NormalMixture, MixedEnergies)       \
  LOCKSTEP_MIXTURE(EXTERN, NormalMixture, MachinePack<double>) \
  LOCKSTEP_MIXTURE(EXTERN, TiedMixture, MachinePack<float>)    \
  LOCKSTEP_MIXTURE(EXTERN, TiedMixture, MixedEnergies)         \
  LOCKSTEP_MIXTURE(EXTERN, TiedMixture, MachinePack<double>)
// NOLINTEND(bugprone-macro-parentheses)
LOCKSTEP_MIXTURES(extern)

}  // namespace lockstep
