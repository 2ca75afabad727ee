// SPDX-License-Identifier: Apache-2.0
// A transition that the library does not know (tests/support/own_data.hpp) through a whole run: its settings, what it
// counts, its gates, and budgets of gradients that nobody can foretell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/runs/chain_run.hpp"
#include "host/runs/recording.hpp"
#include "targets/transitions.hpp"
#include "tests/support/own_data.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Transitions& with_own() {
  static const Transitions all = {find_transition("hmc"), &cpu_transitions<SliceWalk>(),
                                  &cpu_transitions<ImplicitMidpoint>(), &cpu_transitions<Tours>()};
  return all;
}

/// A run on a Gaussian in two dimensions.
struct OwnRun {
  std::unique_ptr<TargetInstance> target;
  SamplerConfig config;
  ChainRunResult result;
};
OwnRun run_own(const std::string& sampler, Settings settings, std::vector<std::uint32_t> units = {0},
               double gradients = 0) {
  Job job{.target = "gaussian", .sampler = sampler, .target_settings = {{"dim", 2}}, .iterations = 150};
  job.sampler_settings = std::move(settings);
  job.warmup = 60;
  job.chains = 33;
  const RunOptions run = run_of(job);
  OwnRun own{build_target(run), {}, {}};
  own.config = sampler_config(run, 2, own.target->tails(), with_own());
  ChainRunOptions options{run, std::move(units)};
  options.gradients = gradients;
  own.result = run_chains(make_context(run, *own.target, "test"), own.config, options);
  return own;
}
std::vector<std::string> failed(const OwnRun& r) {
  return failed_gates(estimate(r.result.units[0]), r.result, 0, r.config);
}
double counted(const OwnRun& r, const std::string& name) {
  return entry(counters_of(r.result.units[0], *r.config.transition), name);
}

TEST(OwnTransition, SettingsReachTheChains) {
  const OwnRun standard = run_own("slice walk", {{"step_size", 1}}),
               wide = run_own("slice walk", {{"step_size", 1}, {"width", 60}}),
               extended = run_own("pe", {{"transition", "slice walk"}, {"step_size", 1}, {"width", 60}});
  EXPECT_EQ(standard.config.effective["width"], 6);
  EXPECT_EQ(wide.config.effective["width"], 60);
  EXPECT_GT(counted(wide, "evaluations"), 1.3 * counted(standard, "evaluations"));
  EXPECT_GT(counted(extended, "evaluations"), 1.3 * counted(standard, "evaluations"));
  const OwnRun tours = run_own("tours", {{"closing", 1}});
  EXPECT_EQ(counted(tours, "tours"), 150 * 33);
}

TEST(OwnTransition, APlantedFailureFailsItsGateAndASoundRunDoesNot) {
  const OwnRun sound = run_own("implicit midpoint", {{"step_size", 1}}),
               wild = run_own("implicit midpoint", {{"step_size", 3}});
  EXPECT_THAT(failed(sound), ElementsAre("acceptance"));  // of 1: the rule keeps a quadratic energy
  EXPECT_THAT(advice_of(sound.result.units[0], *sound.config.transition), IsEmpty());
  EXPECT_THAT(failed(wild), ::testing::Contains("unsolved"));
  EXPECT_EQ(verdict_of(failed(wild)), "fail");
  EXPECT_THAT(advice_of(wild.result.units[0], *wild.config.transition),
              ElementsAre(HasSubstr("over 0.01: the implicit solve does not converge; lower")));
}

TEST(OwnTransition, CountersAreInTheSummary) {
  SampleResult result;
  result.diagnostics.counters =
      counters_of(run_own("implicit midpoint", {{"step_size", 3}}).result.units[0], *with_own()[2]);
  const auto json = to_json(result);
  EXPECT_GT(json["diagnostics"]["counters"]["unsolved"], 0.01 * 150 * 33);
  EXPECT_EQ(from_json<SampleResult>(json).diagnostics.counters, result.diagnostics.counters);
  EXPECT_FALSE(to_json(SampleResult())["diagnostics"].contains("counters"));
}

TEST(OwnTransition, MemoryIsPlannedForAllTransitionsOfAnIteration) {
  const auto target = build_target(run_of({.target = "gaussian"}));
  RunContext context;
  context.target = target.get();
  RunSize size;
  size.dim = target->dim();
  size.chains = 32000;
  size.then = {find_transition("rwm")};
  const double without = planned_memory(context, ModelSpec(), size).host;
  size.then = {&cpu_transitions<Tours>()};  // two fields and three counters of each chain
  EXPECT_GE(planned_memory(context, ModelSpec(), size).host, without + 32000 * 8 * 5);
}

TEST(OwnTransition, BudgetsThatNobodyCanForetellAreSpentUnitByUnit) {
  const double budget = 3e5;
  const Settings settings = {{"step_size", 1}};
  const OwnRun many = run_own("implicit midpoint", settings, {0, 1, 2}, budget),
               alone = run_own("implicit midpoint", settings, {2}, budget);
  for (const UnitMoments& unit : many.result.units) {
    EXPECT_GE(unit.stats[stat_gradients], budget);
    // And ends at the next boundary: an iteration takes some 20 gradients.
    EXPECT_LT(unit.stats[stat_gradients],
              budget + 2 * kChunk * 33 * unit.stats[stat_gradients] / (double(unit.iterations) * 33));
  }
  EXPECT_EQ(many.result.units[2].iterations, alone.result.units[0].iterations);
  EXPECT_EQ(many.result.units[2].stats, alone.result.units[0].stats);
  EXPECT_EQ(many.result.units[2].sums, alone.result.units[0].sums);
  // Of few chains log Z is judged by stretches of the budget, however many iterations it comes to.
  const OwnRun extended = run_own("pe", {{"transition", "slice walk"}, {"step_size", 1}}, {0}, 1e6);
  ASSERT_EQ(extended.result.log_z.size(), 1u);
  const LogZ& z = extended.result.log_z[0];
  EXPECT_LT(z.se, 0.1);
  EXPECT_LT(std::abs(z.estimate), 4.5 * z.se);
}

}  // namespace
}  // namespace lockstep
