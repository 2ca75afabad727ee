// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hamiltonian Monte Carlo, the worked example of a transition (kernels/transition.hpp says what one is).
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// Number of leapfrog steps of each lane. The jitter is one draw for the whole setting and iteration, so that
/// chains of one replicate keep in step; replicates differ only through their own step sizes.
template <class L, class P>
LOCKSTEP_FN L num_steps(const LaunchSpec& spec, std::uint32_t iteration, P par, L& jitter) {
  using R = scalar_t<L>;
  std::uint32_t w[4] = {static_cast<std::uint32_t>(Purpose::trajectory) << 24, iteration, 0, 0};
  philox(w, spec.key);
  const R u = (R(w[0] >> 9) + R(0.5)) * R(1.0 / 8388608);
  jitter = L(spec.jitter ? 2 * u : R(1));
  L n;
  if (spec.num_leapfrog > 0) {
    const R steps = spec.jitter ? ::floor(u * R(2 * spec.num_leapfrog - 1)) + R(1) : R(spec.num_leapfrog);
    n = L(steps);
    jitter = n * L(R(1) / R(spec.num_leapfrog));
  } else {
    n = round(jitter * par[ParameterLayout::trajectory_time] / par[ParameterLayout::step_size]);
  }
  return max(min(n, L(R(spec.max_leapfrog))), L(1));
}

/// What multiplies the step size of an iteration, one draw for all chains: mixing in shorter steps lets
/// chains into and out of regions where the usual step is unstable (Neal 2011, section 5.4.2).
LOCKSTEP_FN double step_scale(const LaunchSpec& spec, std::uint32_t iteration) {
  if (!spec.short_steps) return 1;
  std::uint32_t w[4] = {(static_cast<std::uint32_t>(Purpose::trajectory) << 24) | 1, iteration, 0, 0};
  philox(w, spec.key);
  const std::uint32_t u = w[0] >> 16;  // of 65536
  return u < 52429 ? 1 : u < 62259 ? 0.25 : 0.0625;
}

/// Hamiltonian Monte Carlo with the leapfrog integrator (Neal 2011). Costs `steps` gradients: the last one is
/// kept for the next transition. Lanes with fewer steps wait with a step size of zero, which moves nothing.
struct Hmc : TransitionDefaults {
  static TransitionInfo info() {
    return {.name = "hmc",
            .summary = "Hamiltonian Monte Carlo, leapfrog, jittered trajectories",
            .formula = "accept (x', p') with min(1, exp(H(x, p) - H(x', p'))), H = -log density + |p|^2 / 2",
            .source =
                "Neal (2011); dual averaging: Hoffman & Gelman (2014); trajectory length: Hoffman, Radul & "
                "Sountsov (2021)",
            .trajectory = true};
  }
  template <class R>
  static int known_steps(const LaunchSpec& spec, std::uint32_t iteration, const KnownRows<R>& w) {
    R jitter;
    const bool known = spec.num_leapfrog > 0 || w.parameters != nullptr;
    return known ? int(num_steps<R>(spec, iteration, w.parameters, jitter)) : -1;
  }
  /// Refreshes the momentum and kicks it for half a step; log_ratio is the kinetic energy in between.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    const auto p = w.p;
    Proposal<L, E> r;
    r.step = w.parameters[ParameterLayout::step_size] * L(scalar_t<L>(step_scale(spec, draw.iteration)));
    draw.normals(spec.momentum, model.rows(), [&](int j, L z) { p.set(j, z); });
    r.log_ratio = kinetic_energy<E, L>(model, p);
    r.steps = num_steps<L>(spec, draw.iteration, w.parameters, r.jitter);
    kick(model, w.parameters, r.step * L(scalar_t<L>(0.5)), w.x, w.g, p);
    return r;
  }
  /// The drift of step s, from 1 on.
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    drift(model, w.parameters, select(s <= r.steps, r.step, L(0)), w.x, w.p);
    reflect<L>(model, w.x, w.p);
  }
  /// Its kick, by the gradient at the new position: half a one at the end.
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    const L drifting = select(s <= r.steps, r.step, L(0));
    const L share = select(s < r.steps, L(1), L(scalar_t<L>(0.5)));
    kick(model, w.parameters, drifting * share, w.x, w.g, w.p);
  }
  /// After the last kick.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    r.kinetic = r.log_ratio;
    r.log_ratio = r.log_ratio - kinetic_energy<E, L>(model, w.p);
  }
};

}  // namespace lockstep
