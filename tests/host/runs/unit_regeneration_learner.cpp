// SPDX-License-Identifier: Apache-2.0
// Runs whose regenerations learn: means over tours stay those of the target, c and weights are those of the visits, a mode
// that the run did not know is added, and no bit depends on threads.
#include "host/runs/regeneration_learner.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "host/engines/sharded_engine.hpp"
#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_search.hpp"
#include "host/util/errors.hpp"
#include "kernels/regeneration.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {
using namespace testing;

/// `also`: a setting beside those of regenerations.
RunOptions run_that_learns(double adaptations, int threads = 2, const char* sampler = "hmc",
                           const Settings& also = {{"mode_jumps", false}}) {
  RunOptions run =
      run_of({.target = "two_modes",
              .sampler = sampler,
              .sampler_settings = {{"regeneration", true}, {"level", 0.5}, {"adaptations", adaptations}}});
  run.sampler_settings.update(also);
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
  EXPECT_EQ(t.adaptations, 3);
  EXPECT_GT(r.cost.search_gradients, still.cost.search_gradients);
  EXPECT_EQ(t.mean, one.diagnostics.tours.mean);
  EXPECT_EQ(t.number, one.diagnostics.tours.number);
}

/// An engine that stands still, to be asked.
struct Learning {
  RunOptions run;
  explicit Learning(const char* sampler = "hmc", const Settings& also = {{"mode_jumps", false}})
      : run(run_that_learns(9, 2, sampler, also)) {}
  std::unique_ptr<TargetInstance> target = build_target(run);
  SamplerConfig config = sampler_config(run, target->dim(), target->tails());
  ChainRunOptions options{run, {3}};
  RunContext context = make_context(run, *target, "test");
  std::vector<SearchResult> modes{search_modes(context, 3, {.gradients = 2e4})};

  SearchResult one_mode() const {
    SearchResult known = modes[0];
    known.library = ModeLibrary(modes[0].library.dim());
    known.library.add(modes[0].library[0]);
    return known;
  }
  RunContext with_all(const std::vector<SearchResult>& known) const {
    const auto& units = options.units;
    return with_regeneration(
        with_lists(config.mode_jumps ? with_jumps(context, units, known, {}, true) : context, config, units,
                   known),
        config, units, known);
  }
  std::unique_ptr<Engine> engine(const RunContext& with, int chains) const {
    EngineSpec spec = engine_spec(with, config.model, options.units, chains);
    spec.transition = config.transition;
    spec.settings = {config.settings};
    return make_engine(with, spec);
  }
};
/// Recorded iterations up to `end`.
LaunchSpec launch_of(const Learning& l, int num_leapfrog, std::uint32_t end) {
  LaunchSpec launch;
  launch.key = l.context.key;
  launch.num_leapfrog = num_leapfrog;
  launch.record = true;
  launch.end = end;
  return launch;
}
/// The same of all chains, at the mode.
void begin_at(Engine& engine, const Mode& mode, double step_size) {
  const int d = engine.dim();
  const auto chains = std::size_t(engine.chains());
  std::vector<double> x(chains * d);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = mode.place[i / chains];
  engine.set_position(x);
  const auto each = [&](int row, int rows, double value) {
    engine.set_parameters(row, std::vector<double>(rows * chains, value));
  };
  each(ParameterLayout::step_size, 1, step_size);
  each(ParameterLayout::trajectory_time, 1, 4 * step_size);
  each(ParameterLayout::beta, 1, 1);
  each(engine.layout().scale(), d, 1);
  engine.initialize();
}

