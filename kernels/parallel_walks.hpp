// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parallel tempering of random walks as a transition, a baseline.
#include "kernels/tempered_levels.hpp"

namespace lockstep {

/// Parallel tempering of random walks (Geyer 1991), as Kou, Zhou & Wong (2006) and Tak, Meng & van Dyk (2018) compare it:
/// after the walks of its levels (kernels/tempered_levels.hpp), with probability `exchange`, two neighbours k and k + 1,
/// drawn uniformly, exchange their positions x and y with
///
///   min(1, pi_k(y) pi_{k+1}(x) / (pi_k(x) pi_{k+1}(y)))
///
/// Where the target's level is one of the two, that takes the place of its walk. Leaves the product of the levels invariant.
/// On a path the inverse temperature has to stay: levels know their energies at the one they were at.
struct ParallelWalks : TemperedLevels {
  static TransitionInfo info() {
    return {.name = "pt_rwm",
            .summary = "parallel tempering of five random walks (a baseline)",
            .formula = "levels exp(-max(-log density(x), H_k) / T_k) walk; neighbours exchange positions",
            .source = "Geyer (1991); Kou, Zhou & Wong (2006)",
            .gradients = kGradients,
            .target_acceptance = 0.27,
            .harmonic_mean = false,
            .alone = true,
            .fields = {levels_field(), {"exchange", 2, 1, false}},
            .counters = counters(),
            .settings = settings("probability that two levels exchange their positions", 100),
            .ascending = {"first_energy", "last_energy"}};
  }
  /// Which pair exchanges, or -1; energy and position of the chain before.
  template <class W>
  struct Exchange : Levels<W> {
    typename Levels<W>::Fields pair, energy0, position0;
    LOCKSTEP_FN Exchange(int rows, const W& w)
        : Levels<W>(rows, w), pair(this->after()), energy0(pair.from(1)), position0(pair.from(2)) {}
  };

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const auto settled = begin_levels<L>(model, w);
    const Exchange<W> f(model.rows(), w);
    const V u = cast<V>(draw.uniform(Purpose::swap)), which = cast<V>(draw.uniform(Purpose::swap, 1));
    const auto exchanges = mask_and(settled, u < V(w.settings[exchange]));
    f.pair.set(0, select(exchanges, floor(which * V(double(kLevels - 1))), V(-1.0)));
    f.energy0.set(0, energy_here<V>(w));
    for (int j = 0; j < f.n; ++j) f.position0.set(j, cast<V>(w.position[j]));
    Proposal<L, E> r;
    r.steps = L(scalar_t<L>(kLevels));
    return r;
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>&, const W& w) {
    using V = wide_t<L>;
    const int level = level_of(s);
    walk<L>(model, draw, level, w);
    if (level > 0) return;
    const Exchange<W> f(model.rows(), w);
    const auto first = is(V(f.pair[0]), 0);
    for (int j = 0; j < f.n; ++j) w.x.set(j, cast<L>(select(first, V(f.position(1)[j]), cast<V>(w.x[j]))));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>&, const W& w) {
    using V = wide_t<L>;
    const int level = level_of(s);
    if (level > 0) {
      const auto accepted = decide_level<L>(model, draw, level, V(0.0), w);
      w.count(Counter(walked + level - 1), select(accepted, V(1.0), V(0.0)));
      return;
    }
    const Exchange<W> f(model.rows(), w);
    const V u = cast<V>(draw.uniform(Purpose::swap, 2));
    for (int k = 1; k + 1 < kLevels; ++k) {
      const V x = f.energy(k)[0], y = f.energy(k + 1)[0];
      const auto swaps = mask_and(is(V(f.pair[0]), k), log(u) < gain(k, x, y, w));
      f.energy(k).set(0, select(swaps, y, x));
      f.energy(k + 1).set(0, select(swaps, x, y));
      for (int j = 0; j < f.n; ++j) {
        const V a = f.position(k)[j], b = f.position(k + 1)[j];
        f.position(k).set(j, select(swaps, b, a));
        f.position(k + 1).set(j, select(swaps, a, b));
      }
      w.count(exchanged, select(swaps, V(1.0), V(0.0)));
    }
    w.count(tried, select(f.pair[0] > V(-0.5), V(1.0), V(0.0)));
    w.count(evaluations, V(double(kLevels * model.samples())));
  }
  /// log of the ratio of an exchange of k at energy x with k + 1 at y.
  template <class V, class W>
  LOCKSTEP_FN static V gain(int k, V x, V y, const W& w) {
    return (log_level(k, y, w) - log_level(k, x, w)) + (log_level(k + 1, x, w) - log_level(k + 1, y, w));
  }
  /// The driver knows the target's part.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const Exchange<W> f(model.rows(), w);
    const V other = log_level(1, V(f.energy0[0]), w) - log_level(1, V(f.energy(1)[0]), w);
    r.log_ratio = select(cast_mask<E>(is(V(f.pair[0]), 0)), cast<E>(other), E(0));
    r.steps = L(0);  // no gradients
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    const Exchange<W> f(model.rows(), w);
    using V = std::remove_cvref_t<decltype(f.pair[0])>;
    const auto swapped = mask_and(is(V(f.pair[0]), 0), cast<V>(r.accepted) > V(0.5));
    f.energy(1).set(0, select(swapped, V(f.energy0[0]), V(f.energy(1)[0])));
    for (int j = 0; j < f.n; ++j)
      f.position(1).set(j, select(swapped, V(f.position0[j]), V(f.position(1)[j])));
    w.count(exchanged, select(swapped, V(1.0), V(0.0)));
  }
};

}  // namespace lockstep
