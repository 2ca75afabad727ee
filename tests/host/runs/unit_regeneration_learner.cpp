// SPDX-License-Identifier: Apache-2.0
// Runs whose regenerations learn: means over tours stay those of the target, c and weights are those of the visits, a mode
// that the run did not know is added, and no bit depends on threads.
#include "host/runs/regeneration_learner.hpp"

#include <gtest/gtest.h>

#include "host/estimators/log_sums.hpp"
#include "host/runs/sharded_engine.hpp"
#include "kernels/regeneration.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {
using namespace testing;

RunOptions run_that_learns(double adaptations, int threads = 2) {
  RunOptions run = run_of(
      {.target = "two_modes",
       .sampler = "hmc",
       .sampler_settings = {
           {"regeneration", true}, {"mode_jumps", false}, {"level", 0.5}, {"adaptations", adaptations}}});
  run.chains = 32;
  run.warmup = 200;
  run.iterations = 600;
  run.quiet = true;
  run.threads = threads;
  return run;
}

TEST(RegenerationLearner, ToursOfRunsThatLearnHaveTheTargetsMeans) {
  const SampleResult still = sample(run_that_learns(0)), r = sample(run_that_learns(3)),
                     one = sample(run_that_learns(3, 1));
  const TourMeans& t = r.diagnostics.tours;
  EXPECT_GT(t.number, 1000);
  ASSERT_EQ(t.mean.size(), r.truth.mean.size());
  for (std::size_t i = 0; i < t.mean.size(); ++i)
    EXPECT_LT(std::abs(t.mean[i] - r.truth.mean[i]), 4 * t.mean_se[i]) << i;
  EXPECT_NE(t.number, still.diagnostics.tours.number) << "nothing was learned";
  EXPECT_GT(r.cost.search_gradients, still.cost.search_gradients);
  EXPECT_EQ(t.mean, one.diagnostics.tours.mean);
  EXPECT_EQ(t.number, one.diagnostics.tours.number);
}

/// An engine that stands still, to be asked.
struct Learning {
  RunOptions run = run_that_learns(9);
  std::unique_ptr<TargetInstance> target = build_target(run);
  SamplerConfig config = sampler_config(run, target->dim(), target->tails());
  ChainRunOptions options{run, {3}};
  RunContext context = make_context(run, *target, "test");
  std::vector<SearchResult> modes{search_modes(context, 3, {.gradients = 2e4})};
};

