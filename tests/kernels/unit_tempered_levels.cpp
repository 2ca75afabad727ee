// SPDX-License-Identifier: Apache-2.0
// The ladder of levels is that of Kou, Zhou & Wong (2006); what levels and rings hold after a run, and what it counts.
#include "kernels/tempered_levels.hpp"

#include <gtest/gtest.h>

#include "kernels/equi_energy.hpp"
#include "kernels/parallel_walks.hpp"
#include "tests/support/invariance.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

constexpr int kChains = 40, kDim = 2;

struct Settings {
  std::vector<double> settings;
  explicit Settings(const TransitionInfo& info) {
    for (const TransitionSetting& s : info.settings) settings.push_back(s.standard);
  }
};

TEST(TemperedLevels, LadderIsThePapers) {
  const Settings w(ParallelWalks::info());
  const double temperatures[] = {1, 2.8, 7.7, 21.6, 60}, energies[] = {0, 2, 6.3, 20, 63.2};  // as printed
  for (int k = 0; k < TemperedLevels::kLevels; ++k) {
    EXPECT_NEAR(TemperedLevels::temperature_of(k, w), temperatures[k], 0.051);
    if (k > 0) {
      EXPECT_NEAR(TemperedLevels::flat_below(k, w), energies[k], 0.051);
    }
  }
  EXPECT_EQ(TemperedLevels::log_level(0, -3.0, w), 3);
  EXPECT_NEAR(TemperedLevels::log_level(4, 126.4, w), -126.4 / 60, 1e-12);
  EXPECT_EQ(TemperedLevels::log_level(4, 1.0, w), TemperedLevels::log_level(4, 60.0, w));
  Settings unflattened = w;
  unflattened.settings[TemperedLevels::flattened] = 0;
  EXPECT_NEAR(TemperedLevels::log_level(4, 1.0, unflattened), -1.0 / 60, 1e-15);
}

/// A Gaussian in two dimensions with chains at the origin, after some iterations.
template <class Transition>
struct LevelRun {
  std::vector<double> fields, stats, settings;
  GaussianPair pair{InvarianceCase()};
  LevelRun(std::vector<double> given, int iterations) : settings(std::move(given)) {
    using L = MachinePack<float>;
    using E = MachineEnergies<float, double>;
    EngineSpec spec;
    name_transitions<Transition>(spec);
    spec.settings = {settings};
    for (int i = 0; i < kChains; ++i) {
      spec.chain.push_back(std::uint32_t(i));
      spec.unit.push_back(0);
    }
    const Gaussian density = pair.density();
    const auto made = make_block_engine<float, double>(spec, {2, density.quantities()},
                                                       block_density<Gaussian, L, E>(density),
                                                       block_transitions<Transition, OpaquePlain>());
    Engine& engine = *made;
    engine.set_parameters(ParameterLayout::step_size, std::vector<double>(kChains, 0.7));
    engine.set_parameters(engine.layout().scale(), std::vector<double>(kDim * kChains, 1.0));
    engine.set_position(std::vector<double>(kDim * kChains, 0.0));
    engine.initialize();
    LaunchSpec launch;
    launch.key = {5, 6};
    launch.end = std::uint32_t(iterations);
    engine.advance(launch);
    fields = engine.fields();
    stats = engine.take_stats();
  }
  double field(int row, int chain) const { return fields[std::size_t(row) * kChains + chain]; }
  double counted(int counter) const {
    double sum = 0;
    for (int i = 0; i < kChains; ++i) sum += stats[std::size_t(kStatRows + counter) * kChains + i];
    return sum;
  }
  double energy(double x0, double x1) const {
    return std::pow((x0 - pair.mean[0]) * pair.inv_sd[0], 2) / 2 +
           std::pow((x1 - pair.mean[1]) * pair.inv_sd[1], 2) / 2 - pair.log_norm();
  }
};
std::vector<double> with(const TransitionInfo& info, std::vector<std::pair<int, double>> changes) {
  auto settings = Settings(info).settings;
  for (const auto& [k, value] : changes) settings[k] = value;
  return settings;
}

TEST(ParallelWalks, CountsWhatItDoes) {
  using T = ParallelWalks;
  const int iterations = 200;
  const LevelRun<Library<T>> never(with(T::info(), {{T::settling, 1e6}}), iterations),
      often(with(T::info(), {{T::settling, 100}, {T::exchange, 1}}), iterations);
  EXPECT_EQ(never.counted(T::evaluations), 5 * iterations * kChains);
  EXPECT_EQ(never.counted(T::tried), 0);
  EXPECT_EQ(often.counted(T::tried), 100 * kChains);
  EXPECT_GT(often.counted(T::exchanged), 20 * kChains);
  EXPECT_LT(often.counted(T::exchanged), 100 * kChains);
  for (int i = 0; i < kChains; ++i) {
    EXPECT_EQ(often.stats[std::size_t(stat_gradients) * kChains + i], 0);
    EXPECT_EQ(often.field(0, i), iterations);
    for (int k = 1; k < T::kLevels; ++k) {
      const int row = T::kLevels + (k - 1) * kDim;
      EXPECT_NEAR(often.field(k, i), often.energy(often.field(row, i), often.field(row + 1, i)), 1e-4);
    }
  }
  for (int k = 0; k + 1 < T::kLevels; ++k)
    EXPECT_GT(never.counted(T::walked + k), 0.2 * iterations * kChains);
}

/// Every state in a ring has its energy; there are as many as iterations that were kept.
TEST(EquiEnergy, RingsHoldStatesOfTheirEnergies) {
  using T = EquiEnergy;
  const int iterations = 3000, settling = 50, first = T::kLevels + kDim * (T::kLevels - 1);
  for (int every : {1, 7}) {
    const LevelRun<Library<T>> run(with(T::info(), {{T::settling, settling},
                                                    {T::every, every},
                                                    {T::temperature, 8},
                                                    {T::first_energy, 2.2},
                                                    {T::last_energy, 6}}),
                                   iterations);
    const struct { const std::vector<double>& settings; } w{run.settings};
    int full = 0;
    for (int i = 0; i < kChains; ++i)
      for (int k = 1; k < T::kLevels; ++k) {
        double kept = 0;
        for (int ring = 0; ring < T::kRings; ++ring) {
          const int number = (k - 1) * T::kRings + ring;
          const double count = run.field(first + number, i);
          kept += count;
          full += count > T::kMemory;
          const double lo = ring > 0 ? T::flat_below(ring, w) : -1e9,
                       hi = ring + 1 < T::kRings ? T::flat_below(ring + 1, w) : 1e9;
          for (int slot = 0; slot < std::min<int>(int(count), T::kMemory); ++slot) {
            const int row = first + T::kStored + kDim * (number * T::kMemory + slot);
            const double h = run.energy(run.field(row, i), run.field(row + 1, i));
            EXPECT_GT(h, lo - 1e-4);
            EXPECT_LT(h, hi + 1e-4);
          }
        }
        EXPECT_EQ(kept, iterations / every - settling / every);
      }
    EXPECT_EQ(full > 0, every == 1);
    EXPECT_GT(run.counted(T::exchanged), 0);
    EXPECT_GT(run.counted(T::tried), run.counted(T::exchanged));
    EXPECT_EQ(run.counted(T::evaluations), 5 * iterations * kChains);
  }
}

}  // namespace
