// SPDX-License-Identifier: Apache-2.0
#include "targets/bases.hpp"

namespace lockstep {

template struct MixtureOnPacks<NormalMixture, MachinePack<float>, CommonRows<MachinePack<float>>>;
template struct MixtureOnPacks<NormalMixture, MachinePack<float>, UnitRows<MachinePack<float>>>;
template struct MixtureOnPacks<TiedMixture, MachinePack<float>, CommonRows<MachinePack<float>>>;
template struct MixtureOnPacks<TiedMixture, MachinePack<float>, UnitRows<MachinePack<float>>>;
template struct MixtureOnPacks<NormalMixture, MachineEnergies<float, double>,
                               CommonRows<MachineEnergies<float, double>>>;
template struct MixtureOnPacks<NormalMixture, MachineEnergies<float, double>,
                               UnitRows<MachineEnergies<float, double>>>;
template struct MixtureOnPacks<TiedMixture, MachineEnergies<float, double>,
                               CommonRows<MachineEnergies<float, double>>>;
template struct MixtureOnPacks<TiedMixture, MachineEnergies<float, double>,
                               UnitRows<MachineEnergies<float, double>>>;
template struct MixtureOnPacks<NormalMixture, MachinePack<double>, CommonRows<MachinePack<double>>>;
template struct MixtureOnPacks<NormalMixture, MachinePack<double>, UnitRows<MachinePack<double>>>;
template struct MixtureOnPacks<TiedMixture, MachinePack<double>, CommonRows<MachinePack<double>>>;
template struct MixtureOnPacks<TiedMixture, MachinePack<double>, UnitRows<MachinePack<double>>>;

}  // namespace lockstep