TEST(RegenerationLearner, LearnsSharesOfVisitsModesAndTheTypicalWeight) {
  Learning l;
  ASSERT_EQ(l.modes[0].library.size(), 2);
  const ModeLibrary both = l.modes[0].library;
  SearchResult known = l.modes[0];
  known.library = ModeLibrary(both.dim());
  known.library.add(both[0]);
  l.modes = {known};
  const RunContext context = with_regeneration(l.context, l.config, {3}, l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  EngineSpec spec = engine_spec(context, l.config.model, {3}, 32);
  spec.transition = l.config.transition;
  spec.settings = {l.config.settings};
  const auto engine = make_engine(context, spec);
  const int d = both.dim();
  std::vector<double> x(std::size_t(32) * d);  // three in four at one mode, the others at what is not known
  for (int c = 0; c < 32; ++c)
    for (int i = 0; i < d; ++i) x[std::size_t(i) * 32 + c] = both[c % 4 == 0].place[i];
  engine->set_position(x);
  engine->initialize();
  learner.update(*engine, 63, 1e4);
  learner.update(*engine, 0, 1e4);
  EXPECT_EQ(learner.epoch(0), 0) << "not before it is due";
  learner.update(*engine, 64, 1e4);
  EXPECT_EQ(learner.epoch(0), 1);
  EXPECT_GT(learner.gradients(0), 0);
  const auto list = learner.list(0);
  const int length = ModeMixture::length(d);
  ASSERT_EQ(list.size(), std::size_t(2 + 2 * length + 2 + length + 1));
  EXPECT_EQ(list[0], 2) << "the other mode";
  EXPECT_EQ(list.back(), 1);
  // Visits at 0 and at 64 of the one mode that was known: 64; of the other none yet.
  EXPECT_NEAR(list[2 + std::size_t(length) - 1], 65.0 / 66, 1e-12);
  // Places are modes: log q there is that of the component, log pi the mode's.
  const double widened = 1 + l.config.regeneration_settings[0] / std::sqrt(double(d));
  double log_w = 0;
  for (int k = 0; k < 2; ++k) {
    LogSum q;
    for (int j = 0; j < 2; ++j)
      q.add(list[std::size_t(2 + (j + 1) * length - 2)] -
            0.5 * both.distance(j, both[k].place.data()) / widened);
    log_w += (k == 0 ? 0.75 : 0.25) * (both[k].log_density - q.log());
  }
  EXPECT_NEAR(list[1], log_w + 0.5, 1e-3);

  learner.update(*engine, 128, 1e4);
  EXPECT_EQ(learner.epoch(0), 2) << "what is in no tour waits for nothing";
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = 1;
  launch.record = true;
  launch.end = 40;
  engine->advance(launch);
  learner.update(*engine, 256, 1e4);
  EXPECT_EQ(learner.epoch(0), 3) << "all tours are by the newest";
  learner.update(*engine, 512, 1e4);
  EXPECT_EQ(learner.epoch(0), 3) << "tours are by the one before";
}

/// Sums over tours, row by row; what chains are in stays.
void add_sums(std::vector<double>& to, const std::vector<double>& from, int dim, int chains) {
  using R = Regeneration;
  const int rows = int(to.size()) / chains, first = rows - (int(R::kNumbers) + R::kRows * dim + 2);
  for (int row = 0; row < rows - first - 2; ++row) {
    const bool adds = row == R::closed || row == R::sum_n || row == R::sum_nn || row >= R::kNumbers + dim;
    for (int c = 0; adds && c < chains; ++c)
      to[std::size_t(first + row) * chains + c] += from[std::size_t(first + row) * chains + c];
  }
}

/// A mode learned late: of 16 units that knew one of two modes for half of the run, z of the means over tours is
/// N(0, 1). With the tours from before, it is none in any.
TEST(RegenerationLearner, ToursFromBeforeAModeWasKnownAreDropped) {
  constexpr int kUnits = 16, kPer = 32;
  constexpr std::uint32_t kHalf = 1024;
  Learning l;
  const ModeLibrary both = l.modes[0].library;
  ASSERT_EQ(both.size(), 2);
  const int d = both.dim();
  SearchResult known = l.modes[0];
  known.library = ModeLibrary(d);
  known.library.add(both[0]);
  l.modes.assign(kUnits, known);
  std::vector<std::uint32_t> units(kUnits);
  for (int u = 0; u < kUnits; ++u) units[u] = std::uint32_t(u);
  l.options.units = units;
  const RunContext context = with_regeneration(l.context, l.config, units, l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  EngineSpec spec = engine_spec(context, l.config.model, units, kPer);
  spec.transition = l.config.transition;
  spec.settings = {l.config.settings};
  const auto engine = make_engine(context, spec);
  std::vector<double> x(std::size_t(kUnits) * kPer * d);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = both[0].place[i / (kUnits * kPer)];
  engine->set_position(x);
  const auto each = [&](int row, int rows, double value) {
    engine->set_parameters(row, std::vector<double>(std::size_t(rows) * kUnits * kPer, value));
  };
  each(ParameterLayout::step_size, 1, 0.3);
  each(ParameterLayout::beta, 1, 1);
  each(engine->layout().scale(), d, 1);
  engine->initialize();
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = 4;
  launch.record = true;
  const auto advance = [&](std::uint32_t end) {
    while (launch.end < end) {
      launch.begin = launch.end;
      launch.end += 64;
      engine->advance(launch);
    }
  };
  advance(kHalf);
  const auto before = engine->fields();
  for (int tries = 0; tries < 64 && learner.epoch(kUnits - 1) == 0; ++tries)
    learner.update(*engine, kHalf, 1e6);
  const TourMeans none = tours_of(engine->fields(), kUnits, kPer, d)[0];
  EXPECT_EQ(none.number, 0);
  advance(2 * kHalf);
  const auto fields = engine->fields();
  auto with_before = fields;
  add_sums(with_before, before, d, kUnits * kPer);
  const auto tours = tours_of(fields, kUnits, kPer, d), kept = tours_of(with_before, kUnits, kPer, d);
  double sum = 0, square = 0;
  for (int u = 0; u < kUnits; ++u) {
    ASSERT_EQ(learner.epoch(u), 1) << u;
    EXPECT_EQ(learner.dropped_draws(u), double(kHalf) * kPer);
    ASSERT_GT(tours[u].number, 1000) << u;
    const double z = (tours[u].mean[0] - l.target->truth().mean[0]) / tours[u].mean_se[0];
    sum += z;
    square += z * z;
    EXPECT_GT(std::abs(kept[u].mean[0] - l.target->truth().mean[0]), 4 * kept[u].mean_se[0]) << u;
  }
  EXPECT_LT(std::abs(sum) / std::sqrt(kUnits), 4);
  EXPECT_LT((square - kUnits) / std::sqrt(2.0 * kUnits), 4) << "errors are too small";
}

}  // namespace
}  // namespace lockstep
