// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wormhole Hamiltonian Monte Carlo along a vector field, as a transition.
#include "kernels/wormhole_field.hpp"

namespace lockstep {

/// Without its volume factor, or without the way back, only for broken twins of the tests; see Wormhole.
template <bool kVolume, bool kWayBack>
struct WormholeFlow : Hmc {
  enum Setting { influence, complete, worlds, separation };
  enum Cause { unsolved, no_way_back, crowded, outside, by_ratio, kCauses = by_ratio, kCounters };

  static TransitionInfo info() {
    TransitionInfo info = Hmc::info();
    info.name = "wormhole";
    info.summary = "wormhole HMC: a vector field along a network between known modes";
    info.formula =
        "x' = x + e v + e/2 (f(x, v) + f(x', v)), f = sum_k m_k <v, n_k> n_k; accepted by exp(-H) times the "
        "volume";
    info.source = "Lan, Streets & Shahbaba (2014); step and volume: docs/decisions/0017-wormholes.md";
    info.fields = {{"flow", WormholeField::kFixed, WormholeField::kPerRow, false}};
    info.counters = {"rejected_unsolved", "rejected_no_way_back", "rejected_crowded", "rejected_outside",
                     "rejected_by_ratio"};
    info.shared = {"network"};
    info.settings = {
        {"influence", "F: squared width of the wormholes over the number of dimensions", 0.3, 1e-6, 1e6},
        {"complete", "1: a wormhole between any two modes; 0: the minimal spanning tree's", 0, 0, 1, true},
        {"worlds", "2: wormholes lead through one more dimension, N(0, 1), from any mode to any", 1, 1, 2,
         true},
        {"separation", "h: in that dimension the worlds lie at -h and h", 1, 1e-3, 10}};
    return info;
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    auto r = Hmc::begin<L, E>(model, spec, draw, w);
    const WormholeRows<W> f = rows_of(model, w);
    const int d = model.dim(), n = model.samples();
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < d; ++j) f.position.set(f.at(i, j), cast<V>(w.x[i * d + j]));
    const V two = V(w.settings[worlds] > 1.5 ? 1.0 : 0.0), half = V(0.5) * cast<V>(r.step);
    V energy = V(0.0);
    draw.normals(Purpose::worlds, 2 * n, [&](int k, L z) {
      const int i = k % n, row = f.at(i, d);
      const V fresh = two * cast<V>(z);
      energy = fma(fresh, fresh, energy);
      if (k < n)  // between the worlds
        f.position.set(row, fresh);
      else
        f.velocity.set(row, nfma(half, V(f.position[row]), fresh));
    });
    f.set(f.energy, V(0.5) * energy);
    f.set(f.log_volume, V(0.0));
    f.set(f.work, V(0.0));
    f.set(f.cause, V(-1.0));
    return r;
  }
  /// The drift of step s: along the field where the unit has a network, else as of HMC.
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const V count = wormholes<V>(w);
    const WormholeRows<W> f = rows_of(model, w);
    const int d = model.dim(), n = model.samples(), rows = model.rows();
    // The velocity C p, by way of w.x.
    for (int j = 0; j < rows; ++j) {
      f.next.set(j, cast<V>(w.x[j]));
      f.momentum.set(j, cast<V>(w.p[j]));
      w.x.set(j, L(0));
    }
    drift(model, w.parameters, L(1), w.x, w.p);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < d; ++j) f.velocity.set(f.at(i, j), cast<V>(w.x[i * d + j]));
    for (int j = 0; j < rows; ++j) w.x.set(j, cast<L>(V(f.next[j])));
    const V step = cast<V>(select(s <= r.steps, r.step, L(0)));
    for (int i = 0; i < n; ++i) flow<L>(model, i, V(0.5) * step, count, w);
    Hmc::move(model, draw, s, r, w);
    const auto tunnels = cast_mask<L>(count > V(0.5));
    V out = V(0.0);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < d; ++j) {
        const V at = f.position[f.at(i, j)];
        w.x.set(i * d + j, select(tunnels, cast<L>(at), w.x[i * d + j]));
        w.p.set(i * d + j, select(tunnels, cast<L>(V(f.momentum[i * d + j])), w.p[i * d + j]));
        out = max(select(abs(at) > V(model.box()), V(1.0), V(0.0)), out);
      }
    refuse(f, outside, select(count > V(0.5), out, V(0.0)));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    Hmc::push(model, draw, s, r, w);
    const WormholeRows<W> f = rows_of(model, w);
    const L share = select(s < r.steps, r.step, r.step * L(scalar_t<L>(0.5)));
    const V kick = cast<V>(select(s <= r.steps, share, L(0))), count = wormholes<V>(w),
            half = V(0.5) * cast<V>(select(s <= r.steps, r.step, L(0)));
    for (int i = 0; i < model.samples(); ++i) {
      const int row = f.at(i, model.dim());
      WormholeStep<W>(w, f, i, count).field(f.position);
      add_work<L>(model, i, w, [&](int j) { return half * f.sum[j]; });
      f.velocity.set(row, nfma(kick, V(f.position[row]), V(f.velocity[row])));
    }
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    Hmc::end(model, r, w);
    const WormholeRows<W> f = rows_of(model, w);
    V energy = V(0.0);
    for (int i = 0; i < model.samples(); ++i) {
      const int row = f.at(i, model.dim());
      energy =
          fma(V(f.position[row]), V(f.position[row]), fma(V(f.velocity[row]), V(f.velocity[row]), energy));
    }
    const V change = nfma(V(0.5), energy, f.get(f.energy)) + f.get(f.log_volume), cause = f.get(f.cause);
    const auto refused = cast_mask<E>(cause > V(-0.5));
    const V lost =
        cast<V>((w.ce[0] - w.cache[0]) + r.log_ratio) + change - f.get(f.log_volume) + f.get(f.work);
    const auto solved =
        mask_and(is_finite(lost), mask_not(mask_and(cause > V(-0.5), cause < V(double(crowded) - 0.5))));
    const V statistic = select(solved, exp(min(lost, V(0.0))), V(0.0));
    r.statistic = cast<E>(select(wormholes<V>(w) > V(0.5), statistic, V(-1.0)));
    r.log_ratio =
        select(refused, E(-std::numeric_limits<scalar_t<E>>::infinity()), r.log_ratio + cast<E>(change));
    r.diverged = select(refused, E(0), E(-1));
    count_causes(cause, w);
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    using V = typename WormholeRows<W>::V;
    const V cause = rows_of(model, w).get(WormholeField::cause);
    w.count(by_ratio, select(cause < V(-0.5), V(1.0) - cast<V>(r.accepted), V(0.0)));
  }

 protected:
  template <class V, class W>
  LOCKSTEP_FN static void count_causes(V cause, const W& w) {
    for (int k = 0; k < kCauses; ++k)
      w.count(Cause(k), select(mask_and(cause > V(k - 0.5), cause < V(k + 0.5)), V(1.0), V(0.0)));
  }
  template <class Model, class W>
  LOCKSTEP_FN static WormholeRows<W> rows_of(const Model& model, const W& w) {
    return {model.dim(), model.rows(), w.fields};
  }
  template <class V, class W>
  LOCKSTEP_FN static V wormholes(const W& w) {
    return select(w.shared.size(0) > V(0.5), w.shared.get(0, V(0.0)), V(0.0));
  }
  /// The first cause stays.
  template <class F, class V>
  LOCKSTEP_FN static void refuse(const F& f, Cause cause, V where) {
    f.set(f.cause,
          select(mask_and(where > V(0.5), f.get(f.cause) < V(-0.5)), V(double(cause)), f.get(f.cause)));
  }

 private:
  /// Adds -<force, along>, `along` in the sample's rows: what a drift along the field does to U, by the trapezoidal rule.
  template <class L, class Model, class W, class Along>
  LOCKSTEP_FN static void add_work(const Model& model, int sample, const W& w, Along along) {
    using V = wide_t<L>;
    const WormholeRows<W> f = rows_of(model, w);
    const int d = model.dim(), y = f.at(sample, d);
    V work = fma(V(f.position[y]), V(along(y)), f.get(f.work));
    each_force<L>(model, w, [&](int i, L force) {
      if (i >= sample * d && i < sample * d + d)
        work = nfma(cast<V>(force), V(along(f.at(sample, i - sample * d))), work);
    });
    f.set(f.work, work);
  }
  template <class L, class Model, class V, class W>
  LOCKSTEP_FN static void flow(const Model& model, int sample, V half, V count, const W& w) {
    const WormholeRows<W> f = rows_of(model, w);
    const int first = f.at(sample, 0), last = first + f.d;
    const WormholeStep<W> step(w, f, sample, count);
    const V lost = step.solve(f.position, f.next, half);
    refuse(f, unsolved, lost);
    add_work<L>(model, sample, w,
                [&](int j) { return nfma(V(2.0) * half, V(f.velocity[j]), f.fixed[j] - f.position[j]); });
    if (kWayBack) refuse(f, no_way_back, step.strays(f.position, f.next, half));
    V crowd = V(0.0);
    const V volume = step.log_volume(f.position, half, crowd) - step.log_volume(f.next, -half, crowd);
    if (kVolume) f.set(f.log_volume, f.get(f.log_volume) + volume);
    refuse(f, crowded, crowd);
    for (int j = first; j <= last; ++j) f.position.set(j, f.next[j]);
  }
};

