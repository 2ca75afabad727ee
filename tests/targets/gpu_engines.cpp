// SPDX-License-Identifier: Apache-2.0
// Engines on the GPU: against the CPU's, and against themselves however the work is divided.
#include "targets/registry.hpp"
#include "tests/support/engines.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/target_input.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

std::unique_ptr<TargetInstance> make_target(const std::string& name) {
  MemoryInput input;
  if (name == "gaussian") input.numbers = {{"dim", 2}, {"ratio", 3}};
  if (name == "two_modes") input.numbers = {{"dim", 5}};
  return find_target(name)->make(input);
}

EngineFactory engines(const TargetInstance& target, bool cuda) {
  return [&target, cuda](EngineSpec spec) {
    spec.cuda = cuda;
    return target.engine(spec);
  };
}

struct Named {
  std::string name, target;
  BatchCase batch;
};
void PrintTo(const Named& n, std::ostream* out) { *out << n.name; }

Named named(std::string name, std::string target, ModelKind kind, int samples = 1) {
  Named n{std::move(name), std::move(target), {}};
  n.batch.model.kind = kind;
  n.batch.model.pseudo_samples = samples;
  n.batch.precision = Precision::full;
  n.batch.chains = 70;
  if (n.target == "mixture20") {  // standard deviations of 0.1
    n.batch.step_size = 0.05;
    n.batch.trajectory_time = 0.25;
  }
  return n;
}

/// Every kind of kernel: the register models (two dimensions; plain, path, N = 2 to 5), and general ones.
std::vector<Named> all_cases() {
  std::vector<Named> cases;
  for (const char* target : {"gaussian", "mixture20", "two_modes", "banana", "flower"}) {
    const std::string t = target;
    cases.push_back(named(t + "_plain", t, ModelKind::plain));
    cases.push_back(named(t + "_path", t, ModelKind::path));
    for (int n : {2, 3, 4, 5})
      cases.push_back(named(t + "_pe" + std::to_string(n), t, ModelKind::pseudo_extended, n));
  }
  Named fixed = named("mixture20_fixed_beta", "mixture20", ModelKind::pseudo_extended, 2);
  fixed.batch.model.learned = false;
  fixed.batch.model.fixed_beta = 0.3;
  cases.push_back(fixed);
  Named boxed = named("gaussian_box", "gaussian", ModelKind::pseudo_extended, 2);
  boxed.batch.model.box = 1.5;
  boxed.batch.model.low = 0.1;
  boxed.batch.model.g_exponent = 0.5;
  cases.push_back(boxed);
  Named dense = named("two_modes_dense", "two_modes", ModelKind::path);
  dense.batch.model.dense_metric = dense.batch.model.dense_base = true;
  cases.push_back(dense);
  for (auto [name, tempering] : {std::pair{"gibbs", Tempering::gibbs}, std::pair{"levels", Tempering::levels},
                                 std::pair{"anneal", Tempering::anneal}}) {
    cases.push_back(named(std::string("two_modes_") + name, "two_modes", ModelKind::path));
    cases.back().batch.tempering = tempering;
  }
  for (auto [name, control] :
       {std::pair{"joint", Control::logistic}, std::pair{"plateaus", Control::plateaus}}) {
    cases.push_back(named(std::string("two_modes_") + name, "two_modes", ModelKind::path));
    cases.back().batch.tempering = Tempering::joint;
    cases.back().batch.model.control = control;
  }
  Named walk = named("mixture20_random_walk", "mixture20", ModelKind::plain);
  walk.batch.transition = TransitionKind::random_walk;
  cases.push_back(walk);
  for (Named& c : cases) c.batch.chees = true;
  return cases;
}

class GpuEngines : public GpuTest {};

class GpuCases : public GpuTest, public ::testing::WithParamInterface<Named> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_target(GetParam().target);
  BatchResult run(const BatchCase& c, bool cuda, const Split& split = {}) {
    return run_batch(engines(*target_, cuda), c, split);
  }
};
INSTANTIATE_TEST_SUITE_P(Models, GpuCases, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

/// Every number of `a` within `tolerance` of the one of `b`, relative to one plus its size.
template <class Vector>
void expect_close(const Vector& a, const Vector& b, double tolerance, const char* what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(double(a[i]) - double(b[i])) / (1 + std::abs(double(b[i])));
    if (!(error <= worst)) worst = error, where = i;
  }
  EXPECT_LE(worst, tolerance) << what << "[" << where << "]: " << a[where] << " and " << b[where];
}

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

// The staged driver takes the tile policy's general model: equal bits hold the register policy to the tile
// policy as well as the fused driver to the staged one.
TEST_P(GpuCases, FusedEqualsStagedBitForBit) {
  BatchCase c = GetParam().batch;
  if (c.transition == TransitionKind::random_walk) GTEST_SKIP() << "the staged driver runs HMC";
  for (Precision precision : {Precision::single, Precision::mixed, Precision::full}) {
    c.precision = precision;
    const BatchResult fused = run(c, true), staged = run(c, true, {.driver = Driver::staged});
    EXPECT_EQ(fused.position, staged.position);
    EXPECT_EQ(fused.gradient, staged.gradient);
    EXPECT_EQ(fused.cache, staged.cache);
    EXPECT_EQ(fused.stats, staged.stats);
    EXPECT_EQ(fused.moments, staged.moments);
    EXPECT_EQ(fused.draws, staged.draws);
  }
}

