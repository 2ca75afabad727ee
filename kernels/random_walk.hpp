// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random-walk Metropolis as a transition.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// Random-walk Metropolis (Metropolis et al. 1953): x' = x + step_size C z, z ~ N(0, I), symmetric. Uses no gradient.
struct RandomWalk : WithoutGradients {
  static TransitionInfo info() {
    return {.name = "rwm",
            .summary = "random-walk Metropolis",
            .formula = "x' = x + step_size * metric * normal",
            .source = "Metropolis et al. (1953)",
            .gradients = kGradients,
            .target_acceptance = 0.3,
            .harmonic_mean = false};
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    const auto p = w.p;
    draw.normals(Purpose::proposal, model.rows(), [&](int j, L z) { p.set(j, z); });
    drift(model, w.parameters, L(w.parameters[ParameterLayout::step_size]), w.x, p);
    reflect<L>(model, w.x, p);
    return {};
  }
};

}  // namespace lockstep
