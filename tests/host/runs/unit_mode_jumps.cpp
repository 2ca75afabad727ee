// SPDX-License-Identifier: Apache-2.0
// Lists that transitions find of the modes, and runs whose chains throw darts and begin anew.
#include "host/runs/mode_jumps.hpp"

#include <gtest/gtest.h>

#include "host/commands/sample.hpp"
#include "host/util/errors.hpp"
#include "kernels/darting.hpp"
#include "kernels/regeneration.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

RunOptions two_modes(Settings settings) {
  RunOptions run = run_of({.target = "two_modes", .sampler = "hmc", .sampler_settings = std::move(settings)});
  run.chains = 32;
  run.warmup = 200;
  run.iterations = 400;
  run.quiet = true;
  return run;
}

TEST(ModeJumps, AMixtureIsOfTheirSharesOfTheMassAndItsLevelTheTypicalWeight) {
  SearchResult found;
  found.library = ModeLibrary(1);
  for (int k = 0; k < 2; ++k) {
    Mode m;
    m.place = {3.0 * k};
    m.factor = {1.0 + k};
    m.laplace_log_mass = m.log_mass = 5 + std::log(k == 0 ? 0.75 : 0.25);
    found.library.add(m);
  }
  SamplerConfig config = sampler_config(two_modes({{"regeneration", true}, {"spread", 0.5}, {"level", 0.3}}),
                                        2, Tails::gaussian);
  const RunContext context = with_regeneration({}, config, {4}, {found});
  ASSERT_TRUE(context.regeneration);
  EXPECT_EQ(context.followers(), 1);
  const auto& list = context.regeneration->of_unit.at(4);
  ASSERT_EQ(list.size(), 2u + 2 * ModeMixture::length(1));
  EXPECT_EQ(list[0], 2);
  const double s = 1.5;
  EXPECT_NEAR(list[1], 5 + 0.5 * (std::log(s) - 1 + 1 / s) + 0.3, 1e-12);
  const double *first = list.data() + 2, *second = first + ModeMixture::length(1);
  EXPECT_EQ(second[0], 3);
  EXPECT_NEAR(second[1], 1 / (2 * std::sqrt(s)), 1e-12);
  EXPECT_NEAR(second[2], 2 * std::sqrt(s), 1e-12);
  EXPECT_NEAR(second[3], std::log(0.25 / std::sqrt(2 * kPi * 4 * s)), 1e-12);
  EXPECT_NEAR(first[4], 0.75, 1e-12);
  EXPECT_NEAR(second[4], 1, 1e-12);
  config.regeneration = false;
  EXPECT_FALSE(with_regeneration({}, config, {4}, {found}).regeneration);
}

TEST(ModeJumps, ReplicatesThatAdaptTogetherGoByTheSameModes) {
  const RunOptions run = two_modes({{"mode_jumps", true}});
  const auto target = build_target(run);
  ChainRunOptions options{run, {0, 1, 2}};
  options.searches = options.pooled = true;
  const ChainRunResult r = run_chains(make_context(run, *target, "test"),
                                      sampler_config(run, target->dim(), target->tails()), options);
  ASSERT_EQ(r.units.size(), 3u);
  for (const auto& unit : r.units) EXPECT_GT(estimate(unit).switches, 1000);  // of 32 chains x 400
}

TEST(ModeJumps, ChainsThatBeginAnewGiveMeansOverTours) {
  for (const bool darts : {false, true}) {
    Settings settings = {{"regeneration", true}};
    if (darts)
      settings["darting"] = true;
    else
      settings["mode_jumps"] = false;
    const SampleResult r = sample(two_modes(settings));
    const TourMeans& t = r.diagnostics.tours;
    EXPECT_GT(t.number, 1000);
    EXPECT_GT(t.acceptance, 0.3);
    ASSERT_EQ(t.mean.size(), r.truth.mean.size());
    for (std::size_t i = 0; i < t.mean.size(); ++i) {
      EXPECT_LT(std::abs(t.mean[i] - r.truth.mean[i]), 4 * t.mean_se[i]) << darts << " " << i;
      EXPECT_LT(std::abs(t.mean[i] - r.estimates.mean[i]), 0.1 * r.estimates.sd[i]);
    }
    EXPECT_EQ(r.verdict, "pass");
  }
}

TEST(ModeJumps, WhatCannotBeginAnewIsRefused) {
  const auto refused = [](const std::string& sampler, Settings settings) {
    RunOptions run = two_modes(std::move(settings));
    run.sampler = sampler;
    try {
      sampler_config(run, 2, Tails::gaussian);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("pe", {{"regeneration", true}}).find("whose states are of several samples"),
            std::string::npos);
  EXPECT_NE(refused("nuts", {{"darting", true}}).find("which ends when it sees fit"), std::string::npos);
  EXPECT_NE(refused("hmc", {{"spread", 2}}).find("sampler.regeneration is not true"), std::string::npos);
  for (const bool either : {false, true})
    EXPECT_NE(refused("hmc", {{"darting", true}, {"mode_jumps", either}})
                  .find("has no effect (sampler.darting takes"),
              std::string::npos);
  EXPECT_EQ(refused("wormhole", {{"darting", true}, {"regeneration", true}}), "");
}

}  // namespace
}  // namespace lockstep