TEST_P(GpuCases, NoBitDependsOnTheSplit) {
  BatchCase c = GetParam().batch;
  c.precision = Precision::mixed;
  c.iterations = 7;
  c.thin = 2;
  const BatchResult whole = run(c, true);
  EXPECT_EQ(whole, run(c, true, {.launches = {2, 4}}));
  EXPECT_EQ(whole, run(c, true, {.engines = {1, 32, 65}}));  // engines of 1, 31, 33 and 5 chains
  EXPECT_EQ(whole, run(c, true, {.engines = {32}}));
}

// One short run of every kernel, for compute-sanitizer: 33 chains, so that a tile is mostly padding.
TEST_P(GpuCases, SanitizeRuns) {
  BatchCase c = GetParam().batch;
  c.chains = 33;
  c.iterations = 2;
  c.num_leapfrog = 2;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::full})
    for (Driver driver : {Driver::fused, Driver::staged}) {
      if (driver == Driver::staged && c.transition == TransitionKind::random_walk) continue;
      c.precision = precision;
      const BatchResult r = run(c, true, {.driver = driver});
      for (double x : r.position) ASSERT_TRUE(std::isfinite(x));
      for (int i = 0; i < c.chains; ++i) EXPECT_EQ(r.moments[i], 2);  // iterations recorded
    }
}

// Parallel tempering: transitions and even-odd swaps in one launch; every level is held by one chain of its
// unit.
TEST_F(GpuEngines, SwapsAgreeWithTheCpu) {
  const auto target = make_target("two_modes");
  const int levels = 5, units = 14, n = levels * units;
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.precision = Precision::full;
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

// In mixed precision trajectories part from the CPU's; the distribution must not. The same streams make the
// two runs dependent at most in the conservative direction; five standard errors and 16 comparisons leave a
// false alarm below one in 100000.
TEST_F(GpuEngines, MixedMomentsAgreeWithTheCpu) {
  const auto target = make_target("mixture20");
  BatchCase c = named("", "mixture20", ModelKind::pseudo_extended, 2).batch;
  c.precision = Precision::mixed;
  c.chains = 2048;
  c.iterations = 300;
  c.thin = 300;
  const BatchResult gpu = run_batch(engines(*target, true), c), cpu = run_batch(engines(*target, false), c);
  const int rows = static_cast<int>(gpu.moments.size()) / c.chains;
  ASSERT_GT(rows, 4);
  for (int r = 1; r < rows; ++r) {
    double mean[2] = {0, 0}, variance = 0;
    for (int which = 0; which < 2; ++which) {
      const double* m = (which == 0 ? gpu : cpu).moments.data() + std::size_t(r) * c.chains;
      double square = 0;
      for (int i = 0; i < c.chains; ++i) mean[which] += m[i] / c.chains;
      for (int i = 0; i < c.chains; ++i) square += (m[i] - mean[which]) * (m[i] - mean[which]);
      variance += square / (double(c.chains) * (c.chains - 1));
    }
    EXPECT_LE(std::abs(mean[0] - mean[1]), 5 * std::sqrt(variance) + 1e-12) << "moment row " << r;
  }
}

/// An engine of 40 chains on the two-dimensional Gaussian, started at 0.1, 0.2.
struct SmallRun {
  std::unique_ptr<TargetInstance> target = make_target("gaussian");
  std::unique_ptr<Engine> engine;
  LaunchSpec launch;
  explicit SmallRun(Precision precision, ModelKind kind = ModelKind::plain, Driver driver = Driver::fused) {
    EngineSpec spec;
    spec.cuda = true;
    spec.precision = precision;
    spec.driver = driver;
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
    for (Driver driver : {Driver::fused, Driver::staged}) {
      SmallRun broken(Precision::mixed, kind, driver), whole(Precision::mixed, kind, driver);
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
  SmallRun once(Precision::full), twice(Precision::full);
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
  const auto draws = run.engine->draws();
  const auto position = run.engine->position(), cache = run.engine->cache();
  const int padded = run.engine->padded_chains(), rows = 2 + kDrawExtraRows;
  ASSERT_EQ(draws.size(), std::size_t(4) * rows * padded);
  for (int i = 0; i < 40; ++i) {
    const float* last = draws.data() + std::size_t(3) * rows * padded + i;
    for (int k = 0; k < 2; ++k) EXPECT_EQ(last[k * padded], static_cast<float>(position[k * 40 + i]));
    EXPECT_EQ(last[(2 + draw_log_density) * padded], static_cast<float>(cache[i]));
    EXPECT_GE(last[(2 + draw_steps) * padded], 1);
    EXPECT_EQ(last[(2 + draw_beta) * padded], 1);
  }
}

}  // namespace
