// SPDX-License-Identifier: Apache-2.0
// Invariance of everything that moves an inverse temperature, on a Gaussian path that can be drawn exactly:
// many chains start in the joint density of (x, beta) (of all levels of a unit, for swaps), make three
// iterations, and must still be in it. A false alarm of all statistics together has probability 1e-4. Each
// case has broken twins, told a wrong log zeta or a wrong ladder, which must be found.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/adiabatic.hpp"
#include "tests/support/invariance.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kUnits = 1 << 15, kTests = 400;
const std::vector<double> kLadder = {0, 0.15, 0.4, 0.7, 1}, kWeight = {0.1, -0.2, 0.3, 0, 0.2};

struct Moving {
  std::string name;
  Tempering tempering;
  Control control = Control::none;
};
void PrintTo(const Moving& m, std::ostream* out) { *out << m.name; }

/// One chain of every unit at beta, its state and control coordinate.
using State = ExactStart::Joint;

class LevelStarts {
 public:
  explicit LevelStarts(std::uint64_t seed) : random_(seed) {}
  std::array<double, 2> position(double beta) { return exact_.position(beta); }
  /// From the joint density of the moving inverse temperature.
  State state(const Moving& m) {
    if (m.tempering == Tempering::levels) {
      std::vector<double> p;
      for (std::size_t k = 0; k < kLadder.size(); ++k)
        p.push_back(std::exp(kWeight[k] + pair_.tempered(kLadder[k]).log_z));
      const double beta = kLadder[std::discrete_distribution<int>(p.begin(), p.end())(random_)];
      return {beta, 0, position(beta)};
    }
    return exact_.joint(m.control);
  }
  GaussianPair& pair() { return pair_; }

 private:
  InvarianceCase case_ = [] {
    InvarianceCase c;
    c.model.kind = ModelKind::path;
    return c;
  }();
  GaussianPair pair_{case_};
  ExactStart exact_{case_, pair_, 11};
  std::mt19937_64 random_;
};

using Values = std::vector<std::vector<double>>;  // [functional][unit]

