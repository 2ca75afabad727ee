// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wormhole Hamiltonian Monte Carlo in a metric of its own, as a transition.
#include "kernels/wormhole.hpp"
#include "kernels/wormhole_geometry.hpp"

namespace lockstep {

/// Without log det G, or without the ways back, only for broken twins of the tests; see WormholeMetric.
template <bool kLogDet, bool kWayBack>
struct WormholeMetricFlow : WormholeFlow<true, kWayBack> {
  using Flow = WormholeFlow<true, kWayBack>;
  enum Setting { epsilon = Flow::separation + 1 };

  static TransitionInfo info() {
    TransitionInfo info = Flow::info();
    info.name = "wormhole_metric";
    info.summary = "wormhole HMC: a metric that is short along a network between known modes";
    info.formula =
        "H = -log density + (log det G + p' G^-1 p) / 2, G(x) = I - (1 - epsilon) sum_k w_k n_k n_k'; "
        "generalised leapfrog";
    info.source =
        "Lan, Streets & Shahbaba (2014), equations 3 to 5; Girolami & Calderhead (2011); "
        "docs/decisions/0017-wormholes.md";
    using Layout = GeometryRows<Empty>;
    info.fields = {{"geometry", Layout::kFixed, Layout::kPerRow, false}};
    info.settings[Flow::influence].help = "F: of the network's metric, the width of wormholes";
    info.settings.push_back({"epsilon", "squared length of a wormhole over that of its line", 0.03, 1e-3, 1});
    return info;
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    Proposal<L, E> r;
    r.step = w.parameters[ParameterLayout::step_size] * L(scalar_t<L>(step_scale(spec, draw.iteration)));
    draw.normals(spec.momentum, model.rows(), [&](int j, L z) { w.p.set(j, z); });
    r.steps = num_steps<L>(spec, draw.iteration, w.parameters, r.jitter);
    const GeometryRows<W> f = rows_of(model, w);
    const int d = model.dim(), n = model.samples();
    const V two = V(two_worlds(w) ? 1.0 : 0.0);
    draw.normals(Purpose::worlds, 2 * n, [&](int k, L z) {
      (k < n ? f.position : f.momentum).set(f.at(k % n, d), two * cast<V>(z));
    });
    f.set(f.cause, V(-1.0));
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < d; ++j) {
        f.position.set(f.at(i, j), cast<V>(w.x[i * d + j]));
        f.momentum.set(f.at(i, j), cast<V>(w.p[i * d + j]));
      }
      auto g = geometry(model, i, w, f);
      g.look(f.position);
      g.draw(f.momentum, [&](int k) {
        typename Draw<L>::I words[4];
        draw.words(Purpose::worlds, std::uint32_t(n + i * WormholeField::kMost + k), words);
        L z[2];
        Draw<L>::normals(words[0], words[1], z[0], z[1]);
        return cast<V>(z[0]);
      });
    }
    f.set(f.energy, energy_of<V>(model, w, f));
    r.log_ratio = cast<E>(f.get(f.energy));
    for (int i = 0; i < n; ++i) kick<L>(model, i, V(0.0), V(0.5) * cast<V>(r.step), w);
    kick_others<L>(model, r.step * L(scalar_t<L>(0.5)), w);
    return r;
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const GeometryRows<W> f = rows_of(model, w);
    const int d = model.dim(), n = model.samples();
    const L step = select(s <= r.steps, r.step, L(0));
    const V half = V(0.5) * cast<V>(step);
    V out = V(0.0);
    for (int i = 0; i < n; ++i) {
      auto g = geometry(model, i, w, f);
      g.drifting_momentum = f.momentum;
      const int first = f.at(i, 0);
      Flow::refuse(f, Flow::unsolved, solve_drift(f, first, g, f.position, f.next, half));
      if (kWayBack) Flow::refuse(f, Flow::no_way_back, drift_strays(f, first, g, f.position, f.next, half));
      Flow::refuse(f, Flow::crowded, g.crowd);
      for (int j = 0; j <= d; ++j) {
        const V to = f.next[first + j];
        f.position.set(first + j, to);
        if (j == d) continue;
        w.x.set(i * d + j, cast<L>(to));
        out = max(select(abs(to) > V(model.box()), V(1.0), V(0.0)), out);
      }
    }
    Flow::refuse(f, Flow::outside, out);
    const L scale = step * w.parameters[ParameterLayout::scale_u];
    for (int j = n * d; j < model.rows(); ++j) w.x.set(j, fma(scale, w.p[j], w.x[j]));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const L half = r.step * L(scalar_t<L>(0.5)), before = select(s <= r.steps, half, L(0)),
            after = select(s < r.steps, half, L(0));
    for (int i = 0; i < model.samples(); ++i) kick<L>(model, i, cast<V>(before), cast<V>(after), w);
    kick_others<L>(model, before + after, w);
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const GeometryRows<W> f = rows_of(model, w);
    const V change = f.get(f.energy) - energy_of<V>(model, w, f), cause = f.get(f.cause);
    r.kinetic = r.log_ratio;
    const auto refused = cast_mask<E>(cause > V(-0.5));
    r.log_ratio = select(refused, E(-std::numeric_limits<scalar_t<E>>::infinity()), cast<E>(change));
    r.diverged = select(refused, E(0), E(-1));
    Flow::count_causes(cause, w);
    // What ChEES takes for the velocity in the metric's units.
    const auto scale = w.parameters.from(model.layout.scale());
    const int d = model.dim();
    for (int i = 0; i < model.samples(); ++i) {
      auto g = geometry(model, i, w, f);
      g.look(f.position);
      g.velocity(f.momentum, f.sum);
      for (int j = 0; j < d; ++j) w.p.set(i * d + j, cast<L>(V(f.sum[f.at(i, j)])) / scale[j]);
    }
  }

  /// The explicit half kick that ends a step, and the implicit one that begins the next, of such sizes.
  template <class L, class Model, class V, class W>
  LOCKSTEP_FN static void kick(const Model& model, int sample, V before, V after, const W& w) {
    const GeometryRows<W> f = rows_of(model, w);
    const int d = model.dim(), y = f.at(sample, d);
    auto g = geometry(model, sample, w, f);
    g.look(f.position);
    g.bend();
    const V strays = g.kick(f.position, f.momentum, before);
    if (kWayBack) Flow::refuse(f, Flow::no_way_back, strays);
    each_force<L>(model, w, [&](int i, L force) {
      if (i < sample * d || i >= sample * d + d) return;
      const int row = f.at(sample, i - sample * d);
      f.momentum.set(row, fma(before + after, cast<V>(force), V(f.momentum[row])));
    });
    f.momentum.set(y, nfma(before + after, V(f.position[y]), V(f.momentum[y])));
    Flow::refuse(f, Flow::unsolved, g.implicit_kick(f.position, f.momentum, after));
    Flow::refuse(f, Flow::crowded, g.crowd);
  }
  /// Of the rows that no wormhole is in.
  template <class L, class Model, class W>
  LOCKSTEP_FN static void kick_others(const Model& model, L size, const W& w) {
    const L scale = size * w.parameters[ParameterLayout::scale_u];
    const int first = model.samples() * model.dim();
    each_force<L>(model, w, [&](int i, L force) {
      if (i >= first) w.p.set(i, fma(scale, force, w.p[i]));
    });
  }

 private:
  struct Empty {
    int parameters[1];
    Rows<double> fields;
  };
  template <class Model, class W>
  LOCKSTEP_FN static GeometryRows<W> rows_of(const Model& model, const W& w) {
    return {model.dim(), model.rows(), w.fields};
  }
  template <class W>
  LOCKSTEP_FN static bool two_worlds(const W& w) {
    return w.settings[Flow::worlds] > 1.5;
  }
  template <class Model, class W>
  LOCKSTEP_FN static WormholeGeometry<W> geometry(const Model& model, int sample, const W& w,
                                                  const GeometryRows<W>& f) {
    using V = typename GeometryRows<W>::V;
    return {w,
            f,
            sample,
            Flow::template wormholes<V>(w),
            model.dim() + (two_worlds(w) ? 1 : 0),
            w.settings[epsilon]};
  }
  /// H but for the density's part.
  template <class V, class Model, class W>
  LOCKSTEP_FN static V energy_of(const Model& model, const W& w, const GeometryRows<W>& f) {
    V sum = V(0.0);
    for (int i = 0; i < model.samples(); ++i) {
      auto g = geometry(model, i, w, f);
      g.look(f.position);
      Flow::refuse(f, Flow::crowded, g.crowd);
      const V y = f.position[f.at(i, model.dim())];
      sum = sum + fma(V(0.5) * y, y, g.energy(f.momentum));
      if (!kLogDet) sum = nfma(V(0.5), g.log_det, sum);
    }
    for (int j = model.samples() * model.dim(); j < model.rows(); ++j) {
      const V p = cast<V>(w.p[j]);
      sum = fma(V(0.5) * p, p, sum);
    }
    return sum;
  }
};

/// Wormhole Hamiltonian Monte Carlo in its metric version (Lan, Streets & Shahbaba 2014, section 3, first part): Riemannian
/// Hamiltonian Monte Carlo with the metric of kernels/wormhole_felt.hpp,
///
///   H(x, p) = -log density(x) + (log det G(x) + p' G(x)^-1 p) / 2,   p ~ N(0, G(x))
///
/// by the generalised leapfrog (Girolami & Calderhead 2011, equations 16 to 18): an implicit half kick, an implicit drift, an
/// explicit half kick. It is symplectic, so that there is no volume. The metric needs no derivative of the density: a step
/// costs one gradient. Implicit equations are solved in each chain in double, the kick's by its K numbers <p, n_k>; a
/// trajectory is rejected where one has no end, or its reverse would not lead back.
///
/// The base metric is the identity in the target's own coordinates, whatever metric is set; coordinates beside the samples'
/// are as of HMC. Two worlds are those of `wormhole`. Without a network it is HMC with unit metric.
struct WormholeMetric : WormholeMetricFlow<true, true> {};

}  // namespace lockstep
