// SPDX-License-Identifier: Apache-2.0
// A batch on several engines of one process: the bits of one engine, by every method that there is.
#include "host/engines/sharded_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/engine_cases.hpp"

namespace lockstep {
namespace {

using namespace testing;
using ::testing::ElementsAre;

std::unique_ptr<Engine> sharded(const TargetInstance& target, const EngineSpec& spec, int shards,
                                bool whole_units = false) {
  return std::make_unique<ShardedEngine>(spec, shards, whole_units,
                                         [&](const EngineSpec& slice, int) { return target.engine(slice); });
}

TEST(CutChains, IsAsEvenAsTilesAllow) {
  const std::vector<std::uint32_t> one(256, 0);
  EXPECT_THAT(cut_chains(one, 1, false), ElementsAre(0, 256));
  EXPECT_THAT(cut_chains(one, 3, false), ElementsAre(0, 64, 160, 256));
  EXPECT_THAT(cut_chains(std::vector<std::uint32_t>(100, 0), 3, false), ElementsAre(0, 32, 64, 100));
  // Fewer than a tile each: chain by chain, and some have none where there are too few.
  EXPECT_THAT(cut_chains(std::vector<std::uint32_t>(40, 0), 3, false), ElementsAre(0, 13, 26, 40));
  EXPECT_THAT(cut_chains({7, 8}, 3, false), ElementsAre(0, 0, 1, 2));
  // Between units alone where these must stay whole.
  EXPECT_THAT(cut_chains({0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, 3, true), ElementsAre(0, 3, 6, 12));
  EXPECT_THAT(cut_chains({4, 4, 4}, 2, true), ElementsAre(0, 0, 3));
}

TEST(ShardedEngine, NoBitDependsOnTheShards) {
  for (const Named& n : all_cases()) {
    const auto target = make_target(n.target);
    const BatchResult whole =
        run_batch([&](const EngineSpec& spec) { return target->engine(spec); }, n.batch, {.launches = {2}});
    for (const int shards : {1, 2, 3})
      for (const bool resumed : {false, true}) {
        const BatchResult cut =
            run_batch([&](const EngineSpec& spec) { return sharded(*target, spec, shards); }, n.batch,
                      {.launches = {2}, .resumed = resumed});
        EXPECT_EQ(cut.position, whole.position) << n.name << shards;
        EXPECT_EQ(cut.gradient, whole.gradient) << n.name << shards;
        EXPECT_EQ(cut.cache, whole.cache) << n.name << shards;
        EXPECT_EQ(cut.stats, whole.stats) << n.name << shards;
        EXPECT_EQ(cut.rows, whole.rows);
        EXPECT_EQ(cut.draws, whole.draws) << n.name << shards;
        if (!resumed) {
          EXPECT_EQ(cut.moments, whole.moments) << n.name << shards;
        }
      }
  }
}

/// The columns of chains, of a table with padding.
template <class T>
std::vector<T> without_padding(const std::vector<T>& table, const Engine& engine) {
  std::vector<T> out;
  const std::size_t padded = engine.padded_chains();
  for (std::size_t i = 0; i < table.size(); ++i)
    if (i % padded < std::size_t(engine.chains())) out.push_back(table[i]);
  return out;
}

// Six units of four levels that swap, and more shards than units.
TEST(ShardedEngine, SwapsStayWithinTheirUnits) {
  const auto target = make_target("gaussian5");
  BatchCase c;
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.trace = 9;
  for (std::uint32_t i = 0; i < 24; ++i) {
    spec.chain.push_back(i % 4);
    spec.unit.push_back(i / 4);
  }
  const auto run = [&](Engine& engine, std::uint32_t begin, std::uint32_t end) {
    LaunchSpec launch = make_launch(c, begin, end);
    launch.tempering = Tempering::swap;
    engine.advance(launch);
  };
  const auto begin = [&](Engine& engine) {
    set_parameters(engine, c, 0);
    const std::vector<double> ladder = {0, 0.2, 0.5, 1};
    const auto held = engine.set_ladder(ladder, {0, 0, 0, 0}, {0.3, 0.3, 0.3, 0.3});
    std::vector<double> beta;
    for (int k = 0; k < engine.chains(); ++k) beta.push_back(held[std::size_t(k % 4)]);
    engine.set_parameters(ParameterLayout::beta, beta);
    std::vector<double> start(std::size_t(engine.rows()) * engine.chains());
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = 2 * hashed(std::uint32_t(i), 3) - 1;
    engine.set_position(start);
    engine.initialize();
    return held;
  };
  const auto one = target->engine(spec);
  const auto held = begin(*one);
  run(*one, 0, 9);
  for (const int shards : {2, 3, 5, 8}) {
    const auto cut = sharded(*target, spec, shards, true);
    EXPECT_EQ(begin(*cut), held);
    run(*cut, 0, 9);
    EXPECT_EQ(cut->state(), one->state()) << shards;
    EXPECT_EQ(without_padding(cut->trace(), *cut), without_padding(one->trace(), *one));
    EXPECT_EQ(cut->beta(), one->beta());
    // The state of the whole goes on in shards, and back.
    const auto next = sharded(*target, spec, shards, true), after = target->engine(spec);
    begin(*next);
    next->set_state(one->state());
    run(*next, 9, 14);
    begin(*after);
    after->set_state(one->state());
    run(*after, 9, 14);
    EXPECT_EQ(next->state(), after->state()) << shards;
    EXPECT_THROW(next->set_state(std::vector<double>(7)), std::invalid_argument);
    EXPECT_THROW(after->set_state(std::vector<double>(one->state().size() + 1)), std::invalid_argument);
  }
}

TEST(ShardedEngine, DrawsOfSomeChainsOverviewAndBeta) {
  const auto target = make_target("gaussian");
  for (const bool path : {false, true}) {
    EngineSpec spec;
    spec.model.kind = path ? ModelKind::path : ModelKind::plain;
    spec.draws = 6;
    spec.overview = 3;
    spec.stored_chains = {3, 4, 37, 98};  // none of the middle shard's
    spec.threads = 2;
    for (std::uint32_t i = 0; i < 99; ++i) {
      spec.chain.push_back(i);
      spec.unit.push_back(0);
    }
    BatchCase c;
    c.tempering = Tempering::fixed;
    const auto run = [&](Engine& engine) {
      set_parameters(engine, c, 0);
      engine.set_position(std::vector<double>(std::size_t(engine.rows()) * engine.chains(), 0.25));
      engine.initialize();
      if (path) {
        std::vector<double> beta(engine.chains());
        for (std::size_t i = 0; i < beta.size(); ++i) beta[i] = hashed(std::uint32_t(i), 5);
        engine.set_beta(beta);
      }
      LaunchSpec launch = make_launch(c, 0, 6);
      launch.overview_thin = 2;
      engine.advance(launch);
    };
    const auto one = target->engine(spec);
    run(*one);
    for (const int shards : {2, 3}) {
      const auto cut = sharded(*target, spec, shards);
      run(*cut);
      EXPECT_TRUE(std::ranges::equal(cut->draws(spec.draws), one->draws(spec.draws))) << shards;
      EXPECT_EQ(without_padding(cut->overview(), *cut), without_padding(one->overview(), *one)) << shards;
      EXPECT_EQ(cut->beta(), one->beta());
      EXPECT_EQ(cut->gradient(), one->gradient());
      EXPECT_EQ(cut->stats(false), one->stats(false));
      EXPECT_TRUE(cut->trace().empty());
      EXPECT_EQ(cut->dim(), one->dim());
      EXPECT_EQ(cut->samples(), one->samples());
      EXPECT_EQ(cut->cache_rows(), one->cache_rows());
      EXPECT_EQ(cut->layout().rows(), one->layout().rows());
      EXPECT_EQ(cut->moment_layout().rows(), one->moment_layout().rows());
      EXPECT_GE(cut->bytes(), one->bytes() / 2);
    }
  }
}

TEST(ShardedEngine, WhatOneShardThrowsIsThrown) {
  const auto target = make_target("gaussian");
  EngineSpec spec;
  spec.chain = spec.unit = std::vector<std::uint32_t>(64, 0);
  EXPECT_THROW(ShardedEngine(spec, 2, false,
                             [&](const EngineSpec& slice, int shard) {
                               if (shard == 1) throw std::bad_alloc();
                               return target->engine(slice);
                             }),
               std::bad_alloc);
}

}  // namespace
}  // namespace lockstep
