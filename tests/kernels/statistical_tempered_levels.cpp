// SPDX-License-Identifier: Apache-2.0
// Exchanges between levels that are drawn exactly, and jumps to rings that hold exact draws, leave all levels invariant;
// and twins of them, which must be found. (What the equi-energy sampler does with its own history is exact in the limit
// only: bench/studies/table1_comparators.toml.)
#include <gtest/gtest.h>

#include "kernels/equi_energy.hpp"
#include "kernels/parallel_walks.hpp"
#include "tests/support/comparators.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// Of the Gaussian pair's target h = s + c, where s = |z|^2 / 2 of the standardised x has under pi_k the density
/// exp(-max(s - a, 0) / T), a = max(H_k - c, 0): drawn by inversion between `from` and `to`, its angle uniformly.
template <class V>
struct LevelDraw {
  double a, t;
  V mass_flat, mass_tail, from, tail_from;
  LOCKSTEP_FN LevelDraw(double flat, double temperature, V lo, V hi)
      : a(flat > 0 ? flat : 0), t(temperature) {
    from = max(lo, V(0.0));
    const V top = max(hi, from);
    mass_flat = max(min(top, V(a)) - from, V(0.0));
    tail_from = max(from, V(a));
    const auto tail = [&](V s) { return exp((s - V(a)) * V(-1 / t)) * V(t); };
    mass_tail = max(tail(tail_from) - tail(max(top, tail_from)), V(0.0));
  }
  LOCKSTEP_FN V mass() const { return mass_flat + mass_tail; }
  LOCKSTEP_FN V at(V u) const {
    const V m = u * mass();
    const V left = exp((tail_from - V(a)) * V(-1 / t)) - (m - mass_flat) * V(1 / t);
    return select(m < mass_flat, from + m, V(a) - log(left) * V(t));
  }
};
inline const GaussianPair& pair() {
  static const GaussianPair pair{InvarianceCase()};
  return pair;
}
/// x of this s and angle, and its energy.
template <class V, class Put>
LOCKSTEP_FN V put_point(V s, V turn, Put&& put) {
  V sine, cosine;
  sincospi(fma(turn, V(2.0), V(-1.0)), sine, cosine);
  const V r = sqrt(s * V(2.0));
  put(0, fma(r * cosine, V(1 / pair().inv_sd[0]), V(pair().mean[0])));
  put(1, fma(r * sine, V(1 / pair().inv_sd[1]), V(pair().mean[1])));
  return s - V(pair().log_norm());
}

/// Settings under which exchanges matter, from the first iteration on.
template <class Base, bool kFlattened>
TransitionInfo soon() {
  TransitionInfo info = Base::info();
  const auto set = [&](int k, double value) { info.settings[k].standard = value; };
  set(Base::temperature, 8);
  set(Base::first_energy, 2.2);
  set(Base::last_energy, 6);
  set(Base::exchange, 0.8);
  set(Base::settling, 0);
  set(Base::flattened, kFlattened);
  return info;
}
/// Base with levels drawn exactly where a chain begins, and its rings, one state in each, in every iteration.
template <class Base, bool kFlattened = true>
struct Exact : Base {
  static TransitionInfo info() { return soon<Base, kFlattened>(); }
  template <class V, class W>
  LOCKSTEP_FN static LevelDraw<V> level_draw(int level, V lo, V hi, const W& w) {
    const double c = -pair().log_norm();
    return {kFlattened ? Base::flat_below(level, w) - c : 0, Base::temperature_of(level, w), lo - V(c),
            hi - V(c)};
  }
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static Proposal<L, E> begin(const Model& model, const LaunchSpec& spec, const Draw<L>& draw,
                                          const W& w) {
    using V = wide_t<L>;
    typename Base::template Levels<W> f(model.rows(), w);
    const auto fresh = f.age()[0] < V(0.5);
    const auto r = Base::template begin<L, E>(model, spec, draw, w);
    std::uint32_t block = 0;
    const auto uniform = [&] { return cast<V>(draw.uniform(kOwnDraw, block++)); };
    for (int k = 1; k < Base::kLevels; ++k) {
      const V s = level_draw(k, V(-1e9), V(1e9), w).at(uniform()), turn = uniform();
      const V h = put_point(s, turn, [&](int j, V x) {
        f.position(k).set(j, select(fresh, cast<V>(cast<L>(x)), V(f.position(k)[j])));
      });
      f.energy(k).set(0, select(fresh, h, V(f.energy(k)[0])));
    }
    if constexpr (std::is_same_v<Base, EquiEnergy>) {
      const EquiEnergy::History<W> rings(model.rows(), w);
      for (int k = 1; k < Base::kLevels; ++k)
        for (int j = 0; j < EquiEnergy::kRings; ++j) {
          const V lo = V(j > 0 ? Base::flat_below(j, w) : -1e9),
                  hi = V(j + 1 < EquiEnergy::kRings ? Base::flat_below(j + 1, w) : 1e9);
          const auto d = level_draw(k, lo, hi, w);
          const V s = d.at(uniform()), turn = uniform();
          const int number = (k - 1) * EquiEnergy::kRings + j;
          put_point(s, turn, [&](int i, V x) {
            rings.states.set(number * EquiEnergy::kMemory * rings.n + i, cast<V>(cast<L>(x)));
          });
          rings.counts.set(number, select(d.mass() > V(0.0), V(1.0), V(0.0)));
        }
    }
    return r;
  }
};
/// Jumps and exchanges by the target's densities alone.
template <class Base>
struct WithoutTheOtherLevel : Exact<Base> {
  template <class L, class E, class Model, class W>
  LOCKSTEP_FN static void end(const Model& model, Proposal<L, E>& r, const W& w) {
    Exact<Base>::end(model, r, w);
    r.log_ratio = E(0);
  }
};
/// A level that is given the other's position in an exchange without its energy.
struct WithoutEnergy : Exact<ParallelWalks> {
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model& model, const LaunchSpec& spec, const D& draw, const P& r,
                                  const W& w) {
    const Levels<W> f(model.rows(), w);
    const auto energy = f.energy(1)[0];
    ParallelWalks::decided(model, spec, draw, r, w);
    f.energy(1).set(0, energy);
  }
};