/// Functionals before and after; the twin's engine is told another log zeta, or another ladder.
template <class Transition = Hmc>
std::pair<Values, Values> run(const Moving& m, double log_zeta_shift, double beta_shift) {
  LevelStarts starts(5);
  const bool swaps = m.tempering == Tempering::swap;
  const int levels = int(kLadder.size()), per = swaps ? levels : 1, n = kUnits / per * per;
  EngineSpec spec;
  name_transitions<Transition>(spec);
  for (int c = 0; c < n; ++c) {
    spec.unit.push_back(std::uint32_t(c / per));
    spec.chain.push_back(std::uint32_t(c % per));
  }
  const ParameterLayout layout{2};
  const Path<Gaussian, 0, true> model{starts.pair().density(), layout, m.control};
  EngineOf<OneTransition<Transition>, Path<Gaussian, 0, true>, float, double> engine(model, spec);
  auto ladder = kLadder;
  for (std::size_t k = 1; k + 1 < ladder.size(); ++k) ladder[k] += beta_shift;
  ladder = engine.set_ladder(ladder, kWeight, {0.7, 0.8, 0.7, 0.6, 0.5});
  const auto put = [&](int row, double v) { engine.set_parameters(row, std::vector<double>(n, v)); };
  put(ParameterLayout::step_size, 0.7);
  put(ParameterLayout::log_zeta, starts.pair().log_zeta + log_zeta_shift);
  put(ParameterLayout::base_log_norm, starts.pair().base_log_norm);
  put(ParameterLayout::scale_u, 1.2);
  for (int k = 0; k < 2; ++k) {
    put(layout.scale() + k, 1);
    put(layout.base_mean() + k, starts.pair().base_mean[k]);
    put(layout.base_inv_sd() + k, std::sqrt(starts.pair().base_precision[2 * k]));
  }
  std::vector<double> position(std::size_t(engine.rows()) * n), beta(n);
  for (int c = 0; c < n; ++c) {
    State s = swaps ? State{kLadder[c % per], 0, starts.position(kLadder[c % per])} : starts.state(m);
    beta[c] = swaps ? ladder[c % per] : s.beta;
    for (int k = 0; k < 2; ++k) position[std::size_t(k) * n + c] = s.x[k];
    if (m.control != Control::none) position[std::size_t(2) * n + c] = s.u;
  }
  engine.set_parameters(ParameterLayout::beta, beta);
  engine.set_position(position);
  engine.initialize();
  const auto collect = [&] {
    const auto x = engine.position(), b = engine.beta();
    Values f;
    const auto add = [&](std::size_t k, double v) {
      if (k >= f.size()) f.resize(k + 1);
      f[k].push_back(v);
    };
    for (int unit = 0; unit < n / per; ++unit) {
      if (swaps) {  // the states in the order of their levels
        std::size_t k = 0;
        for (int level = 0; level < per; ++level)
          for (int c = unit * per; c < (unit + 1) * per; ++c)
            if (b[c] == ladder[level]) {
              add(k++, x[c]);
              add(k++, x[c] * x[c]);
              add(k++, x[n + c]);
            }
        continue;
      }
      double at = b[unit];
      if (m.control != Control::none) at = model.temperature(x[std::size_t(2) * n + unit]).beta;
      const double x0 = x[unit], x1 = x[n + unit];
      std::size_t k = 0;
      for (double v : {at, at * at, x0, x0 * x0, x1, x1 * x1, at * x0, at * x1 * x1, at > 0.5 ? 1.0 : 0.0,
                       at > 0.9 ? x0 : 0.0})
        add(k++, v);
    }
    return f;
  };
  const Values before = collect();
  LaunchSpec launch;
  launch.key = {3, 4};
  launch.num_leapfrog = 3;
  launch.end = 3;
  launch.tempering = m.tempering;
  engine.advance(launch);
  return {before, collect()};
}

/// Largest |z| of the mean changes, and how far a chain moves on average.
double worst_change(const std::pair<Values, Values>& values) {
  double worst = 0;
  for (std::size_t k = 0; k < values.first.size(); ++k) {
    EXPECT_EQ(values.first[k].size(), values.second[k].size());
    RunningMean d;
    for (std::size_t i = 0; i < values.first[k].size(); ++i) d.add(values.second[k][i] - values.first[k][i]);
    worst = std::max(worst, std::abs(d.z(0)));
  }
  return worst;
}

class MovesOfBeta : public ::testing::TestWithParam<Moving> {};

template <class Transition>
void expect_invariant(const Moving& m) {
  const double limit = family_quantile(1e-4, kTests);
  const auto values = run<Transition>(m, 0, 0);
  EXPECT_LT(worst_change(values), limit) << m.name;
  double moved = 0;
  for (std::size_t i = 0; i < values.first[0].size(); ++i)
    moved += std::abs(values.second[0][i] - values.first[0][i]) / double(values.first[0].size());
  EXPECT_GT(moved, 0.05) << m.name << ": it hardly moved";
  EXPECT_GT(worst_change(run<Transition>(m, m.tempering == Tempering::swap ? 0 : 0.3, 0.05)), limit)
      << m.name << ": the broken twin passes";
}

TEST_P(MovesOfBeta, LeaveTheJointDensityInvariant) { expect_invariant<Hmc>(GetParam()); }

