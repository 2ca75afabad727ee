// SPDX-License-Identifier: Apache-2.0
#pragma once
// Darting Monte Carlo as a transition: jumps between ellipsoids around known modes.
#include "kernels/mode_mixture.hpp"

namespace lockstep {

/// Darts between ellipsoids around modes that are known (Sminchisescu & Welling 2011): from a point in one of them to a draw
/// of the mixture of normals cut off at their ellipsoids, of squared Mahalanobis radius dart_radius^2 d. Where these overlap
/// their densities add up, and the ratio of ModeMixture is exact. Beyond all of them a chain stays.
///
/// List "darts": as of ModeMixture, its other number the squared radius.
struct Darting : ModeMixture {
  enum Counter { proposed, accepted, kCounters };
  static TransitionInfo info() {
    return {.name = "darting",
            .summary = "darts between ellipsoids around known modes",
            .formula = "y ~ sum_k w_k N(m_k, S_k) within their ellipsoids, accepted by pi / q",
            .source = "Sminchisescu & Welling (2011); Ahn, Chen & Welling (2013)",
            .gradients = kGradients,
            .harmonic_mean = false,
            .counters = {"jumps_proposed", "jumps_accepted"},
            .shared = {"darts"},
            .settings = {
                {"dart_radius", "of ellipsoids around modes, over the root of the dimension", 1.2, 0.1, 10}}};
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const auto drawn = draw_mixture<E, V>(model, draw, number<V>(w), w);
    Proposal<L, E> r;
    r.log_ratio = drawn.log_ratio;
    w.count(proposed, select(drawn.before > V(-0.5 * kAll), V(1.0), V(0.0)));
    return r;
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model&, const LaunchSpec&, const D&, const P& r, const W& w) {
    w.count(accepted, r.accepted);
  }
};

}  // namespace lockstep
