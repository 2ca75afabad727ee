// SPDX-License-Identifier: Apache-2.0
// Engines on the GPU: against the CPU's, and against themselves however the work is divided.
#include "tests/support/engine_cases.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

class GpuEngines : public GpuTest {};

class GpuCases : public GpuTest, public ::testing::WithParamInterface<Named> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_target(GetParam().target);
  BatchResult run(const BatchCase& c, bool cuda, const Split& split = {}) {
    return run_batch(engines(*target_, cuda), c, split);
  }
};
/// On an emulated device every case is the scalar CPU's bit for bit (launches.cpp): there each transition once, on a path.
std::vector<Named> device_cases() {
  std::vector<Named> cases = all_cases();
  if (!has_mixtures())
    std::erase_if(cases, [](const Named& n) {
      return n.batch.transition != nullptr && n.batch.model.kind != ModelKind::path;
    });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Models, GpuCases, ::testing::ValuesIn(device_cases()),
                         [](const auto& info) { return info.param.name; });

// In double, a few iterations from the same starts with the same draws: only the elementary functions' last
// bits differ, and each iteration multiplies that by at most the map's own sensitivity.
TEST_P(GpuCases, DoubleAgreesWithTheCpu) {
  BatchCase c = GetParam().batch;
  c.iterations = 4;
  const BatchResult gpu = run(c, true), cpu = run(c, false);
  expect_close(gpu.position, cpu.position, 1e-8, "position");
  expect_close(gpu.gradient, cpu.gradient, 1e-6, "gradient");
  expect_close(gpu.cache, cpu.cache, 1e-6, "cache");
  expect_close(gpu.stats, cpu.stats, 1e-6, "stats");
  expect_close(gpu.moments, cpu.moments, 1e-6, "moments");
  expect_close(gpu.draws, cpu.draws, 1e-5, "draws");
}

/// Those whose transition the other drivers fuse, which is HMC alone.
std::vector<Named> fused_cases() {
  std::vector<Named> cases = all_cases();
  std::erase_if(cases, [](const Named& n) { return n.batch.transition != nullptr; });
  return cases;
}
class GpuFused : public GpuCases {};
INSTANTIATE_TEST_SUITE_P(Models, GpuFused, ::testing::ValuesIn(fused_cases()),
                         [](const auto& info) { return info.param.name; });

// The block driver takes the general model: equal bits hold the fused policies to it as well as the tile policy.
TEST_P(GpuFused, EqualsBlocksBitForBit) {
  BatchCase c = GetParam().batch;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    c.precision = precision;
    const BatchResult fused = run(c, true), blocks = run(c, true, {.blocks = true});
    EXPECT_EQ(fused.position, blocks.position);
    EXPECT_EQ(fused.gradient, blocks.gradient);
    EXPECT_EQ(fused.cache, blocks.cache);
    EXPECT_EQ(fused.stats, blocks.stats);
    EXPECT_EQ(fused.moments, blocks.moments);
    EXPECT_EQ(fused.draws, blocks.draws);
  }
}

// Both devices take every transition from the CPU's state. A decision may differ where the uniform is as
// close to the acceptance probability as rounding is. Where trajectories are long positions may lie as far apart as ten
// roundings of where they begin take the CPU's own.
TEST_P(GpuCases, OneTransitionIsTheCpus) {
  BatchCase c = GetParam().batch;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    c.precision = precision;
    const Parity p = compare_transitions(engines(*target_, false), engines(*target_, true), c);
    const bool full = precision == Precision::double_;
    const Parity own =
        compare_transitions(engines(*target_, false), engines(*target_, false), c, full ? 0x1p-52 : 0x1p-23);
    EXPECT_LE(p.position, std::max(full ? 1e-12 : 1e-5, 10 * own.position))
        << "by one rounding " << own.position;
    EXPECT_LE(p.closest, 1e-4) << p.apart << " decisions differ";
    EXPECT_EQ(p.other_lengths, 0);
    EXPECT_GT(p.accepted, 0);
    std::printf(
        "%s: %zu of %zu numbers are the CPU's bit for bit; positions within %.1e, %d decisions differ\n",
        GetParam().name.c_str(), p.equal, p.numbers, p.position, p.apart);
  }
}

