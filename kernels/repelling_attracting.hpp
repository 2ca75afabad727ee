// SPDX-License-Identifier: Apache-2.0
#pragma once
// Repelling-attracting Metropolis as a transition.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

/// Repelling-attracting Metropolis (Tak, Meng & van Dyk 2018, algorithm 1): with jumps N(0, S), S = step_size^2 C C' (C the
/// metric), and l(x) = log(density(x) + epsilon),
///
///   1. x1 ~ N(x, S) until accepted with min(1, exp(l(x) - l(x1)))      downhill
///   2. x2 ~ N(x1, S) until accepted with min(1, exp(l(x2) - l(x1)))    uphill
///   3. z2 ~ N(x2, S) until accepted with min(1, exp(l(x2) - l(z2)))    downhill
///   4. (x2, z2) accepted with min(1, density(x2) min(1, exp(l(x) - l(z))) / (density(x) min(1, exp(l(x2) - l(z2)))))
///
/// which leaves density(x) N(z; x, S) invariant: the chance A(x) that a jump from x is accepted downhill, which normalises
/// step 1, is that which normalises step 3 on the way back, and cancels. z is drawn from N(x, S) where a chain begins.
///
/// Each loop ends after `most_proposals` and the transition is then rejected. That is exact too: a loop that may take M
/// proposals ends with probability 1 - (1 - A)^M, a factor of the proposal which, with the same M downhill both times,
/// stands on both sides of the ratio for x and for x2; for x1, in the middle of both ways, it does so whatever its M is.
///
/// Costs one log density for each jump, and no gradient. On a path, whose density may have changed since, z is evaluated
/// anew. A box is zero density outside: jumps go there as they go to any valley.
struct RepellingAttracting : TransitionDefaults {
  static constexpr bool kGradients = false, kEnergies = true, kSelfEnding = true;
  enum Setting { most_proposals, log_epsilon };
  enum Counter { evaluations, downhill, uphill, capped, kCounters };
  static TransitionInfo info() {
    return {
        .name = "ram",
        .summary = "repelling-attracting Metropolis: downhill, uphill, by random walks",
        .formula =
            "x' by a forced step downhill, x'' by one uphill; accept with min(1, density(x'') a(x, z) / "
            "(density(x) a(x'', z''))), a the chance of going downhill",
        .source = "Tak, Meng & van Dyk (2018)",
        .gradients = kGradients,
        .target_acceptance = 0.08,  // what S = 4 I of the paper has on its first mixture
        .harmonic_mean = false,
        .fields = {{"z", 2, 1}, {"jump", kFixed, 5, false}},
        .counters = {"evaluations", "downhill", "uphill", "capped"},
        .settings = {{"most_proposals", "of a loop, after which the move is rejected", 1000, 1, 10000, true},
                     {"log_epsilon", "log of what is added to densities", -709.1962086421661, -1e6, 1e6}},
        .gates = {
            {capped, 0.05,
             "its loops end without a jump; lower sampler.step_size, or raise sampler.most_proposals"}}};
  }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return -1;
  }

  static constexpr int kFixed =
      9;  // phase, tried, three log densities; cache of x2: at most 4 + two for each row
  /// What the next evaluation is of; and how a transition has ended.
  enum Phase { of_z, down, up, down_again, complete, given_up };
  template <class W>
  struct Jump {
    using Fields = decltype(W::fields);
    Fields known, z_density, z, phase, tried, x1_density, x2_density, z2_density, x1, x2, z2, cache;
    LOCKSTEP_FN Jump(int n, const W& w)
        : known(w.fields),
          z_density(w.fields.from(1)),
          z(w.fields.from(2)),
          phase(w.fields.from(2 + n)),
          tried(phase.from(1)),
          x1_density(phase.from(2)),
          x2_density(phase.from(3)),
          z2_density(phase.from(4)),
          x1(phase.from(5)),
          x2(x1.from(n)),
          z2(x2.from(n)),
          cache(z2.from(n)) {}
  };
  template <class V>
  LOCKSTEP_FN static auto is(V phase, int one) {
    return mask_and(phase > V(one - 0.5), phase < V(one + 0.5));
  }
  static constexpr double kNothing = -1e300;  // log of a density of zero
  /// log(density + epsilon).
  template <class V, class W>
  LOCKSTEP_FN static V lifted(V log_density, const W& w) {
    const V e = V(w.settings[log_epsilon]), most = max(log_density, e);
    return most + log1p(exp(min(log_density, e) - most));
  }
  template <class V, class E, class L, class Model, class W>
  LOCKSTEP_FN static V log_density_of(const Model& model, const W& w) {
    const E l = w.ce[0];
    const auto there = mask_and(is_finite(l), cast_mask<E>(inside_box<L>(model, w.x)));
    return select(cast_mask<V>(there), cast<V>(l), V(kNothing));
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>&, const W& w) {
    using V = wide_t<L>;
    const Jump<W> f(model.rows(), w);
    Proposal<L, E> r;
    r.steps = L(1);
    f.phase.set(0, select(f.known[0] > V(Model::kTempered ? 1.5 : 0.5), V(double(down)), V(double(of_z))));
    f.tried.set(0, V(0.0));
    return r;
  }
  /// Numbers of the random words of step s begin at this, as many as 1 + rows / 4.
  template <class L>
  LOCKSTEP_FN static L words_of(L s, int rows) {
    return s * L(scalar_t<L>(1 + (rows + 3) / 4));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>&, const W& w) {
    using V = wide_t<L>;
    using R = scalar_t<L>;
    const int n = model.rows();
    const Jump<W> f(n, w);
    const V phase = f.phase[0];
    const auto stays = mask_and(is(phase, of_z), f.known[0] > V(0.5));
    const auto from_x1 = is(phase, up), from_x2 = is(phase, down_again);
    for (int j = 0; j < n; ++j) {
      V from = select(from_x1, V(f.x1[j]), cast<V>(w.position[j]));
      from = select(from_x2, V(f.x2[j]), from);
      w.x.set(j, cast<L>(select(stays, V(f.z[j]), from)));
    }
    const L first = words_of(s, n);
    for (int q = 0; 4 * q < n; ++q) {
      typename D::I words[4];
      draw.words(Purpose::proposal, to_int(first + L(R(q + 1))), words);
      L z[4];
      D::normals(words[0], words[1], z[0], z[1]);
      D::normals(words[2], words[3], z[2], z[3]);
      for (int k = 0; k < 4 && 4 * q + k < n; ++k) w.p.set(4 * q + k, z[k]);
    }
    const L step = w.parameters[ParameterLayout::step_size];
    drift(model, w.parameters, select(cast_mask<L>(stays), L(0), step), w.x, w.p);
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Jump<W> f(n, w);
    const V phase = f.phase[0], l = log_density_of<V, E, L>(model, w), up_here = lifted(l, w);
    const auto goes = cast_mask<V>(s <= r.steps);
    const auto to_z = mask_and(goes, is(phase, of_z)), to_x1 = mask_and(goes, is(phase, down)),
               to_x2 = mask_and(goes, is(phase, up)), to_z2 = mask_and(goes, is(phase, down_again));
    V change = select(is(phase, up), up_here - lifted(V(f.x1_density[0]), w),
                      lifted(cast<V>(w.cache[0]), w) - up_here);
    change = select(is(phase, down_again), lifted(V(f.x2_density[0]), w) - up_here, change);
    const V u = cast<V>(draw.uniform_at(Purpose::proposal, words_of(s, n)));
    const auto taken = log(u) < select(is(phase, of_z), V(1.0), change);
    const V tried = f.tried[0] + V(1.0);
    const auto tired = mask_and(mask_and(goes, mask_not(taken)), tried >= V(w.settings[most_proposals]));
    const auto keep = [&](auto mask, auto density, auto place) {
      const auto kept = mask_and(mask, taken);
      density.set(0, select(kept, l, V(density[0])));
      for (int j = 0; j < n; ++j) place.set(j, select(kept, cast<V>(w.x[j]), V(place[j])));
      return kept;
    };
    keep(to_z, f.z_density, f.z);
    keep(to_x1, f.x1_density, f.x1);
    keep(to_z2, f.z2_density, f.z2);
    const auto attracted = keep(to_x2, f.x2_density, f.x2);
    for (int k = 0; k < model.cache_rows(); ++k)
      f.cache.set(k, select(attracted, cast<V>(w.ce[k]), V(f.cache[k])));
    f.known.set(0, select(to_z, V(1.0), V(f.known[0])));
    const auto one = [](auto mask) { return select(mask, V(1.0), V(0.0)); };
    const V next = select(tired, V(double(given_up)), phase + one(mask_and(goes, taken)));
    f.phase.set(0, next);
    f.tried.set(0, select(mask_and(goes, taken), V(0.0), tried));
    w.count(evaluations, one(goes) * V(double(model.samples())));
    w.count(downhill, one(to_x1));
    w.count(uphill, one(to_x2));
    w.count(capped, one(tired));
    r.steps = select(cast_mask<L>(mask_and(goes, next < V(double(complete) - 0.5))), s + L(1), r.steps);
  }
  /// The proposal is x2; its evaluations are counted as such, and are no gradients.
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const int n = model.rows();
    const Jump<W> f(n, w);
    const auto whole = is(V(f.phase[0]), complete);
    for (int j = 0; j < n; ++j) w.x.set(j, cast<L>(select(whole, V(f.x2[j]), cast<V>(w.position[j]))));
    for (int k = 0; k < model.cache_rows(); ++k)
      w.ce.set(k, cast<E>(select(whole, V(f.cache[k]), cast<V>(w.cache[k]))));
    const auto chance = [&](V from, V to) { return min(V(0.0), lifted(from, w) - lifted(to, w)); };
    const V ratio = chance(cast<V>(w.cache[0]), f.z_density[0]) - chance(f.x2_density[0], f.z2_density[0]);
    r.log_ratio =
        select(cast_mask<E>(whole), cast<E>(ratio), E(-std::numeric_limits<scalar_t<E>>::infinity()));
    r.steps = L(0);
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    const Jump<W> f(model.rows(), w);
    using V = std::remove_cvref_t<decltype(f.z[0])>;
    const auto accepted = cast<V>(r.accepted) > V(0.5);
    f.z_density.set(0, select(accepted, V(f.z2_density[0]), V(f.z_density[0])));
    select_rows(model.rows(), accepted, f.z2, f.z);
  }
};

}  // namespace lockstep
