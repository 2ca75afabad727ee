// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transitions that own data of each kind that a transition may declare (kernels/transition.hpp): a list that the chains
// of a unit share; steps until they see fit; positions in double and an implicit solve; an accumulator that each chain
// closes at an iteration of its own.
#include "kernels/hmc.hpp"
#include "targets/engine.hpp"
#include "tests/support/known_modes.hpp"

namespace lockstep::testing {

/// What these draw; no number of the library's (Purpose).
inline constexpr Purpose kOwnDraw = static_cast<Purpose>(200);

/// x' = x + v or x - v for one sample of them, v drawn from the list of the chain's unit; without one it stays.
struct ListWalk : WithoutGradients {
  enum Counter { vectors, kCounters };
  static TransitionInfo info() {
    return {.name = "list walk",
            .summary = "a random walk along vectors of a list",
            .formula = "",
            .source = "",
            .gradients = kGradients,
            .counters = {"vectors"},
            .shared = {"directions"}};  // [vector][dim]
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int d = model.dim(), n = model.samples();
    const V count = w.shared.size(0) * V(1.0 / d);
    const V k = floor(cast<V>(draw.uniform(kOwnDraw)) * count);
    const L sign = select(draw.uniform(kOwnDraw, 1) < L(R(0.5)), L(R(-1)), L(1));
    const L sample = floor(draw.uniform(kOwnDraw, 2) * L(R(n)));
    const auto x = w.x;
    for (int i = 0; i < n; ++i) {
      const auto here = mask_and(sample >= L(R(i)), sample <= L(R(i)));
      for (int j = 0; j < d; ++j) {
        const L v = cast<L>(w.shared.get(0, k * V(double(d)) + V(double(j))));
        x.set(i * d + j, select(here, fma(sign, v, x[i * d + j]), x[i * d + j]));
      }
    }
    w.count(vectors, count);
    return {};
  }
  /// Unit u has u + 3 modulo 4 vectors.
  static void prepare(Engine& engine, int units) {
    UnitList lists;
    for (int u = 0; u < units; ++u)
      for (int k = 0; k < (u + 3) % 4; ++k)
        for (int j = 0; j < engine.dim(); ++j) lists[u].push_back(0.4 + 0.3 * k - 0.5 * ((j + k + u) % 3));
    engine.set_shared(0, lists);
  }
};

/// Slice sampling along a direction drawn from the metric's normal, shrinking an interval around the position, not
/// stepped out, until a point is above the slice (Neal 2003, sections 4.1 and 5.1): takes log densities alone, as many
/// as it happens to need.
struct SliceWalk : TransitionDefaults {
  static constexpr bool kGradients = false, kEnergies = true, kSelfEnding = true;
  enum Field { low, high, height };
  enum Counter { evaluations, kCounters };
  static TransitionInfo info() {
    return {.name = "slice walk",
            .summary = "slice sampling along a direction",
            .formula = "",
            .source = "",
            .gradients = kGradients,
            .fields = {{"interval and height", 3, 0, false}},
            .counters = {"evaluations"},
            .settings = {{"width", "length of the interval in steps", 6, 0.1, 100}}};
  }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return -1;
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const auto p = w.p;
    draw.normals(kOwnDraw, model.rows(), [&](int j, L z) { p.set(j, z); });
    Proposal<L, E> r;
    r.steps = L(1);
    const V width = cast<V>(w.parameters[ParameterLayout::step_size]) * V(w.settings[0]),
            first = width * -cast<V>(draw.uniform(kOwnDraw, 1000));
    w.fields.set(low, first);
    w.fields.set(high, first + width);
    w.fields.set(height, cast<V>(w.cache[0]) + log(cast<V>(draw.uniform(kOwnDraw, 1001))));
    return r;
  }
  /// How far along p the point of step s lies.
  template <class L, class D, class W>
  LOCKSTEP_FN static L place(const D& draw, L s, const W& w) {
    const L from = cast<L>(w.fields[low]);
    return fma(draw.uniform_at(kOwnDraw, s + L(scalar_t<L>(2000))), cast<L>(w.fields[high]) - from, from);
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>& r, const W& w) {
    const auto steps = s <= r.steps;
    select_rows(model.rows(), steps, w.position, w.x);
    drift(model, w.parameters, select(steps, place(draw, s, w), L(0)), w.x, w.p);
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const auto above = mask_and(cast_mask<L>(w.ce[0] > cast<E>(w.fields[height])), inside_box<L>(model, w.x));
    const auto again = mask_and(s <= r.steps, mask_not(above));
    const L t = place(draw, s, w);
    w.fields.set(low, select(cast_mask<V>(mask_and(again, t < L(0))), cast<V>(t), w.fields[low]));
    w.fields.set(high, select(cast_mask<V>(mask_and(again, t >= L(0))), cast<V>(t), w.fields[high]));
    r.steps = select(mask_and(again, s < L(R(200))), s + L(1), r.steps);
  }
  /// Accepted, unless 200 were not enough.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    const auto above = mask_and(w.ce[0] > cast<E>(w.fields[height]), cast_mask<E>(inside_box<L>(model, w.x)));
    r.log_ratio = select(above, w.cache[0] - w.ce[0], E(-std::numeric_limits<scalar_t<E>>::infinity()));
    w.count(evaluations, r.steps);
  }
};

