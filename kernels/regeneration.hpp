// SPDX-License-Identifier: Apache-2.0
#pragma once
// Regenerations as a transition that follows others: when a chain begins anew.
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
/// **What it goes by may be learned while it runs**, at such times alone (Gilks, Roberts & Sahu 1998): the next tour
/// may go by another q and c, whatever they were made of, if it begins with a draw of the Q that belongs to them. The
/// list then holds the newest mixture, the one before, and how many came before the newest (its epoch). A chain goes on
/// by the one that it began its tour with; when that ends and there is a newer one, it waits outside all tours, and its
/// next is begun by the first proposal y of the newer q that is kept with probability min(1, w(y) / c): a draw of Q by
/// rejection. What is in no tour yet goes by the newest. Lists may change between launches, once no chain of a unit
/// goes by the one before. Where a tour of length N and sum S begins with that, E(S - m N) is 0 given all that was
/// before, m the target's mean, so that the ratio of sums over tours holds; means over all iterations are no longer
/// those of a chain that leaves the target invariant.
///
/// List "regeneration": as of ModeMixture, its other number log c; and where that is learned, the mixture before in the same
/// form, if chains go by it, and the epoch. The settings are read by who makes it.
struct Regeneration : ModeMixture {
  enum Counter { accepted, regenerated, kCounters };
  enum Setting { spread, level, adaptations, starts, residual };
  /// Fields of a chain: these, then rows of a position (how many of them `Row` says, each).
  enum Number { begun, length, closed, sum_n, sum_nn, made, taken, epoch, waits, kNumbers };
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
            {"level", "what is added to log c, beside the typical log w", 0, -1e3, 1e3},
            {"adaptations",
             "times that q and c are learned anew from what was visited, at regenerations alone", 0, 0, 1e3,
             true},
            {"starts",
             "where they are learned: descents from random points that the first modes come from, and no "
             "more "
             "(0: the usual search)",
             0, 0, 1024, true},
            {"residual",
             "energy on which later modes are looked for: 0 that of the target, or 1 (log) and 2 "
             "(difference) "
             "what known modes leave of it",
             0, 0, 2, true}}};
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const V at = place<V>(model, w);
    const auto drawn = draw_mixture<E, V>(model, draw, V(kAll), w, at);
    const auto weights = w.fields.from(kNumbers + kRows * model.rows());
    weights.set(0, cast<V>(w.cache[0]) - drawn.before);  // log w(x), log q(y)
    weights.set(1, drawn.after);
    Proposal<L, E> r;
    // Who waits is told w(y) / c: the driver compares the densities of y and x.
    const V kept = cast<V>(w.cache[0]) - drawn.after - number<V>(w, at);
    r.log_ratio =
        select(cast_mask<E>(mask_and(V(w.fields[waits]) > V(0.5), cast<V>(drawn.log_ratio) > V(-kAll))),
               cast<E>(kept), drawn.log_ratio);
    return r;
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec& spec, const D& draw, const P& r,
                                  const W& w) {
    using V = wide_t<std::remove_cvref_t<decltype(w.x[0])>>;
    const auto weights = w.fields.from(kNumbers + kRows * model.rows());
    const V at = place<V>(model, w), newest = newest_epoch<V>(model, w);
    const V c = number<V>(w, at), x = weights[0] - c, y = cast<V>(w.cache[0]) - weights[1] - c;
    const V log_r = min(max(x, y), V(0.0)) - max(min(x, y), V(0.0));
    const V took = cast<V>(r.accepted);
    const auto moved = took > V(0.5), waited = V(w.fields[waits]) > V(0.5);
    const auto ends = mask_and(mask_and(moved, mask_not(waited)),
                               cast<V>(draw.uniform(Purpose::regeneration)) < exp(min(log_r, V(0.0))));
    const V ended = select(ends, V(1.0), V(0.0));
    const auto leaves = mask_and(ends, mask_and(V(w.fields[epoch]) < newest, V(w.fields[begun]) > V(0.5)));
    // A tour begins where one ends by the newest mixture, or where a draw of Q was kept.
    const V begins = select(mask_and(moved, waited), V(1.0), select(leaves, V(0.0), ended));
    w.count(accepted, took);
    w.count(regenerated, ended);
    const V outside = select(leaves, V(1.0), select(waited, V(1.0) - begins, V(0.0)));
    w.fields.set(waits, outside);
    w.fields.set(epoch, select(begins > V(0.5), newest, V(w.fields[epoch])));
    if (spec.record) add_state(model, Event<V>{ended, begins, outside, took}, w);
  }

 private:
  /// Where the newest mixture ends in the list.
  template <class V, class Model, class W>
  LOCKSTEP_FN static V end_of_newest(const Model& model, const W& w) {
    return V(double(kHeader)) + components<V>(model, w) * V(double(length_of(model.dim())));
  }
  template <class V, class Model, class W>
  LOCKSTEP_FN static V newest_epoch(const Model& model, const W& w) {
    const V size = w.shared.size(0);
    return select(size > end_of_newest<V>(model, w), w.shared.get(0, size - V(1.0)), V(0.0));
  }
  /// Where the mixture begins that a chain goes by.
  template <class V, class Model, class W>
  LOCKSTEP_FN static V place(const Model& model, const W& w) {
    const auto before = mask_and(V(w.fields[epoch]) < newest_epoch<V>(model, w), V(w.fields[begun]) > V(0.5));
    return select(before, end_of_newest<V>(model, w), V(0.0));
  }
  LOCKSTEP_FN static constexpr int length_of(int dim) { return ModeMixture::length(dim); }

  /// 1 or 0: whether a tour has ended, one begins with the present state, it belongs to none, and y was accepted.
  template <class V>
  struct Event {
    V ended, begins, outside, took;
  };
  /// Closes the tour that has ended, and adds the present state to the one that is open then.
  template <class Model, class V, class W>
  LOCKSTEP_FN static void add_state(const Model& model, const Event<V>& e, const W& w) {
    const auto f = w.fields;
    const auto add = [&](int row, V value) { f.set(row, f[row] + value); };
    const V n = f[length], closes = e.ended * V(f[begun]), inside = V(1.0) - e.outside;
    const V goes_on = select(e.ended + e.begins > V(0.5), V(0.0), V(1.0));
    add(closed, closes);
    add(sum_n, closes * n);
    add(sum_nn, closes * (n * n));
    add(made, V(1.0));
    add(taken, e.took);
    const int rows = model.rows();
    for (int j = 0; j < rows; ++j) {
      const auto at = [&](Row row) { return kNumbers + row * rows + j; };
      const V s = f[at(open)];
      add(at(sum_s), closes * s);
      add(at(sum_ss), closes * (s * s));
      add(at(sum_ns), closes * (n * s));
      f.set(at(open), fma(goes_on, s, inside * cast<V>(w.position[j])));
    }
    f.set(length, fma(goes_on, n, inside));
    f.set(begun, select(e.begins > V(0.5), V(1.0), V(f[begun]) * inside));
  }
};

}  // namespace lockstep
