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

}  // namespace HWY_NAMESPACE

/// One number for each lane, where chains of a group are of several units.
template <class L>
using UnitRows = TileRows<L, const scalar_t<L>>;

extern template struct MixtureOnPacks<NormalMixture, MachinePack<float>, CommonRows<MachinePack<float>>>;
extern template struct MixtureOnPacks<NormalMixture, MachinePack<float>, UnitRows<MachinePack<float>>>;
extern template struct MixtureOnPacks<TiedMixture, MachinePack<float>, CommonRows<MachinePack<float>>>;
extern template struct MixtureOnPacks<TiedMixture, MachinePack<float>, UnitRows<MachinePack<float>>>;
extern template struct MixtureOnPacks<NormalMixture, MachineEnergies<float, double>,
                                      CommonRows<MachineEnergies<float, double>>>;
extern template struct MixtureOnPacks<NormalMixture, MachineEnergies<float, double>,
                                      UnitRows<MachineEnergies<float, double>>>;
extern template struct MixtureOnPacks<TiedMixture, MachineEnergies<float, double>,
                                      CommonRows<MachineEnergies<float, double>>>;
extern template struct MixtureOnPacks<TiedMixture, MachineEnergies<float, double>,
                                      UnitRows<MachineEnergies<float, double>>>;
extern template struct MixtureOnPacks<NormalMixture, MachinePack<double>, CommonRows<MachinePack<double>>>;
extern template struct MixtureOnPacks<NormalMixture, MachinePack<double>, UnitRows<MachinePack<double>>>;
extern template struct MixtureOnPacks<TiedMixture, MachinePack<double>, CommonRows<MachinePack<double>>>;
extern template struct MixtureOnPacks<TiedMixture, MachinePack<double>, UnitRows<MachinePack<double>>>;

}  // namespace lockstep