/// Hamiltonian Monte Carlo by one step of the implicit midpoint rule, positions in double: solved by iteration, then
/// solved backwards from its end, and rejected where that does not lead back.
struct ImplicitMidpoint : TransitionDefaults {
  static constexpr bool kSelfEnding = true;
  enum Phase { forward, backward, last, failed };  // what the next evaluation is for
  enum Counter { unsolved, irreversible, kCounters };
  static TransitionInfo info() {
    return {.name = "implicit midpoint",
            .summary = "Hamiltonian Monte Carlo by the implicit midpoint rule",
            .formula = "",
            .source = "",
            .fields = {{"position", 0, 1}, {"solve", 2, 5, false}},
            .counters = {"unsolved", "irreversible"},
            .gates = {{unsolved, 0.01, "the implicit solve does not converge; lower sampler.step_size"},
                      {irreversible, 0.001, "the solve does not lead back; lower sampler.step_size"}}};
  }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return -1;
  }
  /// Rows of `fields`, n of them each: the position; where a solve begins, its momentum and its middle so far; the
  /// momentum drawn and the point that the forward solve led to; then the phase, and the number of iterations.
  template <class W>
  struct Solve {
    using V = wide_t<typename std::remove_cvref_t<decltype(W::parameters[0])>>;
    decltype(W::fields) position, phase, iterations, q, p, middle, drawn, end;
    LOCKSTEP_FN Solve(int n, const W& w)
        : position(w.fields),
          phase(w.fields.from(n)),
          iterations(w.fields.from(n + 1)),
          q(w.fields.from(n + 2)),
          p(q.from(n)),
          middle(p.from(n)),
          drawn(middle.from(n)),
          end(drawn.from(n)) {}
  };
  /// to = from + factor C p of this position row by row, by way of w.x and w.p.
  template <class L, class Model, class W, class From, class P, class Put>
  LOCKSTEP_FN static void add_velocity(const Model& model, const W& w, wide_t<L> factor, From from, P p,
                                       Put&& put) {
    using V = wide_t<L>;
    for (int j = 0; j < model.rows(); ++j) {
      w.x.set(j, L(0));
      w.p.set(j, cast<L>(p(j)));
    }
    drift(model, w.parameters, L(1), w.x, w.p);
    for (int j = 0; j < model.rows(); ++j) put(j, fma(factor, cast<V>(w.x[j]), V(from[j])));
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Solve<W> f(n, w);
    // The position in double, where it is still that of the state.
    auto same = mask_not(V(0.0) > V(0.0));
    for (int j = 0; j < n; ++j) {
      const V at = cast<V>(w.position[j]), kept = cast<V>(cast<L>(V(f.position[j])));
      same = mask_and(same, mask_and(at <= kept, at >= kept));
    }
    Proposal<L, E> r;
    for (int j = 0; j < n; ++j) {
      f.position.set(j, select(same, V(f.position[j]), cast<V>(w.position[j])));
      f.q.set(j, f.position[j]);
    }
    draw.normals(Purpose::momentum, n, [&](int j, L z) {
      f.p.set(j, cast<V>(z));
      f.drawn.set(j, cast<V>(z));
    });
    r.kinetic = kinetic_energy<E, L>(model, f.drawn);
    r.step = w.parameters[ParameterLayout::step_size];
    r.steps = L(1);
    f.phase.set(0, V(double(forward)));
    f.iterations.set(0, V(0.0));
    add_velocity<L>(
        model, w, V(0.5) * cast<V>(r.step), f.q, [&](int j) { return V(f.p[j]); },
        [&](int j, V value) { f.middle.set(j, value); });
    for (int j = 0; j < n; ++j) w.x.set(j, cast<L>(V(f.middle[j])));
    return r;
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model&, const D&, L, const Proposal<L, E>&, const W&) {}

  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D&, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int n = model.rows();
    const Solve<W> f(n, w);
    const V half = V(0.5) * cast<V>(r.step), phase = f.phase[0], tolerance = V(sizeof(R) == 4 ? 1e-5 : 1e-9);
    const auto solving = mask_and(cast_mask<V>(s <= r.steps), phase < V(1.5));
    // One iteration: middle = q + step / 2 C (p + step / 2 C' force(middle)).
    for (int j = 0; j < n; ++j) w.p.set(j, L(0));
    kick(model, w.parameters, L(1), w.x, w.g, w.p);
    for (int j = 0; j < n; ++j) w.p.set(j, cast<L>(fma(half, cast<V>(w.p[j]), V(f.p[j]))));
    V change = V(0.0), back = V(0.0);
    add_velocity<L>(
        model, w, half, f.q, [&](int j) { return cast<V>(w.p[j]); },
        [&](int j, V value) {
          change = max(abs(value - f.middle[j]), change);
          f.middle.set(j, select(solving, value, V(f.middle[j])));
        });
    const auto solved = mask_and(solving, change < tolerance);
    f.iterations.set(0, f.iterations[0] + V(1.0));
    const auto lost = mask_and(mask_and(solving, mask_not(solved)), f.iterations[0] >= V(30.0));
    const auto turns = mask_and(solved, phase < V(0.5)), returns = mask_and(solved, phase > V(0.5));
    for (int j = 0; j < n; ++j) {
      // Where it led: q' = 2 middle - q, p' = 2 (p + step / 2 C' force) - p.
      const V q = V(2.0) * f.middle[j] - f.q[j], p = V(2.0) * cast<V>(w.p[j]) - f.p[j];
      back = max(max(abs(q - f.position[j]), abs(p + f.drawn[j])), back);
      f.end.set(j, select(turns, q, V(f.end[j])));
      f.q.set(j, select(turns, q, V(f.q[j])));
      f.p.set(j, select(turns, -p, V(f.p[j])));
    }
    const auto astray = mask_and(returns, mask_not(back < V(100.0) * tolerance));
    w.count(unsolved, select(lost, V(1.0), V(0.0)));
    w.count(irreversible, select(astray, V(1.0), V(0.0)));
    V next = select(turns, V(double(backward)), phase);
    next = select(returns, V(double(last)), next);
    f.phase.set(0, select(lost, V(double(failed)), select(astray, V(double(failed)), next)));
    f.iterations.set(0, select(turns, V(0.0), V(f.iterations[0])));
    add_velocity<L>(
        model, w, half, f.q, [&](int j) { return V(f.p[j]); },
        [&](int j, V value) { f.middle.set(j, select(turns, value, V(f.middle[j]))); });
    const auto at_end = mask_and(f.phase[0] > V(1.5), f.phase[0] < V(2.5));
    for (int j = 0; j < n; ++j) w.x.set(j, cast<L>(select(at_end, V(f.end[j]), V(f.middle[j]))));
    // The kinetic energy at the end is that of the momentum with which the way back began.
    const auto goes_on = mask_and(solving, f.phase[0] < V(2.5));
    r.steps = select(cast_mask<L>(goes_on), s + L(1), r.steps);
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const Solve<W> f(model.rows(), w);
    const auto good = mask_and(f.phase[0] > V(1.5), f.phase[0] < V(2.5));
    r.log_ratio = select(cast_mask<E>(good), r.kinetic - kinetic_energy<E, L>(model, f.p),
                         E(-std::numeric_limits<scalar_t<E>>::infinity()));
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    const Solve<W> f(model.rows(), w);
    using V = std::remove_cvref_t<decltype(f.position[0])>;
    const auto accepted = cast<V>(r.accepted) > V(0.5);
    select_rows(model.rows(), accepted, f.end, f.position);
  }
};

