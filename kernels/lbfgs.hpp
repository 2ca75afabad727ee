// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descents to modes by L-BFGS, as a transition that samples nothing.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// What descents minimise: -log density as it is. Of any such: V value(model, log density, w) at w.x, and then the rows of
/// its gradient; kRows fields of each row of a position are its own, from `own` on.
struct NegativeLogDensity {
  static constexpr int kRows = 0;
  template <class V, class Model, class W>
  LOCKSTEP_FN static V value(const Model&, V log_density, const W&, int) {
    return -log_density;
  }
  template <class V, class W>
  LOCKSTEP_FN static V slope(const W& w, int, int j) {
    return -cast<V>(w.g[j]);
  }
};

/// Minimises an energy from where each chain stands, by limited-memory BFGS (Nocedal & Wright 2006, algorithms 7.4 and
/// 7.5; six pairs) with steps shortened until the function falls enough (Armijo: by 1e-4 of what the slope promises).
/// One iteration of the chain is one whole descent. **It leaves nothing invariant**: it is no sampler, but the search for
/// modes (host/modes/mode_search.hpp) in the lanes, precisions and devices that samplers have. On plain models.
///
/// The first step of a descent is `first_step` long, later ones as long as the curvature says, however far: a capped
/// step finds fewer modes for its cost. A descent ends where the quadratic model promises less than 1e-7 of log density,
/// with outcome 1 (a model of six pairs promises too little along axes much wider than the last step's: at 1e-5 half of
/// the descents among sensors ended on the way); or after 12 shortenings in a row or 400 evaluations, with 1 where it
/// promises less than 1e-5, else 0; or with 0 where the density is no number. The chain is left at the lowest point
/// found, but for starts where the density is none.
template <class Energy>
struct LbfgsOf : TransitionDefaults {
  static constexpr bool kSelfEnding = true, kEnergies = true;
  static constexpr int kPairs = 6, kMostShortenings = 12, kMostSteps = 400;
  static constexpr double kLeastGain = 1e-7, kFlat = 1e-5, kShortening = 0.3, kArmijo = 1e-4;
  enum Field { converged, evaluations, lowest, share, gamma, slope, shortenings, returning, rho };
  static constexpr int kFixed = rho + kPairs;

  static constexpr int kOfRow = 3 + 2 * kPairs;

