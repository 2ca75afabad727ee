// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Metropolis-adjusted Langevin algorithm as a transition.
#include "kernels/hmc.hpp"

namespace lockstep {

/// Metropolis-adjusted Langevin (Roberts & Tweedie 1996): x' = x + step_size^2 / 2 C C' grad log density(x) +
/// step_size C z, z ~ N(0, I), accepted by the ratio of the densities times that of the proposals. That is Hamiltonian
/// Monte Carlo with one leapfrog step (Neal 2011, section 5.2): the ratio of the proposals is that of the kinetic
/// energies, and in a box x' is reflected as there.
struct Langevin : Hmc {
  static TransitionInfo info() {
    return {.name = "mala",
            .summary = "Metropolis-adjusted Langevin algorithm",
            .formula = "x' = x + step_size^2 / 2 * metric^2 * gradient + step_size * metric * normal",
            .source = "Roberts & Tweedie (1996)",
            .target_acceptance = 0.574};
  }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return 1;
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    LaunchSpec one = spec;
    one.num_leapfrog = 1;
    one.jitter = false;
    return Hmc::begin<L, E>(model, one, draw, w);
  }
};

}  // namespace lockstep
