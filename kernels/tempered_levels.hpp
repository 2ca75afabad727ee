// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random walks on five levels of one chain, of which the first is the chain's position and the others are fields: what
// parallel tempering and the equi-energy sampler of Kou, Zhou & Wong (2006) have in common. With the energy
// h(x) = -log density(x) - energy_zero, level k has the density
//
//   pi_k(x) ~ exp(-max(h(x), H_k) / T_k)      H_0 = -infinity, T_0 = 1: the target itself
//
// (with `flattened` = 0 all H_k are -infinity: the usual tempering)
// and the step step_size sqrt(T_k). H_1 .. H_4 and T_0 .. T_4 are geometric. An iteration takes K = 5 log densities: of a
// proposal at each level, the hottest first and the target's last, which is the one that the driver decides upon.
#include "kernels/leapfrog.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

struct TemperedLevels : TransitionDefaults {
  static constexpr bool kGradients = false, kEnergies = true;
  static constexpr int kLevels = 5;
  /// The first settings of each sampler made of them, and the counters.
  enum Setting {
    temperature,
    first_energy,
    last_energy,
    energy_zero,
    exchange,
    settling,
    flattened,
    kSettings
  };
  enum Counter { evaluations, tried, exchanged, walked, kCounters = walked + kLevels - 1 };
  static std::vector<TransitionSetting> settings(const char* exchange_help, double settling_iterations) {
    return {
        {"temperature", "of the hottest level", 60, 1, 1e9},
        {"first_energy", "H_1, below which the second level is flat", 2, 1e-9, 1e12},
        {"last_energy", "H_4, below which the hottest is", 63.2, 1e-9, 1e12},
        {"energy_zero", "of energies: the target's lowest -log density, or less", 0, -1e12, 1e12},
        {"exchange", exchange_help, 0.1, 0, 1},
        {"settling", "iterations of a chain before the first of these", settling_iterations, 0, 1e9, true},
        {"flattened", "1, or 0: levels are the tempered target, flat nowhere", 1, 0, 1, true}};
  }
  static std::vector<std::string> counters() {
    return {"evaluations", "exchanges_tried", "exchanges_accepted", "walked_1", "walked_2",
            "walked_3",    "walked_4"};
  }
  /// Age of the chain in iterations, energies and positions of the levels from 1 on.
  static TransitionField levels_field() { return {"levels", kLevels, kLevels - 1}; }
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return kLevels;
  }

  static constexpr double kNowhere = 1e300;  // energy where the density is zero
  template <class W>
  struct Levels {
    using Fields = decltype(W::fields);
    int n;
    Fields fields;
    LOCKSTEP_FN Levels(int rows, const W& w) : n(rows), fields(w.fields) {}
    LOCKSTEP_FN Fields age() const { return fields; }
    LOCKSTEP_FN Fields energy(int level) const { return fields.from(level); }
    LOCKSTEP_FN Fields position(int level) const { return fields.from(kLevels + (level - 1) * n); }
    LOCKSTEP_FN Fields after() const { return position(kLevels); }  // the sampler's own fields
  };
  template <class V>
  LOCKSTEP_FN static auto is(V value, int number) {
    return mask_and(value > V(number - 0.5), value < V(number + 0.5));
  }
  /// most^(k / last): geometric from 1.
  LOCKSTEP_FN static double power(double most, int k, int last) { return ::exp(::log(most) * k / last); }
  template <class W>
  LOCKSTEP_FN static double temperature_of(int level, const W& w) {
    return power(w.settings[temperature], level, kLevels - 1);
  }
  /// H_k, k >= 1.
  template <class W>
  LOCKSTEP_FN static double flat_below(int level, const W& w) {
    const double first = w.settings[first_energy];
    return first * power(w.settings[last_energy] / first, level - 1, kLevels - 2);
  }
  /// log pi_k at an energy, up to a constant.
  template <class V, class W>
  LOCKSTEP_FN static V log_level(int level, V energy, const W& w) {
    if (level == 0) return -energy;
    const double flat = w.settings[flattened] > 0.5 ? flat_below(level, w) : -kNowhere;
    return max(energy, V(flat)) * V(-1 / temperature_of(level, w));
  }
  template <class V, class E, class W>
  LOCKSTEP_FN static V energy_of(E log_density, const W& w) {
    const auto there = cast_mask<V>(is_finite(log_density));
    return select(there, -cast<V>(log_density) - V(w.settings[energy_zero]), V(kNowhere));
  }
  /// Of the chain's position.
  template <class V, class W>
  LOCKSTEP_FN static V energy_here(const W& w) {
    return energy_of<V>(w.cache[0], w);
  }
  /// Of the proposal of a step.
  template <class V, class L, class Model, class W>
  LOCKSTEP_FN static V energy_there(const Model& model, const W& w) {
    return select(cast_mask<V>(inside_box<L>(model, w.x)), energy_of<V>(w.ce[0], w), V(kNowhere));
  }
  /// The level of a step: 4 .. 1, and 0 at the last.
  template <class L>
  LOCKSTEP_FN static int level_of(L step) {
    return kLevels - static_cast<int>(reduce_max(step));
  }

  /// A chain that begins has all levels at its position. Returns where chains are old enough for exchanges.
  template <class L, class Model, class W>
  LOCKSTEP_FN static auto begin_levels(const Model& model, const W& w) {
    using V = wide_t<L>;
    const Levels<W> f(model.rows(), w);
    const V age = f.age()[0];
    for (int k = 1; k < kLevels; ++k) {
      const auto fresh = age < V(0.5);
      f.energy(k).set(0, select(fresh, energy_here<V>(w), V(f.energy(k)[0])));
      for (int j = 0; j < f.n; ++j)
        f.position(k).set(j, select(fresh, cast<V>(w.position[j]), V(f.position(k)[j])));
    }
    f.age().set(0, age + V(1.0));
    return age >= V(w.settings[settling]);
  }
  /// The walk of a level, in w.x.
  template <class L, class Model, class D, class W>
  LOCKSTEP_FN static void walk(const Model& model, const D& draw, int level, const W& w) {
    const Levels<W> f(model.rows(), w);
    for (int j = 0; j < f.n; ++j) w.x.set(j, level > 0 ? cast<L>(f.position(level)[j]) : L(w.position[j]));
    D of_level = draw;  // the sampler is the only transition of its iterations
    of_level.part = std::uint32_t(level);
    of_level.normals(Purpose::proposal, f.n, [&](int j, L z) { w.p.set(j, z); });
    const double longer = ::sqrt(temperature_of(level, w));
    drift(model, w.parameters, w.parameters[ParameterLayout::step_size] * L(scalar_t<L>(longer)), w.x, w.p);
    reflect<L>(model, w.x, w.p);
  }
  /// Decides on the proposal of a level from 1 on: `correction` is log of the ratio of the proposals.
  template <class L, class Model, class D, class W>
  LOCKSTEP_FN static auto decide_level(const Model& model, const D& draw, int level, wide_t<L> correction,
                                       const W& w) {
    using V = wide_t<L>;
    const Levels<W> f(model.rows(), w);
    const V before = f.energy(level)[0], now = energy_there<V, L>(model, w);
    const V change = log_level(level, now, w) - log_level(level, before, w) + correction;
    const V u = cast<V>(draw.uniform(Purpose::accept, std::uint32_t(level)));
    const auto accepted = log(u) < change;
    f.energy(level).set(0, select(accepted, now, before));
    for (int j = 0; j < f.n; ++j)
      f.position(level).set(j, select(accepted, cast<V>(w.x[j]), V(f.position(level)[j])));
    return accepted;
  }
};

}  // namespace lockstep