TEST(ParallelWalks, ExchangesLeaveTheLevelsInvariant) {
  for (int iterations : {1, 6}) {
    expect_invariant<Exact<ParallelWalks>>(plain("exchanges", iterations), 11);
    expect_invariant<Exact<ParallelWalks, false>>(plain("exchanges, unflattened", iterations), 12);
  }
  expect_found<WithoutTheOtherLevel<ParallelWalks>>(plain("without the other level", 6), 13);
}

/// Mean energies of the levels after some iterations, as |z|.
template <class Transition>
double levels_z(int iterations, int chains, std::uint64_t seed, bool flattened = true) {
  GaussianPair gaussian{InvarianceCase()};
  using L = MachinePack<float>;
  using E = MachineEnergies<float, double>;
  EngineSpec spec;
  name_transitions<Transition>(spec);
  for (int i = 0; i < chains; ++i) {
    spec.chain.push_back(std::uint32_t(i));
    spec.unit.push_back(0);
  }
  const Gaussian density = gaussian.density();
  const auto made = make_block_engine<float, double>(spec, {2, density.quantities()},
                                                     block_density<Gaussian, L, E>(density),
                                                     block_transitions<Transition, OpaquePlain>());
  Engine& engine = *made;
  engine.set_parameters(ParameterLayout::step_size, std::vector<double>(chains, 0.7));
  engine.set_parameters(engine.layout().scale(), std::vector<double>(2 * chains, 1.0));
  InvarianceCase c = plain("", 1);
  ExactStart exact(c, gaussian, seed);
  std::vector<double> start(std::size_t(2) * chains);
  for (int i = 0; i < chains; ++i) exact.rows(&start[i], chains);
  engine.set_position(start);
  engine.initialize();
  LaunchSpec launch;
  launch.key = {std::uint32_t(seed), 78};
  launch.end = std::uint32_t(iterations);
  engine.advance(launch);
  const auto fields = engine.fields();
  const auto position = engine.position();
  double worst = 0;
  for (int k = 0; k < Transition::kLevels; ++k) {
    const struct {
      std::vector<double> settings;
    } w{[&] {
      std::vector<double> v;
      for (const auto& s : info_of<Transition>().settings) v.push_back(s.standard);
      return v;
    }()};
    const double c0 = -gaussian.log_norm(), t = Transition::temperature_of(k, w);
    const double a = k > 0 && flattened ? std::max(Transition::flat_below(k, w) - c0, 0.0) : 0;
    const double mean = c0 + (a * a / 2 + t * (a + t)) / (a + t);
    RunningMean energy, x;
    for (int i = 0; i < chains; ++i) {
      double h = c0;
      for (int j = 0; j < 2; ++j) {
        const double at = k == 0 ? position[std::size_t(j) * chains + i]
                                 : fields[std::size_t(Transition::kLevels + 2 * (k - 1) + j) * chains + i];
        h += std::pow((at - gaussian.mean[j]) * gaussian.inv_sd[j], 2) / 2;
        if (j == 0) x.add(at);
      }
      // A level knows the energy of its position.
      if (k > 0 && !(std::abs(h - fields[std::size_t(k) * chains + i]) < 1e-4 * (1 + h))) return INFINITY;
      energy.add(h);
    }
    worst = std::max({worst, std::abs(energy.z(mean)), std::abs(x.z(gaussian.mean[0]))});
  }
  return worst;
}
TEST(ParallelWalks, AllLevelsStayInTheirDensities) {
  EXPECT_LT(levels_z<Exact<ParallelWalks>>(8, 1 << 16, 21), limit());
  EXPECT_LT((levels_z<Exact<ParallelWalks, false>>(8, 1 << 16, 22, false)), limit());
  EXPECT_GT(levels_z<WithoutEnergy>(8, 1 << 16, 23), limit());
}
/// Jumps between levels without the ratio of the proposals.
struct WithoutTheRatio : Exact<EquiEnergy> {
  template <class L, class E, class Model, class D, class W>
  LOCKSTEP_FN static void push(const Model& model, const D& draw, L s, Proposal<L, E>& r, const W& w) {
    const History<W> f(model.rows(), w);
    using V = wide_t<L>;
    const V jumps = f.jumps[0];
    f.jumps.set(0, V(0.0));
    EquiEnergy::push(model, draw, s, r, w);
    f.jumps.set(0, jumps);
  }
};
TEST(EquiEnergy, JumpsToExactDrawsLeaveAllLevelsInvariant) {
  constexpr int kChains = 1 << 13;  // each has a history of 160 KB
  EXPECT_LT(levels_z<Exact<EquiEnergy>>(1, kChains, 31), limit());
  EXPECT_LT(levels_z<Exact<EquiEnergy>>(12, kChains, 32), limit());
  EXPECT_LT((levels_z<Exact<EquiEnergy, false>>(12, kChains, 33, false)), limit());
  EXPECT_GT(levels_z<WithoutTheOtherLevel<EquiEnergy>>(12, kChains, 34), limit());
  EXPECT_GT(levels_z<WithoutTheRatio>(12, kChains, 35), limit());
}

}  // namespace
