// SPDX-License-Identifier: Apache-2.0
#pragma once
// The no-U-turn sampler as a transition.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// Without its check of the stretches within a doubling only for a broken twin of the tests; see Nuts.
template <bool kChecks>
struct NutsTree : TransitionDefaults {
  static constexpr bool kSelfEnding = true, kEnergies = true;
  static constexpr int kMostDepth = 10;
  enum Counter { saturated, kCounters };

  /// What of a tree stands in the fields of a chain: numbers, rows of a position's length each, and what is cached with two
  /// states (Model::cache_rows(): at most 4 and twice a position's).
  struct Tree {
    // Doublings made, most of them (one where a launch asks for so many steps), and the length of the stretch that is
    // being added; its leaves so far; log weights (of exp(H_0 - H)) of tree and stretch; the stretch's direction in
    // time; -H at the start, of the state chosen, of that of the stretch; sum of acceptances; leaves that diverged.
    enum Number {
      depth,
      most,
      length,
      leaf,
      weight,
      added,
      direction,
      start,
      chosen,
      candidate,
      accepted,
      diverged,
      kNumbers
    };
    // Of position, momentum, gradient: both ends; of position and gradient: the state chosen, and the stretch's; sums of
    // momenta of both; the momentum of the last leaf but one; and of open stretches the first momentum, the sum of
    // momenta up to there, the momentum before it.
    enum Row { left = 0, right = 3, state = 6, other = 8, rho = 10, rho_added, before, first };
    static constexpr int kRows = first + 3 * kMostDepth, kCacheFixed = 4, kCachePerRow = 2;
    static constexpr int kFixed = kNumbers + 2 * kCacheFixed, kPerRow = kRows + 2 * kCachePerRow;
  };

