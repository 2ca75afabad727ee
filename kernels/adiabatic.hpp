// SPDX-License-Identifier: Apache-2.0
#pragma once
// Adiabatic Monte Carlo as a transition: trajectories that sweep the inverse temperature of a path up and down.
#include "kernels/hmc.hpp"

namespace lockstep {

/// Without its volume factor, only for a broken twin of the tests; see Adiabatic.
template <bool kVolume>
struct AdiabaticFlow : Hmc {
  enum Setting { sweep_rate };
  enum Field { direction, log_volume, swept, kFields };
  enum Counter { metastable, kCounters };
  static constexpr double kHalted = 0.01;  // of the mean speed of u

  static TransitionInfo info() {
    TransitionInfo info = Hmc::info();
    info.name = "adiabatic";
    info.summary = "the contact flow of adiabatic Monte Carlo, which sweeps beta up and down";
    info.formula =
        "x' = C p, p' = -C' dh/dx + s r/n dh/du p, u' = -s r/n |p|^2, h = -log density(x, u) + |p|^2 / 2; "
        "accepted by exp(-h) times the volume";
    info.source =
        "Betancourt (2014), as Graham & Storkey (2017), section 4, have it; corrected: "
        "docs/decisions/0018-adiabatic.md";
    info.fields = {{"direction", 1, 0}, {"sweep", kFields - 1, 0, false}};
    info.counters = {"metastable"};
    info.settings = {{"sweep_rate", "r: mean speed of u, beta = sigmoid(u), in a trajectory", 1, 1e-3, 100}};
    return info;
  }

  /// Half a kick at the start; without a coordinate of beta this is HMC.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    for (int k = log_volume; k < kFields; ++k) w.fields.set(k, V(0.0));
    if (!sweeps(model)) return Hmc::begin<L, E>(model, spec, draw, w);
    const auto p = w.p;
    Proposal<L, E> r;
    r.step = w.parameters[ParameterLayout::step_size] * L(R(step_scale(spec, draw.iteration)));
    draw.normals(spec.momentum, model.dim(), [&](int j, L z) { p.set(j, z); });
    p.set(model.dim(), L(0));
    r.log_ratio = kinetic_energy<E, L>(model, p);
    r.steps = num_steps<L>(spec, draw.iteration, w.parameters, r.jitter);
    const V drawn = select(cast<V>(draw.uniform(Purpose::proposal)) < V(0.5), V(-1.0), V(1.0));
    w.fields.set(direction, select(abs(w.fields[direction]) > V(0.5), V(w.fields[direction]), drawn));
    push_both(model, r.step * L(R(0.5)), w);
    return r;
  }
  /// x and u at fixed p: their velocities depend on it alone.
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    Hmc::move(model, draw, s, r, w);
    if (!sweeps(model)) return;
    const int n = model.dim();
    L square = L(0);
    for (int j = 0; j < n; ++j) square = fma(w.p[j], w.p[j], square);
    const L way = select(s <= r.steps, r.step, L(0)) * square * L(scalar_t<L>(1.0 / n));
    w.x.set(n, nfma(rate<L>(w), way, w.x[n]));
    const auto late = mask_and(s + s > r.steps, s <= r.steps);
    w.fields.set(swept, w.fields[swept] + cast<V>(select(late, way, L(0))));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, const Proposal<L, E>& r, const W& w) {
    if (!sweeps(model)) return Hmc::push(model, draw, s, r, w);
    const L share = select(s < r.steps, L(1), L(scalar_t<L>(0.5)));
    push_both(model, select(s <= r.steps, r.step, L(0)) * share, w);
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    Hmc::end(model, r, w);
    if (kVolume) r.log_ratio = r.log_ratio + cast<E>(V(w.fields[log_volume]));
    if (!sweeps(model)) return;
    const L late = r.steps - floor(r.steps * L(scalar_t<L>(0.5)));
    const V mean = cast<V>(late * r.step);
    w.count(metastable, select(w.fields[swept] < V(kHalted) * mean, V(1.0), V(0.0)));
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    using V = std::remove_cvref_t<decltype(w.fields[0])>;
    if (!sweeps(model)) return;
    const V s = w.fields[direction];
    w.fields.set(direction, select(cast<V>(r.accepted) > V(0.5), s, -s));
  }

  /// Whether beta is a coordinate: that in the last row.
  template <class Model>
  LOCKSTEP_FN static bool sweeps([[maybe_unused]] const Model& model) {
    if constexpr (Model::kTempered && !Model::kExtended) return model.joint();
    return false;
  }

 private:
  /// s r.
  template <class L, class W>
  LOCKSTEP_FN static L rate(const W& w) {
    return cast<L>(w.fields[direction]) * L(scalar_t<L>(w.settings[sweep_rate]));
  }
  /// p' = c p and p' = force at fixed x and u, in the order c/2, force, c/2: each is solved exactly, and the former
  /// has the volume exp(n c t).
  template <class L, class Model, class W>
  LOCKSTEP_FN static void push_both(const Model& model, L time, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int n = model.dim();
    const L grown = time * rate<L>(w) * -w.g[n] * L(R(0.5 / n)), factor = exp(grown);
    const auto stretch = [&, p = w.p] {
      for (int j = 0; j < n; ++j) p.set(j, factor * p[j]);
    };
    stretch();
    kick(model, w.parameters, time, w.x, w.g, w.p);
    stretch();
    w.p.set(n, L(0));
    w.fields.set(log_volume, fma(V(2.0 * n), cast<V>(grown), V(w.fields[log_volume])));
  }
};

/// Adiabatic Monte Carlo (Betancourt 2014, arXiv 1405.3489) on the joint density of (x, u) of continuous tempering, beta =
/// sigmoid(u): trajectories follow a contact Hamiltonian flow, along which beta only rises (s = -1) or only falls (s = 1),
///
///   x' = C p,   p' = -C' dh/dx + s (r/n) dh/du p,   u' = -s (r/n) |p|^2,   h = -log density(x, u) + |p|^2 / 2,
///
/// n the number of dimensions, r a speed. Of the contact Hamiltonian H(x, p, u) = h - h(0) this is the flow on the level
/// H = 0 on which each trajectory starts (Graham & Storkey 2017, equations 11 and 12, whose coordinate is beta itself,
/// whose r is n, and whose h has log z(beta) in the place of beta log zeta).
///
/// What it has: h is conserved, u moves in one direction, and the flow back is that with -p and -s. What it has not:
/// volume, of which they say otherwise. Its divergence is s r dh/du, which is not zero, so that the published
/// algorithm, which accepts all that it reaches, does not carry base to target, but for n to infinity, where dh/du
/// averages out; and trajectories whose level holds no state at other temperatures halt on their way (metastabilities,
/// p to 0). Nor can it be run as published: it asks for log z(beta), which it estimates as it goes.
///
/// Here it is a Metropolis proposal, and exact. A leapfrog step (push_both, drift of x and u, push_both) is undone by
/// the same step with -p and -s; its volume, known to the last digit, goes into log_ratio, for h cancels but for the
/// step's error. s is part of the state, uniform and independent of (x, u): kept where a trajectory is accepted, turned
/// where it is rejected (also at the ends of the path, where the density of u falls). Moments and log Z are those of
/// joint continuous tempering (host/paths/tempered_run.hpp), not integrals along trajectories.
///
/// Counts the trajectories that halt: in whose second half u makes less than a hundredth of its mean way. Costs the
/// gradients of HMC. In one dimension momenta near zero make some one in twenty halt for no other reason.
struct Adiabatic : AdiabaticFlow<true> {};

}  // namespace lockstep