/// Wormhole Hamiltonian Monte Carlo in its vector-field version (Lan, Streets & Shahbaba 2014, section 3): Hamiltonian Monte
/// Carlo with the drift x' = x + e v + e/2 (f(x, v) + f(x', v)), v = C p, along the field of kernels/wormhole_field.hpp.
/// With half kicks on both sides a step is undone by the same step with -p, and its volume is that of the drift,
///
///   log |det(I + e/2 B(x))| - log |det(I - e/2 B(x'))|,   B(x) = sum_k <v, n_k> n_k grad m_k(x)',
///
/// whose sum over the steps is added to log_ratio. The implicit equation is solved in each chain to 1e-10; a trajectory
/// is rejected where that does not end, where the step back does not return (the map would be no involution), where
/// over 24 wormholes are felt at one place, and where it leaves a box; each is counted, and so is what the ratio
/// rejects. Leaves the density invariant whatever the network, as long as that does not change within a trajectory;
/// without one it is HMC.
///
/// The flow itself changes H, dH/dt = <grad U, f>, however short its steps: the ratio rejects for that too. Step sizes follow
/// the rest of the change alone, min(1, exp(-(H' - H - sum of e/2 <grad U, f> at both ends of each drift))), and are as
/// those of HMC; of what could not be solved 0.
///
/// In two worlds the state has one more coordinate y ~ N(0, 1), drawn anew for each trajectory, and wormholes lead from every
/// mode at y = -h to every mode at y = h (the paper's section 3.1). The settings but `worlds` are read by who makes the
/// network.
struct Wormhole : WormholeFlow<true, true> {};

}  // namespace lockstep