  static TransitionInfo info() {
    TransitionInfo info{.name = "nuts",
                        .summary = "No-U-turn sampler, multinomial, as Stan's",
                        .formula =
                            "a state of a trajectory doubled until it turns, drawn by exp(-H), H = -log "
                            "density + |p|^2 / 2",
                        .source = "Hoffman & Gelman (2014); multinomial: Betancourt (2017)",
                        .target_acceptance = 0.8,
                        .harmonic_mean = false,
                        .windows = true};
    info.fields = {{"tree", Tree::kFixed, Tree::kPerRow, false}};
    info.counters = {"saturated_trees"};
    info.gates = {{saturated, 0.01,
                   "longer trajectories would cost less for what they bring (raise sampler.max_treedepth, or "
                   "sampler.metric=dense)",
                   false}};
    info.settings = {{"max_treedepth", "most doublings of a trajectory", 10, 1, kMostDepth, true}};
    return info;
  }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return -1;
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Rowed<W> t(n, w);
    draw.normals(spec.momentum, n, [&](int j, L z) { w.p.set(j, z); });
    for (const int end : {int(Tree::left), int(Tree::right)})
      copy_rows<V>(n, w.x, t.row(end)), copy_rows<V>(n, w.p, t.row(end + 1)),
          copy_rows<V>(n, w.g, t.row(end + 2));
    copy_rows<V>(n, w.x, t.row(Tree::state));
    copy_rows<V>(n, w.g, t.row(Tree::state + 1));
    copy_rows<V>(model.cache_rows(), w.cache, t.cache(0));
    copy_rows<V>(n, w.p, t.row(Tree::rho));
    for (int k = 0; k < Tree::kNumbers; ++k) t.set(k, V(0.0));
    const V start = cast<V>(w.cache[0]) - kinetic_energy<V, L>(model, w.p);
    t.set(Tree::start, start);
    t.set(Tree::chosen, start);
    t.set(Tree::length, V(1.0));
    t.set(Tree::most, spec.num_leapfrog > 0 ? V(1.0) : V(w.settings[0]));
    t.set(Tree::direction, direction<V>(draw, V(0.0)));
    Proposal<L, E> r;
    r.step = w.parameters[ParameterLayout::step_size];
    r.steps = L(1);
    return r;
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D&, L s, const Proposal<L, E>& r, const W& w) {
    const L step = signed_step(model, s, r, w);
    kick(model, w.parameters, step * L(scalar_t<L>(0.5)), w.x, w.g, w.p);
    drift(model, w.parameters, step, w.x, w.p);
    reflect<L>(model, w.x, w.p);
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const Rowed<W> t(model.rows(), w);
    kick(model, w.parameters, signed_step(model, s, r, w) * L(scalar_t<L>(0.5)), w.x, w.g, w.p);
    const auto at_work = cast_mask<V>(s <= r.steps);
    visit<L>(model, draw, s, at_work, t, w);
    const V turned = turns(at_work, t, w);
    const auto sound =
        mask_and(at_work, mask_and(V(t[Tree::diverged]) < V(0.5), V(kChecks ? turned : V(0.0)) < V(0.5)));
    const V leaves = t[Tree::leaf] + V(1.0);
    t.set(Tree::leaf, select(at_work, leaves, V(t[Tree::leaf])));
    const auto whole = mask_and(sound, leaves >= V(t[Tree::length]));
    const auto within = mask_and(sound, mask_not(whole));
    const V more = select(within, V(1.0), any(whole) ? double_tree<L>(model, draw, whole, t, w) : V(0.0));
    r.steps = select(cast_mask<L>(more > V(0.5)), s + L(1), r.steps);
  }
  /// To the state chosen, always.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    const Rowed<W> t(model.rows(), w);
    copy_rows<L>(model.rows(), t.row(Tree::state), w.x);
    copy_rows<L>(model.rows(), t.row(Tree::state + 1), w.g);
    copy_rows<E>(model.cache_rows(), t.cache(0), w.ce);
    r.log_ratio = w.cache[0] - w.ce[0];
    r.kinetic = w.cache[0] - cast<E>(t[Tree::chosen]);
    r.statistic = cast<E>(t[Tree::accepted]) / cast<E>(r.steps);
    r.diverged = cast<E>(t[Tree::diverged]);
  }

 private:
  /// The fields of a chain as a Tree.
  template <class W>
  struct Rowed {
    decltype(W::fields) fields;
    int n;
    LOCKSTEP_FN Rowed(int rows, const W& w) : fields(w.fields), n(rows) {}
    LOCKSTEP_FN auto operator[](int number) const { return fields[number]; }
    template <class V>
    LOCKSTEP_FN void set(int number, V value) const {
      fields.set(number, value);
    }
    LOCKSTEP_FN auto row(int r) const { return fields.from(Tree::kNumbers + r * n); }
    /// 0: of the state chosen; 1: of the stretch's.
    LOCKSTEP_FN auto cache(int of) const {
      return fields.from(Tree::kNumbers + Tree::kRows * n +
                         of * (Tree::kCacheFixed + Tree::kCachePerRow * n));
    }
  };
  enum Block { leaf_block = 0, double_block = 2048, direction_block = 4096 };

  template <class V, class D>
  LOCKSTEP_FN static V direction(const D& draw, V depth) {
    using L = std::remove_cvref_t<decltype(draw.uniform(Purpose::tree))>;
    const L u = draw.uniform_at(Purpose::tree, cast<L>(depth) + L(scalar_t<L>(direction_block)));
    return cast<V>(select(u < L(scalar_t<L>(0.5)), L(1), L(-1)));
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static L signed_step(const Model& model, L s, const Proposal<L, E>& r, const W& w) {
    const Rowed<W> t(model.rows(), w);
    return select(s <= r.steps, r.step * cast<L>(t[Tree::direction]), L(0));
  }
  template <class V>
  LOCKSTEP_FN static V log_add(V a, V b) {
    return max(a, b) + log1p(exp(-abs(a - b)));
  }
  template <class V, class A, class B>
  LOCKSTEP_FN static V dot(int n, A a, B b) {
    V sum = V(0.0);
    for (int j = 0; j < n; ++j) sum = fma(a(j), b(j), sum);
    return sum;
  }
  /// Whether a stretch with these first and last momenta and this sum of them has turned: 1 or 0.
  template <class V, class A, class B, class Rho>
  LOCKSTEP_FN static V turned(int n, A first, B last, Rho rho) {
    return select(mask_and(dot<V>(n, first, rho) > V(0.0), dot<V>(n, last, rho) > V(0.0)), V(0.0), V(1.0));
  }

  /// Weighs the leaf where x is, and takes it for the stretch's candidate with its share of the weight.
  template <class L, class Model, class D, class Mask, class T, class W>
  LOCKSTEP_FN static void visit(const Model& model, const D& draw, L s, Mask at_work, const T& t,
                                const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const V joint = cast<V>(w.ce[0]) - kinetic_energy<V, L>(model, w.p), change = joint - t[Tree::start];
    const auto sound = change > V(-1000.0);
    const V gain = select(change > V(-1e300), change, V(-1e300));
    const auto first = V(t[Tree::leaf]) < V(0.5);
    const V added = select(first, gain, log_add(V(t[Tree::added]), gain));
    const auto takes = mask_and(at_work, log(cast<V>(draw.uniform_at(Purpose::tree, s))) < gain - added);
    const auto keep = [&](int number, auto lanes, V value) {
      t.set(number, select(lanes, value, V(t[number])));
    };
    keep(Tree::added, at_work, added);
    keep(Tree::accepted, at_work,
         t[Tree::accepted] + select(gain > V(-700.0), exp(min(gain, V(0.0))), V(0.0)));
    keep(Tree::diverged, at_work, select(sound, V(0.0), V(1.0)));
    keep(Tree::candidate, takes, joint);
    const auto rho = t.row(Tree::rho_added), x = t.row(Tree::other), g = t.row(Tree::other + 1);
    for (int j = 0; j < n; ++j) {
      const V p = cast<V>(w.p[j]);
      rho.set(j, select(at_work, select(first, p, rho[j] + p), V(rho[j])));
      x.set(j, select(takes, cast<V>(w.x[j]), V(x[j])));
      g.set(j, select(takes, cast<V>(w.g[j]), V(g[j])));
    }
    const auto cache = t.cache(1);
    for (int j = 0; j < model.cache_rows(); ++j) cache.set(j, select(takes, cast<V>(w.ce[j]), V(cache[j])));
  }

  /// Of the leaf's number: how many of its digits but the last are 1, and how many at its end.
  template <class V>
  struct Digits {
    V ones = V(0.0), ending = V(0.0);
    LOCKSTEP_FN explicit Digits(V number) {
      V run = V(1.0);
      for (int b = 0; b < kMostDepth; ++b) {
        const V half = floor(number * V(0.5)), digit = nfma(V(2.0), half, number);
        ones = b > 0 ? ones + digit : ones;
        run = run * digit;
        ending = ending + run;
        number = half;
      }
    }
  };
  /// Opens stretches at leaves of even number; 1 where one turns that a leaf of odd number closes. Of the stretches that
  /// are open at a leaf, the longest first, number k begins where the k-th 1 of the leaf's number but the last ends.
  template <class Mask, class T, class W>
  LOCKSTEP_FN static auto turns(Mask at_work, const T& t, const W& w) {
    using V = wide_t<std::remove_cvref_t<decltype(w.x[0])>>;
    const int n = t.n;
    const V leaf = t[Tree::leaf];
    const Digits<V> digits(leaf);
    const auto opens = mask_and(at_work, digits.ending < V(0.5)),
               closes = mask_and(at_work, digits.ending > V(0.5));
    const auto sum = t.row(Tree::rho_added), before = t.row(Tree::before);
    const auto here = [&](int j) { return cast<V>(w.p[j]); };
    V turning = V(0.0);
    for (int k = kMostDepth - 1; k >= 0; --k) {
      const V place = digits.ones - V(double(k));  // 0: the youngest
      const auto begins = mask_and(opens, mask_and(place > V(-0.5), place < V(0.5)));
      const auto at = t.row(Tree::first + 3 * k);
      if (any(begins))
        for (int j = 0; j < n; ++j) {
          at.set(j, select(begins, here(j), V(at[j])));
          at.set(n + j, select(begins, V(sum[j]), V(at[n + j])));
          at.set(2 * n + j, select(begins, V(before[j]), V(at[2 * n + j])));
        }
      const auto ends = mask_and(closes, mask_and(place > V(-0.5), place < digits.ending - V(0.5)));
      if (!any(ends)) continue;
      const auto open = [&](int j) { return V(at[j]); };
      V turn = turned<V>(n, open, here, [&](int j) { return sum[j] - at[n + j] + at[j]; });
      const auto halves = mask_and(ends, place > V(0.5));
      if (any(halves)) {  // of two leaves or more, the later from where the next stretch begins
        const auto later = t.row(Tree::first + 3 * (k + 1));
        const V join = max(turned<V>(
                               n, open, [&](int j) { return V(later[j]); },
                               [&](int j) { return later[n + j] - at[n + j] + at[j]; }),
                           turned<V>(
                               n, [&](int j) { return V(later[2 * n + j]); }, here,
                               [&](int j) { return sum[j] - later[n + j] + later[j] + later[2 * n + j]; }));
        turn = select(halves, max(turn, join), turn);
      }
      turning = select(ends, max(turning, turn), turning);
    }
    for (int j = 0; j < n; ++j) before.set(j, select(closes, here(j), V(before[j])));
    return turning;
  }

  /// Joins the new stretch to the tree, in lanes where it is whole; 1 where the tree is to be doubled again, from the end
  /// that x, p and g are then at.
  template <class L, class Model, class D, class Mask, class T, class W>
  LOCKSTEP_FN static wide_t<L> double_tree(const Model& model, const D& draw, Mask whole, const T& t,
                                           const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const V depth = t[Tree::depth], next = depth + V(1.0);
    const auto later = V(t[Tree::direction]) > V(0.0);
    const L u = draw.uniform_at(Purpose::tree, cast<L>(depth) + L(scalar_t<L>(double_block)));
    const auto takes = mask_and(whole, log(cast<V>(u)) < t[Tree::added] - t[Tree::weight]);
    for (int j = 0; j < 2 * n; ++j) {
      const auto state = t.row(Tree::state), other = t.row(Tree::other);
      state.set(j, select(takes, V(other[j]), V(state[j])));
    }
    for (int j = 0; j < model.cache_rows(); ++j)
      t.cache(0).set(j, select(takes, V(t.cache(1)[j]), V(t.cache(0)[j])));
    t.set(Tree::chosen, select(takes, V(t[Tree::candidate]), V(t[Tree::chosen])));
    t.set(Tree::weight, select(whole, log_add(V(t[Tree::weight]), V(t[Tree::added])), V(t[Tree::weight])));
    t.set(Tree::depth, select(whole, next, depth));

    const auto rho = t.row(Tree::rho), added = t.row(Tree::rho_added), nearest = t.row(Tree::first);
    const auto left = t.row(Tree::left), right = t.row(Tree::right);
    const auto here = [&](int j) { return cast<V>(w.p[j]); };
    const auto inner = [&](int j) { return select(later, V(right[n + j]), V(left[n + j])); };
    const auto outer = [&](int j) { return select(later, V(left[n + j]), V(right[n + j])); };
    const auto beginning = [&](int j) { return V(nearest[j]); };
    V turn = turned<V>(n, outer, here, [&](int j) { return rho[j] + added[j]; });
    turn = max(turn, turned<V>(n, outer, beginning, [&](int j) { return rho[j] + nearest[j]; }));
    turn = max(turn, turned<V>(n, inner, here, [&](int j) { return added[j] + inner(j); }));
    const auto full = next > t[Tree::most] - V(0.5);
    w.count(saturated, select(mask_and(mask_and(whole, full), turn < V(0.5)), V(1.0), V(0.0)));
    const auto again = mask_and(mask_and(whole, turn < V(0.5)), mask_not(full));

    const auto ends_right = mask_and(whole, later), ends_left = mask_and(whole, mask_not(later));
    const V way = direction<V>(draw, next);
    const auto to_right = way > V(0.0);
    const auto extend = [&](int block, int j, auto& row) {
      const V value = cast<V>(row[j]);
      left.set(block * n + j, select(ends_left, value, V(left[block * n + j])));
      right.set(block * n + j, select(ends_right, value, V(right[block * n + j])));
      const V from = select(to_right, V(right[block * n + j]), V(left[block * n + j]));
      row.set(j, select(cast_mask<L>(again), cast<L>(from), L(row[j])));
    };
    for (int j = 0; j < n; ++j) {
      rho.set(j, select(whole, rho[j] + added[j], V(rho[j])));
      extend(0, j, w.x);
      extend(1, j, w.p);
      extend(2, j, w.g);
    }
    t.set(Tree::direction, select(again, way, V(t[Tree::direction])));
    t.set(Tree::length, select(again, V(2.0) * t[Tree::length], V(t[Tree::length])));
    t.set(Tree::leaf, select(again, V(0.0), V(t[Tree::leaf])));
    return select(again, V(1.0), V(0.0));
  }
};

/// The no-U-turn sampler (Hoffman & Gelman 2014) with multinomial sampling of the trajectory (Betancourt 2017, appendix
/// A.3): a trajectory is doubled, forwards or backwards in time, until it turns back on itself or an energy error exceeds
/// 1000; states are drawn in proportion to exp(-H), H = -log density + |p|^2 / 2, those of the newer half with the
/// probability min(1, weight of the new half / weight of the old). A half that turns within itself is dropped whole.
///
/// A stretch of the trajectory has turned where its first or its last momentum p makes no positive product with its sum of
/// momenta rho; and so has one of two halves where that is so of either half with the nearest state of the other (as Stan
/// does since 2.21). Momenta are N(0, I), velocities C p, so that the products are those of Betancourt's p' M^-1 rho in any
/// metric. Leaves are visited one by one, each a step of the lane (Phan, Pradhan & Jankowiak 2019; Lao & Dillon 2019):
/// of the aligned stretches that a leaf may close, only first states are kept, one for each depth.
///
/// Leaves the density invariant; the statistic for step sizes is the mean of min(1, exp(H_0 - H)) over the leaves.
struct Nuts : NutsTree<true> {};

}  // namespace lockstep
