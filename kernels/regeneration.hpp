// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/mode_mixture.hpp"

namespace lockstep {

/// An independence sampler that says when a chain begins anew (Mykland, Tierney & Yu 1995; Lan, Streets & Shahbaba 2014,
/// equations 10 to 12). Proposals y are drawn from a mixture q of the known modes' normals and accepted with
/// min(1, w(y) / w(x)), w = density / q. With any c > 0 that kernel is at least S(x) Q(y),
///
///   S(x) = min(1, c / w(x)),   Q(y) = q(y) min(1, w(y) / c),
///
/// so that an accepted y is taken for a draw of Q with probability r = S(x) Q(y) / T(y | x), which is
///
///   c / min(w(x), w(y)) where both are above c,   max(w(x), w(y)) / c where both are below,   else 1.
///
/// Then (x, y) has density S(x) Q(y): y is a draw of Q whatever x was, and none has to be drawn in its place. Tours from
/// one such time to the next are independent and alike. What each chain sums over those that it has closed among recorded
/// iterations is in its fields: a tour has N states and the sums S_j of their coordinates; the stretch before the first
/// such time and the tour that is open belong to none.
///
/// List "regeneration": as of ModeMixture, its other number log c. The settings are read by who makes it.
struct Regeneration : ModeMixture {
  enum Counter { accepted, regenerated };
  /// Fields of a chain: these, then rows of a position (how many of them `Row` says, each).
  enum Number { begun, length, closed, sum_n, sum_nn, made, taken, kNumbers };
  enum Row { open, sum_s, sum_ss, sum_ns, kRows };
  static TransitionInfo info() {
    return {
        .name = "regeneration",
        .summary = "an independence sampler that says when a chain begins anew",
        .formula =
            "y ~ q, the known modes' normals; accepted by w = pi / q; begins anew by S(x) Q(y) / T(y | x)",
        .source = "Mykland, Tierney & Yu (1995); Lan, Streets & Shahbaba (2014)",
        .gradients = kGradients,
        .harmonic_mean = false,
        .fields = {{"tours", kNumbers, kRows}, {"weights", 2, 0, false}},
        .counters = {"independent_accepted", "regenerations"},
        .shared = {"regeneration"},
        .settings = {
            {"spread", "covariances of q over those of the modes: 1 + spread / sqrt(dim)", 1, 0, 1e3},
            {"level", "what is added to log c, beside the typical log w", 0, -1e3, 1e3}}};
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const auto drawn = draw_mixture<E, V>(model, draw, V(kAll), w);
    const auto weights = w.fields.from(kNumbers + kRows * model.rows());
    weights.set(0, cast<V>(w.cache[0]) - drawn.before);  // log w(x), log q(y)
    weights.set(1, drawn.after);
    Proposal<L, E> r;
    r.log_ratio = drawn.log_ratio;
    return r;
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec& spec, const D& draw, const P& r,
                                  const W& w) {
    using V = wide_t<std::remove_cvref_t<decltype(w.x[0])>>;
    const auto weights = w.fields.from(kNumbers + kRows * model.rows());
    const V c = number<V>(w), x = weights[0] - c, y = cast<V>(w.cache[0]) - weights[1] - c;
    const V log_r = min(max(x, y), V(0.0)) - max(min(x, y), V(0.0));
    const V took = cast<V>(r.accepted);
    const auto anew =
        mask_and(took > V(0.5), cast<V>(draw.uniform(Purpose::regeneration)) < exp(min(log_r, V(0.0))));
    w.count(accepted, took);
    w.count(regenerated, select(anew, V(1.0), V(0.0)));
    if (spec.record) add_state(model, anew, took, w);
  }

 private:
  /// Closes the tour that is open where a chain begins anew, and adds its present state to the one that is open then.
  template <class Model, class Mask, class V, class W>
  LOCKSTEP_FN static void add_state(const Model& model, Mask anew, V took, const W& w) {
    const auto f = w.fields;
    const auto add = [&](int row, V value) { f.set(row, f[row] + value); };
    const V n = f[length], closes = select(anew, V(f[begun]), V(0.0)), goes_on = select(anew, V(0.0), V(1.0));
    add(closed, closes);
    add(sum_n, closes * n);
    add(sum_nn, closes * (n * n));
    add(made, V(1.0));
    add(taken, took);
    const int rows = model.rows();
    for (int j = 0; j < rows; ++j) {
      const auto at = [&](Row row) { return kNumbers + row * rows + j; };
      const V s = f[at(open)];
      add(at(sum_s), closes * s);
      add(at(sum_ss), closes * (s * s));
      add(at(sum_ns), closes * (n * s));
      f.set(at(open), fma(goes_on, s, cast<V>(w.position[j])));
    }
    f.set(length, fma(goes_on, n, V(1.0)));
    f.set(begun, select(anew, V(1.0), V(f[begun])));
  }
};

}  // namespace lockstep