/// Sums of x_0 over tours, which each chain closes at iterations of its own: a share of them, a quarter unless set.
struct Tours : Hmc {
  enum Counter { tours, length, sum, kCounters };
  static TransitionInfo info() {
    TransitionInfo info = Hmc::info();
    info.name = "tours";
    info.fields = {{"open tour", 2, 0}};  // length, sum
    info.counters = {"tours", "length", "sum"};
    info.settings = {{"closing", "probability that a tour ends", 0.25, 0, 1}};
    return info;
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model&, const LaunchSpec& spec, const D& draw, const P&, const W& w) {
    using V = std::remove_cvref_t<decltype(w.fields[0])>;
    if (!spec.record) return;
    const V n = w.fields[0] + V(1.0), total = w.fields[1] + cast<V>(w.position[0]);
    const auto closes = cast<V>(draw.uniform(kOwnDraw)) < V(w.settings[0]);
    w.count(tours, select(closes, V(1.0), V(0.0)));
    w.count(length, select(closes, n, V(0.0)));
    w.count(sum, select(closes, total, V(0.0)));
    w.fields.set(0, select(closes, V(0.0), n));
    w.fields.set(1, select(closes, V(0.0), total));
  }
};

/// Two transitions in an iteration.
template <class First, class Second>
struct Sequence {};