TEST(RegenerationLearner, LearnsSharesOfVisitsModesAndTheTypicalWeight) {
  Learning l;
  ASSERT_EQ(l.modes[0].library.size(), 2);
  const ModeLibrary both = l.modes[0].library;
  l.modes = {l.one_mode()};
  const RunContext context = l.with_all(l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  const auto engine = l.engine(context, 32);
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
  LaunchSpec launch = launch_of(l, 1, 40);
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

/// Units that knew one mode, once they have learned the other: their chains are those of an engine that knew both.
void expect_followed(const char* sampler, const Settings& also) {
  constexpr int kPer = 32;
  Learning l(sampler, also);
  l.options.units = {3, 4};
  l.modes.assign(2, l.one_mode());
  const RunContext context = l.with_all(l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  const auto learned = l.engine(context, kPer), still = l.engine(context, kPer);
  const Mode start = l.modes[0].library[0];
  begin_at(*learned, start, 0.3);
  begin_at(*still, start, 0.3);
  learner.update(*learned, 64, 1e5);
  std::vector<SearchResult> both = l.modes;
  for (std::size_t u = 0; u < 2; ++u) {
    ASSERT_EQ(learner.library(u).size(), 2);
    both[u].library = learner.library(u);
  }
  const auto knew = l.engine(l.with_all(both), kPer), resumed = l.engine(context, kPer);
  begin_at(*knew, start, 0.3);
  begin_at(*resumed, start, 0.3);
  learner.hand_on(*resumed);  // a new engine, as of a run that is resumed
  const int regeneration = int(l.config.transition->shared.size()) + 1;
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = 4;
  launch.end = 64;
  for (Engine* e : {learned.get(), still.get(), knew.get(), resumed.get()}) {
    e->set_shared(regeneration, {{3, learner.list(0)}, {4, learner.list(1)}});
    e->advance(launch);
  }
  EXPECT_EQ(learned->position(), knew->position());
  EXPECT_EQ(resumed->position(), knew->position());
  EXPECT_NE(learned->position(), still->position()) << "what goes by modes changes nothing here";
}
TEST(RegenerationLearner, NetworksGoByWhatWasLearned) { expect_followed("wormhole", {{"mode_jumps", true}}); }
TEST(RegenerationLearner, JumpsGoByWhatWasLearned) { expect_followed("hmc", {{"mode_jumps", true}}); }
TEST(RegenerationLearner, DartsGoByWhatWasLearned) { expect_followed("hmc", {{"darting", true}}); }

/// Where modes may be learned a network's settings are not idle.
TEST(RegenerationLearner, OfOneModeANetworksSettingsAreTaken) {
  const Learning l("wormhole", {{"influence", 0.5}});
  EXPECT_NO_THROW(l.with_all({l.one_mode()}));
  Learning still("wormhole", {{"influence", 0.5}});
  still.config.regeneration_settings[Regeneration::adaptations] = 0;
  EXPECT_THROW(still.with_all({still.one_mode()}), UserError);
}

/// A mode learned late: of units that knew one of two modes for half of the run, z of the means over tours is
/// N(0, 1). With the tours from before, it is none in any.
void expect_dropped(const char* sampler) {
  constexpr int kPer = 32, units = 16;
  constexpr std::uint32_t half = 1024;
  Learning l(sampler);
  const ModeLibrary both = l.modes[0].library;
  ASSERT_EQ(both.size(), 2);
  const int d = both.dim();
  l.modes.assign(units, l.one_mode());
  l.options.units.resize(units);
  std::iota(l.options.units.begin(), l.options.units.end(), 0u);
  const RunContext context = l.with_all(l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  const auto engine = l.engine(context, kPer);
  begin_at(*engine, both[0], 0.3);
  LaunchSpec launch = launch_of(l, 4, 0);
  const auto advance = [&](std::uint32_t end) {
    while (launch.end < end) {
      launch.begin = launch.end;
      launch.end += 64;
      engine->advance(launch);
    }
  };
  const auto tours = [&](const std::vector<double>& fields) { return tours_of(fields, units, kPer, d); };
  advance(half);
  const auto before = engine->fields();
  for (int tries = 0; tries < 64 && learner.epoch(std::size_t(units) - 1) == 0; ++tries)
    learner.update(*engine, half, 1e6);
  EXPECT_EQ(tours(engine->fields())[0].number, 0);
  advance(2 * half);
  const auto fields = engine->fields();
  auto with_before = fields;
  add_sums(with_before, before, d, units * kPer);
  const auto since = tours(fields), kept = tours(with_before);
  double sum = 0, square = 0;
  for (int u = 0; u < units; ++u) {
    ASSERT_EQ(learner.epoch(u), 1) << u;
    EXPECT_EQ(learner.dropped_draws(u), double(half) * kPer);
    ASSERT_GT(since[u].number, half) << u;
    const double z = (since[u].mean[0] - l.target->truth().mean[0]) / since[u].mean_se[0];
    sum += z;
    square += z * z;
    EXPECT_GT(std::abs(kept[u].mean[0] - l.target->truth().mean[0]), 4 * kept[u].mean_se[0]) << u;
  }
  EXPECT_LT(std::abs(sum) / std::sqrt(units), 4);
  EXPECT_LT((square - units) / std::sqrt(2.0 * units), 4) << "errors are too small";
}
TEST(RegenerationLearner, ToursFromBeforeAModeWasKnownAreDropped) { expect_dropped("hmc"); }
/// Wormholes lead nowhere before it.
TEST(RegenerationLearner, ToursThroughLearnedWormholesAreRight) { expect_dropped("wormhole"); }

/// Nothing is known but where four descents end: four chains learn the four modes at times of their own, on either energy, and
/// the means over tours since are right. No such run passes: its search establishes nothing.
TEST(RegenerationLearner, FromFourDescentsAllModesAreLearned) {
  RunOptions run = run_of({.target = "scattered",
                           .sampler = "hmc",
                           .target_settings = {{"modes", 4}, {"dim", 5}, {"seed", 3}},
                           .init = "uniform:20"});
  run.chains = 4;
  run.warmup = 100;
  run.iterations = 2048;
  run.quiet = true;
  int runs = 0, learned = 0;
  double sum = 0, square = 0;
  std::vector<double> searches;  // gradients, by energy
  for (const double residual : {0, 1, 2})
    for (run.seed = 1; run.seed <= 8; ++run.seed, ++runs) {
      run.sampler_settings = {
          {"regeneration", true}, {"adaptations", 9}, {"starts", 4}, {"residual", residual}};
      const SampleResult r = sample(run);
      const TourMeans& t = r.diagnostics.tours;
      if (run.seed == 1) searches.push_back(r.cost.search_gradients);
      EXPECT_EQ(r.diagnostics.modes.shares.size(), 4) << residual << " " << run.seed;
      EXPECT_NE(r.verdict, "pass");
      learned += t.dropped_draws > 0;
      const double z = (t.mean[0] - r.truth.mean[0]) / t.mean_se[0];
      sum += z;
      square += z * z;
    }
  EXPECT_GT(learned, runs / 3) << "four descents found all";
  EXPECT_NE(searches[0], searches[1]) << "both on one energy";
  EXPECT_NE(searches[1], searches[2]) << "both on one energy";
  EXPECT_LT(std::abs(sum) / std::sqrt(runs), 4);
  EXPECT_LT((square - runs) / std::sqrt(2.0 * runs), 4) << "errors are too small";
}

/// No mode is known at first: what regenerations go by is empty, until chains lead a search to both.
TEST(RegenerationLearner, BeginsWithoutAMode) {
  Learning l;
  const ModeLibrary both = l.modes[0].library;
  l.modes[0].library = ModeLibrary(both.dim());
  const RunContext context = l.with_all(l.modes);
  RegenerationLearner learner(context, l.config, l.options, l.modes);
  const auto engine = l.engine(context, 32);
  begin_at(*engine, both[0], 0.3);
  LaunchSpec launch = launch_of(l, 4, 64);
  engine->advance(launch);
  for (const double x : engine->position()) ASSERT_TRUE(std::isfinite(x));
  EXPECT_EQ(learner.library(0).size(), 0);
  learner.update(*engine, 64, 1e6);
  EXPECT_EQ(learner.library(0).size(), 2);
  EXPECT_EQ(learner.dropped_draws(0), 64.0 * 32);
  launch.begin = 64;
  launch.end = 512;
  engine->advance(launch);
  EXPECT_GT(tours_of(engine->fields(), 1, 32, both.dim())[0].number, 1000);
}

}  // namespace
}  // namespace lockstep
