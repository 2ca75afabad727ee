// SPDX-License-Identifier: Apache-2.0
// The no-U-turn sampler on a curved density, from exact draws: on Gaussians alone what its checks are for hardly shows.
#include <gtest/gtest.h>

#include "kernels/nuts.hpp"
#include "tests/support/invariance.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// x_0 ~ N(0, 1), x_1 ~ N(x_0^2, s^2).
struct Crescent : DensityDefaults {
  using SpecialisedDims = std::integer_sequence<int>;
  static constexpr double kWidth = 0.3;
  int dim = 2;
  template <class F>
  void arrays(F&&) {}
  template <int D, class L, class X, class G>
  LOCKSTEP_FN L log_density(const X& x, const G& g) const {
    using R = scalar_t<L>;
    const L z = (x[1] - x[0] * x[0]) * L(R(1 / (kWidth * kWidth)));
    g.set(0, fma(x[0] * z, L(2), -x[0]));
    g.set(1, -z);
    return L(R(-0.5)) * fma(z, z * L(R(kWidth * kWidth)), x[0] * x[0]);
  }
};

/// Largest |z| of the changes that so many transitions make to functionals of exact draws.
template <class Transition>
double worst(double step, int iterations, std::uint64_t seed) {
  using L = MachinePack<float>;
  using E = MachineEnergies<float, double>;
  constexpr int kChains = 1 << 17;
  EngineSpec spec;
  name_transitions<Transition>(spec);
  for (int c = 0; c < kChains; ++c) spec.chain.push_back(c), spec.unit.push_back(0);
  const Crescent density;
  const auto made =
      make_block_engine<float, double>(spec, {density.dim, 0}, block_density<Crescent, L, E>(density),
                                       block_transitions<Transition, OpaquePlain>());
  Engine& engine = *made;
  engine.set_parameters(ParameterLayout::step_size, std::vector<double>(kChains, step));
  for (int k = 0; k < 2; ++k)
    engine.set_parameters(engine.layout().scale() + k, std::vector<double>(kChains, 1.0));
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> start(2 * kChains);
  for (int c = 0; c < kChains; ++c) {
    start[c] = normal(random);
    start[kChains + c] = start[c] * start[c] + Crescent::kWidth * normal(random);
  }
  engine.set_position(start);
  engine.initialize();
  const auto functionals = [&] {
    std::vector<std::vector<double>> f(8);
    const auto at = engine.position();
    for (int c = 0; c < kChains; ++c) {
      const double x = at[c], y = at[kChains + c], z = y - x * x;
      const double all[] = {x, x * x, std::abs(x), double(std::abs(x) > 1.5), y, z, z * z, x * x * z};
      for (int k = 0; k < 8; ++k) f[k].push_back(all[k]);
    }
    return f;
  };
  const auto before = functionals();
  LaunchSpec launch;
  launch.key = {std::uint32_t(seed), 5};
  launch.end = std::uint32_t(iterations);
  engine.advance(launch);
  return paired(before, functionals()).worst;
}

TEST(NutsOnACrescent, LeavesItInvariantAndWithoutItsChecksDoesNot) {
  const double limit = family_quantile(1e-4, 4 * 8);
  std::uint64_t seed = 1;
  for (const double step : {0.1, 0.3})
    for (const int iterations : {1, 5}) {
      EXPECT_LT(worst<Library<Nuts>>(step, iterations, seed++), limit) << step;
      EXPECT_GT(worst<NutsTree<false>>(step, iterations, seed++), limit) << step;
    }
}

}  // namespace