TEST_P(GpuCases, NoBitDependsOnTheSplit) {
  BatchCase c = GetParam().batch;
  c.precision = Precision::mixed;
  c.chains = chains_of(c, 300);
  c.iterations = 7;
  c.thin = 2;
  const BatchResult whole = run(c, true);
  EXPECT_EQ(whole, run(c, true, {.launches = {2, 4}, .block_threads = 32}));
  // Engines of 1, 31, 33 and 235 (or 10) chains.
  EXPECT_EQ(whole, run(c, true, {.engines = {1, 32, 65}, .block_threads = 64}));
  // On four streams.
  EXPECT_EQ(whole, run(c, true, {.engines = {32, 64, c.chains - 9}, .at_once = true, .block_threads = 128}));
  EXPECT_EQ(whole, run(c, true, {.block_threads = 256}));
  const BatchResult resumed = run(c, true, {.launches = {2, 4}, .resumed = true});
  EXPECT_EQ(whole.position, resumed.position);
  EXPECT_EQ(whole.gradient, resumed.gradient);
  EXPECT_EQ(whole.cache, resumed.cache);
  EXPECT_EQ(whole.draws, resumed.draws);
}

// One short run of every kernel, for compute-sanitizer: 33 chains, so that a tile is mostly padding.
TEST_P(GpuCases, SanitizeRuns) {
  BatchCase c = GetParam().batch;
  c.chains = 33;
  c.iterations = 2;
  c.num_leapfrog = 2;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_})
    for (bool blocks : {false, true}) {
      c.precision = precision;
      const BatchResult r = run(c, true, {.blocks = blocks});
      for (double x : r.position) ASSERT_TRUE(std::isfinite(x));
      const bool weighted = c.tempering != Tempering::fixed && c.tempering != Tempering::anneal;
      for (int i = 0; i < c.chains; ++i)  // iterations recorded, or their weights
        ASSERT_TRUE(weighted ? r.moments[i] >= 0 : r.moments[i] == 2) << r.moments[i];
    }
}

// Parallel tempering: transitions and even-odd swaps in one launch; every level is held by one chain of its
// unit.
TEST_F(GpuEngines, SwapsAgreeWithTheCpu) {
  const auto target = make_target(five_dimensional());
  const int levels = 5, units = 14, n = levels * units;
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.precision = Precision::double_;
  spec.trace = 6;
  for (int c = 0; c < n; ++c) {
    spec.unit.push_back(std::uint32_t(c / levels));
    spec.chain.push_back(std::uint32_t(c % levels));
  }
  const auto run = [&](bool cuda) {
    const auto engine = engines(*target, cuda)(spec);
    const int d = engine->dim();
    const ParameterLayout layout = engine->layout();
    const auto put = [&](int row, double v) { engine->set_parameters(row, std::vector<double>(n, v)); };
    for (int i = 0; i < d; ++i) {
      put(layout.scale() + i, 1);
      put(layout.base_inv_sd() + i, i == 0 ? 0.25 : 1);
    }
    const auto ladder = engine->set_ladder({0, 0.1, 0.3, 0.6, 1}, std::vector<double>(levels, 0.0),
                                           std::vector<double>(levels, 0.4));
    std::vector<double> beta(n), x(std::size_t(d) * n);
    for (int c = 0; c < n; ++c) {
      beta[c] = ladder[c % levels];
      for (int i = 0; i < d; ++i) x[std::size_t(i) * n + c] = 2 * std::sin(1.7 * c + i);
    }
    engine->set_parameters(ParameterLayout::beta, beta);
    put(ParameterLayout::step_size, 0.4);
    engine->set_position(x);
    engine->initialize();
    LaunchSpec launch;
    launch.num_leapfrog = 2;
    launch.tempering = Tempering::swap;
    launch.end = 6;
    engine->advance(launch);
    const auto held = engine->beta();
    for (int u = 0; u < units; ++u) {
      std::vector<double> of_unit(held.begin() + u * levels, held.begin() + (u + 1) * levels);
      std::sort(of_unit.begin(), of_unit.end());
      EXPECT_EQ(of_unit, ladder);
    }
    return std::pair{engine->position(), held};
  };
  const auto gpu = run(true), cpu = run(false);
  EXPECT_EQ(gpu.second, cpu.second);
  expect_close(gpu.first, cpu.first, 1e-8, "position");
}

