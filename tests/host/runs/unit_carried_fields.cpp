// SPDX-License-Identifier: Apache-2.0
// Samplers whose chains carry more than a position: they go on with it from warm-up, and do not jump between modes.
#include "host/runs/carried_fields.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/runs/chain_run.hpp"
#include "host/runs/gates.hpp"
#include "kernels/parallel_walks.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(CarriedFields, AreThoseOfTheComparators) {
  for (const char* name : {"hmc", "rwm", "mala"})
    EXPECT_FALSE(carries_fields(*find_transition(name))) << name;
  for (const char* name : {"ram", "pt_rwm", "ee"}) {
    EXPECT_TRUE(carries_fields(*find_transition(name))) << name;
    Job job{.target = "gaussian", .sampler = name};
    EXPECT_FALSE(sampler_config(run_of(job), 2, Tails::gaussian).mode_jumps);
    job.sampler_settings = {{"mode_jumps", true}};
    EXPECT_THROW(sampler_config(run_of(job), 2, Tails::gaussian), UserError);
  }
}

TEST(CarriedFields, AreWhatTheyWereSetTo) {
  const auto target = build_target(run_of({.target = "gaussian", .target_settings = {{"dim", 3}}}));
  EngineSpec spec;
  spec.transition = find_transition("pt_rwm");
  number_chains(spec, {0}, 40);
  const auto engine = target->engine(spec);
  engine->set_position(std::vector<double>(3 * 40, 0.5));
  engine->initialize();
  auto rows = carried_fields(*engine, *spec.transition);
  ASSERT_EQ(rows.size(), std::size_t(ParallelWalks::levels_field().rows(3)) * 40);
  EXPECT_THAT(rows, ::testing::Each(0.0));
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = double(i);
  const auto position = engine->position(), cache = engine->cache();
  set_carried_fields(*engine, *spec.transition, rows);
  EXPECT_EQ(carried_fields(*engine, *spec.transition), rows);
  EXPECT_EQ(engine->position(), position);
  EXPECT_EQ(engine->cache(), cache);
  rows.pop_back();
  EXPECT_THROW(set_carried_fields(*engine, *spec.transition, rows), std::invalid_argument);
}

/// Levels are old enough for exchanges when recording begins, if the warm-up was as long; also where more chains adapt.
TEST(CarriedFields, GoOnFromWarmUp) {
  const auto tried = [](int warmup, const char* adapt) {
    Job job{.target = "gaussian", .sampler = "pt_rwm", .target_settings = {{"dim", 2}}, .iterations = 50};
    job.sampler_settings = {{"step_size", 1}, {"exchange", 1}, {"settling", 100}, {"adapt", adapt}};
    job.warmup = warmup;
    job.chains = 8;
    const RunOptions run = run_of(job);
    const auto target = build_target(run);
    const SamplerConfig config = sampler_config(run, 2, target->tails());
    const ChainRunResult r = run_chains(make_context(run, *target, "test"), config, {run, {0, 1}});
    return entry(counters_of(r.units[1], *config.transition), "exchanges_tried");
  };
  EXPECT_EQ(tried(10, "none"), 0);
  EXPECT_EQ(tried(70, "none"), 20 * 8);
  EXPECT_EQ(tried(100, "none"), 50 * 8);
  EXPECT_EQ(tried(400, "auto"), 50 * 8);
}

}  // namespace
}  // namespace lockstep