  static TransitionInfo info() {
    return {.name = "lbfgs",
            .summary = "minimises -log density; samples nothing",
            .formula = "x' = x - share H gradient, H by limited-memory BFGS",
            .source = "Nocedal & Wright (2006)",
            .fields = {{"outcome", 2, 0}, {"descent", kFixed - 2, kOfRow + Energy::kRows, false}},
            .settings = {{"first_step", "length of a descent's first step", 1, 1e-300, 1e300}}};
  }
  static LOCKSTEP_FN constexpr int own(int n) { return kFixed + kOfRow * n; }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return -1;
  }

  /// Rows of `fields`, n of each: the lowest point, its gradient (of the function that falls), the direction, and the
  /// pairs, youngest first: steps, and how the gradient changed.
  template <class W>
  struct Descent {
    using V = wide_t<typename std::remove_cvref_t<decltype(W::parameters[0])>>;
    decltype(W::fields) at, gradient, direction, steps, changes;
    LOCKSTEP_FN Descent(int n, const W& w)
        : at(w.fields.from(kFixed)),
          gradient(at.from(n)),
          direction(gradient.from(n)),
          steps(direction.from(n)),
          changes(steps.from(n * kPairs)) {}
  };

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>&, const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Descent<W> f(n, w);
    const V value = Energy::template value<V>(model, cast<V>(w.cache[0]), w, own(n));
    V square = V(0.0);
    for (int j = 0; j < n; ++j) {
      const V g = Energy::template slope<V>(w, own(n), j);
      f.at.set(j, cast<V>(w.position[j]));
      f.gradient.set(j, g);
      square = fma(g, g, square);
    }
    for (int j = 0; j < 2 * kPairs * n; ++j) f.steps.set(j, V(0.0));
    for (int k = 0; k < kFixed; ++k) w.fields.set(k, V(0.0));
    const auto usable = mask_and(is_finite(value), is_finite(square));
    w.fields.set(lowest, value);
    w.fields.set(share, V(1.0));
    w.fields.set(gamma, V(w.settings[0]) / max(sqrt(square), V(1e-300)));
    w.fields.set(slope, -(square * V(w.fields[gamma])));
    w.fields.set(returning, select(usable, V(0.0), V(1.0)));
    for (int j = 0; j < n; ++j)
      f.direction.set(j, select(usable, -(V(f.gradient[j]) * V(w.fields[gamma])), V(0.0)));
    Proposal<L, E> r;
    r.steps = L(1);
    return r;
  }
  /// To the point to be tried, or back to the lowest.
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Descent<W> f(n, w);
    const auto tries = mask_and(cast_mask<V>(s <= r.steps), V(w.fields[returning]) < V(0.5));
    const V step = select(tries, V(w.fields[share]), V(0.0));
    for (int j = 0; j < n; ++j) w.x.set(j, cast<L>(fma(step, V(f.direction[j]), V(f.at[j]))));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D&, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int n = model.rows();
    const Descent<W> f(n, w);
    const auto at_work = cast_mask<V>(s <= r.steps);
    const auto trying = mask_and(at_work, V(w.fields[returning]) < V(0.5));
    const V value = Energy::template value<V>(model, cast<V>(w.ce[0]), w, own(n));
    const V before = w.fields[lowest], t = w.fields[share];
    V finite = value, curvature = V(0.0), square = V(0.0);
    for (int j = 0; j < n; ++j) {
      const V g = Energy::template slope<V>(w, own(n), j), change = g - V(f.gradient[j]);
      finite = fma(g, V(0.0), finite);
      curvature = fma(t * V(f.direction[j]), change, curvature);
      square = fma(change, change, square);
    }
    const auto falls =
        mask_and(trying, mask_and(is_finite(finite), value <= fma(V(kArmijo) * t, V(w.fields[slope]),
                                                                  fma(V(1e-12), abs(before), before))));
    const auto bends = mask_and(falls, curvature > V(1e-12) * square);
    for (int k = kPairs - 1; k > 0; --k) {
      w.fields.set(rho + k, select(bends, V(w.fields[rho + k - 1]), V(w.fields[rho + k])));
      for (int j = k * n; j < (k + 1) * n; ++j) {
        f.steps.set(j, select(bends, V(f.steps[j - n]), V(f.steps[j])));
        f.changes.set(j, select(bends, V(f.changes[j - n]), V(f.changes[j])));
      }
    }
    w.fields.set(rho, select(bends, V(1.0) / curvature, V(w.fields[rho])));
    for (int j = 0; j < n; ++j) {
      const V g = Energy::template slope<V>(w, own(n), j), step = t * V(f.direction[j]);
      f.steps.set(j, select(bends, step, V(f.steps[j])));
      f.changes.set(j, select(bends, g - V(f.gradient[j]), V(f.changes[j])));
      f.at.set(j, select(falls, cast<V>(w.x[j]), V(f.at[j])));
      f.gradient.set(j, select(falls, g, V(f.gradient[j])));
    }
    const V scale = w.fields[gamma];
    w.fields.set(gamma, select(bends, curvature / square, select(falls, scale + scale, scale)));
    w.fields.set(lowest, select(falls, value, before));
    w.fields.set(shortenings, select(falls, V(0.0), w.fields[shortenings] + select(trying, V(1.0), V(0.0))));
    w.fields.set(share, select(falls, V(1.0), t * select(trying, V(kShortening), V(1.0))));
    w.fields.set(evaluations, select(at_work, cast<V>(s), V(w.fields[evaluations])));
    if (any(falls)) turn(n, falls, w);

    const V gain = -V(w.fields[slope]);
    const auto arrived = mask_and(falls, mask_and(V(w.fields[rho]) > V(0.0), gain < V(kLeastGain)));
    w.fields.set(converged, select(arrived, V(1.0), V(w.fields[converged])));
    const auto gives_up = mask_and(mask_and(trying, mask_not(arrived)),
                                   mask_not(mask_and(V(w.fields[shortenings]) <= V(double(kMostShortenings)),
                                                     cast<V>(s) < V(double(kMostSteps)))));
    w.fields.set(converged, select(mask_and(gives_up, gain < V(kFlat)), V(1.0), V(w.fields[converged])));
    w.fields.set(returning, select(gives_up, V(1.0), V(w.fields[returning])));
    const auto goes_on = mask_and(trying, mask_not(arrived));
    r.steps = select(cast_mask<L>(goes_on), s + L(R(1)), r.steps);
  }
  /// The direction at the lowest point, in lanes that have come to one, and the slope along it.
  template <class Mask, class W>
  LOCKSTEP_FN static void turn(int n, Mask lanes, const W& w) {
    const Descent<W> f(n, w);
    using V = typename Descent<W>::V;
    V alpha[kPairs];
    for (int j = 0; j < n; ++j) f.direction.set(j, select(lanes, V(f.gradient[j]), V(f.direction[j])));
    LOCKSTEP_UNROLL_FIXED
    for (int k = 0; k < kPairs; ++k) {
      V sum = V(0.0);
      for (int j = 0; j < n; ++j) sum = fma(V(f.steps[k * n + j]), V(f.direction[j]), sum);
      alpha[k] = select(lanes, V(w.fields[rho + k]) * sum, V(0.0));
      for (int j = 0; j < n; ++j)
        f.direction.set(j, nfma(alpha[k], V(f.changes[k * n + j]), V(f.direction[j])));
    }
    const V scale = select(lanes, V(w.fields[gamma]), V(1.0));
    for (int j = 0; j < n; ++j) f.direction.set(j, scale * V(f.direction[j]));
    LOCKSTEP_UNROLL_FIXED
    for (int k = kPairs - 1; k >= 0; --k) {
      V sum = V(0.0);
      for (int j = 0; j < n; ++j) sum = fma(V(f.changes[k * n + j]), V(f.direction[j]), sum);
      const V more = select(lanes, alpha[k] - V(w.fields[rho + k]) * sum, V(0.0));
      for (int j = 0; j < n; ++j) f.direction.set(j, fma(more, V(f.steps[k * n + j]), V(f.direction[j])));
    }
    V promise = V(0.0);
    for (int j = 0; j < n; ++j) {
      f.direction.set(j, select(lanes, -V(f.direction[j]), V(f.direction[j])));
      promise = fma(V(f.direction[j]), V(f.gradient[j]), promise);
    }
    w.fields.set(slope, select(lanes, promise, V(w.fields[slope])));
  }
  /// Where it has come to, always.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model&, Proposal<L, E>& r, const W& w) {
    r.log_ratio = w.cache[0] - w.ce[0];
  }
};

/// Of -log density.
struct Lbfgs : LbfgsOf<NegativeLogDensity> {};

}  // namespace lockstep