/// An engine of 40 chains on the two-dimensional Gaussian, started at 0.1, 0.2.
struct SmallRun {
  std::unique_ptr<TargetInstance> target = make_target("gaussian");
  std::unique_ptr<Engine> engine;
  LaunchSpec launch;
  explicit SmallRun(Precision precision, ModelKind kind = ModelKind::plain, bool blocks = false) {
    EngineSpec spec;
    spec.cuda = true;
    spec.precision = precision;
    spec.blocks = blocks;
    spec.model.kind = kind;
    spec.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 2 : 1;
    spec.draws = 4;
    for (std::uint32_t i = 0; i < 40; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
    engine = target->engine(spec);
    set_parameters(*engine, BatchCase{}, 0);
    std::vector<double> start(std::size_t(engine->rows()) * 40);
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = 0.1 * double(1 + i / 40);
    engine->set_position(start);
    launch.key = {5, 6};
    launch.end = 4;
    launch.num_leapfrog = 3;
    launch.record = true;
  }
};

// A step size that is no number makes every proposal no number: such a chain stays, and its neighbours do not
// notice.
TEST_F(GpuEngines, SanitizeNanNeverMoves) {
  for (ModelKind kind : {ModelKind::plain, ModelKind::pseudo_extended})
    for (bool blocks : {false, true}) {
      SmallRun broken(Precision::mixed, kind, blocks), whole(Precision::mixed, kind, blocks);
      std::vector<double> steps(40, 0.4);
      whole.engine->set_parameters(ParameterLayout::step_size, steps);
      for (int i = 0; i < 40; i += 2) steps[i] = std::numeric_limits<double>::quiet_NaN();
      broken.engine->set_parameters(ParameterLayout::step_size, steps);
      for (SmallRun* run : {&broken, &whole}) run->engine->initialize();
      const auto start = broken.engine->position();
      for (SmallRun* run : {&broken, &whole}) run->engine->advance(run->launch);
      const auto end = broken.engine->position(), free = whole.engine->position();
      const auto stats = broken.engine->take_stats();
      for (std::size_t i = 0; i < end.size(); ++i) {
        if (i % 2 == 0) {
          EXPECT_EQ(end[i], start[i]);
        } else {
          EXPECT_EQ(end[i], free[i]);
        }
      }
      for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(stats[stat_divergences * 40 + i], i % 2 == 0 ? 4 : 0);
        if (i % 2 == 0) {
          EXPECT_EQ(stats[stat_accepted * 40 + i], 0);
        }
      }
      EXPECT_NE(start, free);
    }
}

TEST_F(GpuEngines, StatisticsAddUpUntilTaken) {
  SmallRun once(Precision::double_), twice(Precision::double_);
  for (SmallRun* run : {&once, &twice}) run->engine->initialize(), run->engine->advance(run->launch);
  const auto first = once.engine->take_stats(), first_moments = once.engine->take_moments();
  for (SmallRun* run : {&once, &twice}) {
    run->launch.begin = 4;
    run->launch.end = 8;
    run->engine->advance(run->launch);
  }
  const auto second = once.engine->take_stats(), both = twice.engine->take_stats();
  const auto second_moments = once.engine->take_moments(), both_moments = twice.engine->take_moments();
  for (std::size_t i = 0; i < both.size(); ++i)
    EXPECT_NEAR(first[i] + second[i], both[i], 1e-12 + 1e-12 * both[i]);
  for (std::size_t i = 0; i < both_moments.size(); ++i)
    EXPECT_NEAR(first_moments[i] + second_moments[i], both_moments[i],
                1e-12 + 1e-12 * std::abs(both_moments[i]));
  for (int i = 0; i < 40; ++i) {
    EXPECT_GT(both[stat_acceptance * 40 + i], 0);
    EXPECT_GE(both[stat_gradients * 40 + i], 8);  // at least one step in each of 8 iterations
    EXPECT_EQ(both_moments[i], 8);
  }
  for (double x : twice.engine->take_stats()) EXPECT_EQ(x, 0);
  for (double x : twice.engine->take_moments()) EXPECT_EQ(x, 0);
}

TEST_F(GpuEngines, LastDrawIsThePosition) {
  SmallRun run(Precision::single);
  run.engine->initialize();
  run.engine->advance(run.launch);
  const auto draws = run.engine->draws(4);
  const auto position = run.engine->position(), cache = run.engine->cache();
  const int padded = run.engine->padded_chains(), rows = 2 + kDrawExtraRows;
  ASSERT_EQ(draws.size(), std::size_t(4) * rows * padded);
  for (int i = 0; i < 40; ++i) {
    const float* last = draws.data() + std::size_t(3) * rows * padded + i;
    for (int k = 0; k < 2; ++k) EXPECT_EQ(last[k * padded], static_cast<float>(position[k * 40 + i]));
    EXPECT_EQ(last[(2 + draw_log_density) * padded], static_cast<float>(cache[i]));
    EXPECT_GE(last[(2 + draw_steps) * padded], 1);
  }
}

}  // namespace