/// A direction that each trajectory finds as the last left it, whether or not that was accepted.
struct NeverTurned : Adiabatic {
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model&, const LaunchSpec&, const D&, const P&, const W&) {}
};
/// The flow of adiabatic Monte Carlo: exact with its volume and its turns alone.
TEST(ContactFlow, LeavesTheJointDensityInvariant) {
  const double limit = family_quantile(1e-4, kTests);
  for (const Moving& m : {Moving{"adiabatic", Tempering::joint, Control::logistic},
                          Moving{"adiabatic, plateaus", Tempering::joint, Control::plateaus}}) {
    expect_invariant<Adiabatic>(m);
    EXPECT_GT(worst_change(run<AdiabaticFlow<false>>(m, 0, 0)), limit) << m.name << ": no volume, not found";
    // On a ring three trajectories without their turns do not show.
    if (m.control == Control::logistic) {
      EXPECT_GT(worst_change(run<NeverTurned>(m, 0, 0)), limit) << m.name << ": never turned, not found";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tempering, MovesOfBeta,
                         ::testing::Values(Moving{"gibbs", Tempering::gibbs},
                                           Moving{"levels", Tempering::levels},
                                           Moving{"swap", Tempering::swap},
                                           Moving{"joint", Tempering::joint, Control::logistic},
                                           Moving{"plateaus", Tempering::joint, Control::plateaus}),
                         [](const auto& info) { return info.param.name; });

TEST(Swaps, NoBitDependsOnThreadsAndUnitsStayApart) {
  LevelStarts starts(9);
  const int levels = 5, units = 37, n = levels * units;
  const auto result = [&](int threads, int first, int last) {
    EngineSpec spec;
    spec.threads = threads;
    spec.trace = 4;
    for (int unit = first; unit < last; ++unit)
      for (int k = 0; k < levels; ++k) {
        spec.unit.push_back(std::uint32_t(unit));
        spec.chain.push_back(std::uint32_t(k));
      }
    const ParameterLayout layout{2};
    EngineOf<FusedCpu, Path<Gaussian, 0, true>, float, double> engine({starts.pair().density(), layout},
                                                                      spec);
    const int chains = (last - first) * levels;
    const auto ladder = engine.set_ladder(kLadder, kWeight, std::vector<double>(levels, 0.5));
    std::vector<double> beta(chains), x(2 * chains);
    for (int c = 0; c < chains; ++c) {
      beta[c] = ladder[c % levels];
      for (int k = 0; k < 2; ++k) x[k * chains + c] = std::sin(1.7 * (first * levels + c) + k);
    }
    const auto put = [&](int row, double v) { engine.set_parameters(row, std::vector<double>(chains, v)); };
    for (int k = 0; k < 2; ++k) {
      put(layout.scale() + k, 1);
      put(layout.base_inv_sd() + k, 0.7);
    }
    engine.set_parameters(ParameterLayout::beta, beta);
    put(ParameterLayout::step_size, 0.5);
    engine.set_position(x);
    engine.initialize();
    LaunchSpec launch;
    launch.num_leapfrog = 2;
    launch.tempering = Tempering::swap;
    for (int k = 0; k < 3; ++k) {  // in launches of several iterations
      launch.begin = launch.end;
      launch.end += 4;
      engine.advance(launch);
      const auto b = engine.beta();
      for (int u = 0; u < last - first; ++u) {  // every level of a unit is held by one chain
        std::vector<double> held(b.begin() + u * levels, b.begin() + (u + 1) * levels);
        std::sort(held.begin(), held.end());
        EXPECT_EQ(held, ladder);
      }
    }
    const auto all = engine.position(), b = engine.beta(), cache = engine.cache();
    engine.initialize();
    const auto fresh = engine.cache();
    std::vector<double> out;
    for (int c = 0; c < chains; ++c) {  // the cached log density has followed beta
      EXPECT_NEAR(cache[c], fresh[c], 1e-6 * (1 + std::abs(fresh[c])));
      out.insert(out.end(), {all[c], all[chains + c], b[c], cache[c], cache[chains + c]});
    }
    return out;
  };
  const auto whole = result(1, 0, units);
  EXPECT_EQ(whole, result(2, 0, units));
  auto parts = result(1, 0, 13);
  const auto rest = result(2, 13, units);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, parts);
  ASSERT_EQ(whole.size(), std::size_t(5 * n));
}

}  // namespace
