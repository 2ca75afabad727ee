// SPDX-License-Identifier: Apache-2.0
#pragma once
// The equi-energy sampler as a transition, a baseline.
#include "kernels/tempered_levels.hpp"

namespace lockstep {

/// The equi-energy sampler (Kou, Zhou & Wong 2006): the levels of kernels/tempered_levels.hpp, where level k goes, in the
/// place of its walk and with probability `exchange`, to a state y that level k + 1 has been in, of the energy ring that its
/// own state x is in (rings are cut at H_1 .. H_4), drawn uniformly, with
///
///   min(1, pi_k(y) pi_{k+1}(x) / (pi_k(x) pi_{k+1}(y)))
///
/// A ring that is empty lets it walk. The paper keeps all that a level has visited; here a chain keeps of each level and ring
/// the last 512 states of every `every`-th iteration, and goes on doing so; and all levels start together, where the
/// paper starts one after the other. The sampler is adaptive: y is a draw of pi_{k+1} in the limit of a long run only,
/// where rings hold draws from that the move is exact. Costs 5 log densities an iteration, that of y once more too.
struct EquiEnergy : TemperedLevels {
  static constexpr int kRings = kLevels, kMemory = 512;
  static constexpr int every = kSettings;  // the setting
  static TransitionInfo info() {
    TransitionInfo info = {
        .name = "ee",
        .summary = "equi-energy sampler of five random walks (a baseline)",
        .formula =
            "levels exp(-max(-log density(x), H_k) / T_k) walk, or go to where the next has had their energy",
        .source = "Kou, Zhou & Wong (2006)",
        .gradients = kGradients,
        .target_acceptance = 0.27,
        .harmonic_mean = false,
        .alone = true,
        .fields = {levels_field(),
                   {"rings", kStored, 0},
                   {"history", 0, kStored * kMemory},
                   {"jump", 2, 0, false}},
        .counters = counters(),
        .settings = settings("probability that a level jumps in place of its walk", 1000),
        .ascending = {"first_energy", "last_energy"}};
    info.settings.push_back(
        {"every", "iterations from one state that is kept to the next", 10, 1, 1e6, true});
    return info;
  }
  static constexpr int kStored = (kLevels - 1) * kRings;  // levels and rings that have a history
  /// How often a state was put into each ring; those kept; whether exchanges may be, and whether x in hand is a jump's.
  template <class W>
  struct History : Levels<W> {
    using Fields = typename Levels<W>::Fields;
    Fields counts, states, settled, jumps;
    LOCKSTEP_FN History(int rows, const W& w)
        : Levels<W>(rows, w),
          counts(this->after()),
          states(counts.from(kStored)),
          settled(states.from(kStored * kMemory * rows)),
          jumps(settled.from(1)) {}
    /// The first row of a state of a level's ring, each lane's own.
    template <class V>
    LOCKSTEP_FN V place(int level, V ring, V slot) const {
      return fma(V(double(level - 1) * kRings) + ring, V(double(kMemory)), slot) * V(double(this->n));
    }
  };
  template <class V, class W>
  LOCKSTEP_FN static V ring_of(V energy, const W& w) {
    V ring = V(0.0);
    for (int k = 1; k < kRings; ++k) ring = ring + select(energy >= V(flat_below(k, w)), V(1.0), V(0.0));
    return ring;
  }
  /// Row `row` of each lane, and the same in the lanes of the mask to be set.
  template <class V, class F>
  LOCKSTEP_FN static V gather(F fields, V row) {
    alignas(64) double k[lane_width<V>], v[lane_width<V>];
    store(k, row);
    for (int i = 0; i < lane_width<V>; ++i) v[i] = fields.p[std::ptrdiff_t(k[i]) * kTile + i];
    return load<V>(v);
  }
  template <class V, class F, class Mask>
  LOCKSTEP_FN static void scatter(F fields, V row, V value, Mask mask) {
    alignas(64) double k[lane_width<V>], v[lane_width<V>];
    store(k, row);
    store(v, select(mask, value, gather(fields, row)));
    for (int i = 0; i < lane_width<V>; ++i) fields.p[std::ptrdiff_t(k[i]) * kTile + i] = v[i];
  }

  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec&, const Draw<L>&, const W& w) {
    using V = wide_t<L>;
    const auto settled = begin_levels<L>(model, w);
    History<W>(model.rows(), w).settled.set(0, select(settled, V(1.0), V(0.0)));
    Proposal<L, E> r;
    r.steps = L(scalar_t<L>(kLevels));
    return r;
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void move(const Model& model, const D& draw, L s, const Proposal<L, E>&, const W& w) {
    using V = wide_t<L>;
    const int level = level_of(s);
    walk<L>(model, draw, level, w);
    if (level == kLevels - 1) return;
    const History<W> f(model.rows(), w);
    const auto uniform = [&](int k) {
      return cast<V>(draw.uniform(Purpose::swap, std::uint32_t(kLevels * k + level)));
    };
    const V ring = ring_of(energy_at<V>(level, f, w), w);
    const V kept = min(gather(f.counts, V(double(level) * kRings) + ring), V(double(kMemory)));
    const auto jumps =
        mask_and(mask_and(f.settled[0] > V(0.5), kept > V(0.5)), uniform(0) < V(w.settings[exchange]));
    const V first = f.place(level + 1, ring, min(floor(uniform(1) * kept), kept - V(1.0)));
    for (int j = 0; j < f.n && any(jumps); ++j) {
      const V there = gather(f.states, max(first, V(0.0)) + V(double(j)));
      w.x.set(j, cast<L>(select(jumps, there, cast<V>(w.x[j]))));
    }
    f.jumps.set(0, select(jumps, V(1.0), V(0.0)));
  }
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>&, const W& w) {
    using V = wide_t<L>;
    const int level = level_of(s);
    const History<W> f(model.rows(), w);
    if (level > 0) {
      const V correction = level < kLevels - 1 ? proposals_ratio<V>(level, V(f.energy(level)[0]),
                                                                    energy_there<V, L>(model, w), f, w)
                                               : V(0.0);
      const auto accepted = decide_level<L>(model, draw, level, correction, w);
      w.count(Counter(walked + level - 1), select(accepted, V(1.0), V(0.0)));
      if (level < kLevels - 1) {
        w.count(tried, f.jumps[0]);
        w.count(exchanged, select(accepted, V(f.jumps[0]), V(0.0)));
      }
      return;
    }
    w.count(tried, f.jumps[0]);
    w.count(evaluations, V(double(kLevels * model.samples())));
    const V rounds = f.age()[0] * V(1 / w.settings[every]), whole = round(rounds) * V(w.settings[every]);
    const auto keeps = mask_and(f.settled[0] > V(0.5), is(whole - f.age()[0], 0));
    for (int k = 1; k < kLevels && any(keeps); ++k) {
      const V ring = ring_of(V(f.energy(k)[0]), w), number = V(double((k - 1) * kRings)) + ring;
      const V count = gather(f.counts, number), turns = floor(count * V(1.0 / kMemory));
      const V place = f.place(k, ring, count - turns * V(double(kMemory)));
      for (int j = 0; j < f.n; ++j) scatter(f.states, place + V(double(j)), V(f.position(k)[j]), keeps);
      scatter(f.counts, number, count + V(1.0), keeps);
    }
  }
  template <class V, class W>
  LOCKSTEP_FN static V energy_at(int level, const History<W>& f, const W& w) {
    return level > 0 ? V(f.energy(level)[0]) : energy_here<V>(w);
  }
  /// log of pi_{k+1}(x) / pi_{k+1}(y) of a jump; 0 of a walk.
  template <class V, class W>
  LOCKSTEP_FN static V proposals_ratio(int level, V x, V y, const History<W>& f, const W& w) {
    return select(f.jumps[0] > V(0.5), log_level(level + 1, x, w) - log_level(level + 1, y, w), V(0.0));
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    using V = wide_t<L>;
    const History<W> f(model.rows(), w);
    r.log_ratio = cast<E>(proposals_ratio(0, energy_here<V>(w), energy_there<V, L>(model, w), f, w));
    r.steps = L(0);  // no gradients
  }
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec&, const D&, const P& r, const W& w) {
    const History<W> f(model.rows(), w);
    using V = std::remove_cvref_t<decltype(f.jumps[0])>;
    w.count(exchanged, cast<V>(r.accepted) * f.jumps[0]);
  }
};

}  // namespace lockstep