/// f.operator()<T>() for a transition, or for each of a sequence in their order.
template <class Transition>
struct Each {
  template <class F>
  static void call(F f) {
    f.template operator()<Transition>();
  }
};
template <class First, class Second>
struct Each<Sequence<First, Second>> {
  template <class F>
  static void call(F f) {
    f.template operator()<First>();
    f.template operator()<Second>();
  }
};

/// One that follows another with a list of its own, and so has the second.
template <class Of>
struct WithSecondList : Of {
  static void prepare(Engine& engine, int units) { engine.set_shared(1, Of::lists(engine.dim(), units)); }
};

/// What a twin of a transition has to say of itself is what the transition has.
template <class Transition>
const TransitionInfo& info_of() {
  static const TransitionInfo info = [] {
    if constexpr (requires { Transition::info(); }) return Transition::info();
    return Hmc::info();
  }();
  return info;
}
/// The transitions of a spec.
template <class Transition>
void name_transitions(EngineSpec& spec) {
  spec.transition = nullptr;
  Each<Transition>::call([&]<class One>() {
    if (spec.transition == nullptr)
      spec.transition = &info_of<One>();
    else
      spec.then.push_back(&info_of<One>());
  });
}

template <class F>
void for_each_with_data(F f) {
  f.template operator()<ListWalk>();
  f.template operator()<SliceWalk>();
  f.template operator()<ImplicitMidpoint>();
  f.template operator()<Tours>();
  f.template operator()<KnownModes>();
}
/// Settings that are not what its transitions have by themselves, as an EngineSpec has them.
template <class Transition>
std::vector<std::vector<double>> other_settings() {
  std::vector<std::vector<double>> all;
  Each<Transition>::call([&]<class One>() {
    all.emplace_back();
    for (const TransitionSetting& s : info_of<One>().settings)
      all.back().push_back((s.least + s.standard) / 2);
  });
  return all;
}
/// What the host has to give an engine with this transition; its units are numbered from 0.
template <class Transition>
void prepare(Engine& engine, int units) {
  Each<Transition>::call([&]<class One>() {
    if constexpr (requires { One::prepare(engine, units); }) One::prepare(engine, units);
  });
}

}  // namespace lockstep::testing
