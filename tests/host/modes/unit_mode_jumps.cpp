// SPDX-License-Identifier: Apache-2.0
// Lists that transitions find of the modes, runs that drop jumps where hardly one is accepted, and runs whose chains throw
// darts and begin anew.
#include "host/modes/mode_jumps.hpp"

#include <gtest/gtest.h>

#include "host/commands/evidence.hpp"
#include "host/commands/sample.hpp"
#include "host/runs/chain_run.hpp"
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

/// Two normals 60 standard deviations apart, given by --modes, the second of this weight: of jumps from the first that
/// share is accepted, of those from the second all, twice the weight together.
RunOptions beside_a_mode_of(double weight, const std::string& sampler, Settings settings) {
  Job job{.target = "mixture", .sampler = sampler, .sampler_settings = std::move(settings)};
  job.data = fmt::format(R"({{"means": [[0, 0], [60, 0]], "weights": [{}, {}], "sds": [1, 1]}})", 1 - weight,
                         weight);
  job.iterations = 200;
  RunOptions run = run_of(job);
  run.modes = ::testing::TempDir() + "lockstep-two-places.csv";
  write_atomically(run.modes, "0,0\n60,0\n");
  run.quiet = true;
  return run;
}

// Half of the warm-up of 64 chains are 12,800 jumps: of .002 and .02 the standard errors are .0004 and .0012.
TEST(ModeJumps, ChainsDropThemWhereHardlyOneIsAccepted) {
  for (const double weight : {0.001, 0.01}) {
    const bool kept = weight > 0.005;
    const RunOptions run = beside_a_mode_of(weight, "hmc", {{"num_leapfrog", 6}, {"jitter", false}});
    const auto target = build_target(run);
    ChainRunOptions options{run, {0}};
    options.searches = true;
    const ChainRunResult r =
        run_chains(make_context(run, *target, "test"), sampler_config(run, 2, target->tails()), options);
    ASSERT_EQ(r.modes[0].library.size(), 2);
    EXPECT_NEAR(r.jump_acceptance, 2 * weight, kept ? 0.006 : 0.002);
    EXPECT_EQ(r.jumps(), kept);
    EXPECT_EQ(r.followers, int(kept));
    const Estimates e = estimate(r.units[0]);
    EXPECT_EQ(e.gradients, double(run.chains) * 200 * (kept ? 7 : 6)) << "of what is recorded";
  }
}

TEST(ModeJumps, ABaseOfModesNeedsThemAllTheSame) {
  Adapted a;
  EXPECT_TRUE(a.jumps()) << "none was made";
  for (const auto& [acceptance, worth] :
       {std::pair{0.0, false}, {0.0049, false}, {0.005, true}, {1.0, true}}) {
    a.frozen.full_base.clear();
    a.jump_acceptance = acceptance;
    EXPECT_EQ(a.jumps(), worth) << acceptance;
    a.frozen.full_base = {BaseDensity::normal(Eigen::Vector2d::Zero(), Eigen::Matrix2d::Identity(), false)};
    EXPECT_EQ(a.jumps(), worth) << acceptance;
    auto& components = a.frozen.full_base[0].components;
    components.push_back(components[0]);
    EXPECT_TRUE(a.jumps()) << acceptance;
  }
}

// What is spent after the pilot says whether chains make them: a gradient an iteration. Of sequential Monte Carlo the pilot is
// the run, and a first small one says whether the others are to.
TEST(ModeJumps, PathsDropThemWhereHardlyOneIsAccepted) {
  for (const auto& [method, steps] : {std::pair{"st", 5}, {"pt", 5}, {"ais", 1}, {"smc", 5}})
    for (const double weight : {0.001, 0.5}) {
      const bool kept = weight > 0.005;
      Settings settings = {{"base", "scout"}};
      if (method == std::string("st")) settings["base_draws"] = false;
      RunOptions run = beside_a_mode_of(weight, method, settings);
      run.command = "evidence";
      run.gradients = 3e5;
      run.chains = 0;
      run.warmup = RunOptions().warmup, run.iterations = RunOptions().iterations;
      const auto s = std::get<EvidenceResult>(evidence(run));
      ASSERT_EQ(s.diagnostics.modes.found, 2);
      ASSERT_FALSE(s.diagnostics.modes.base);
      const double accepted = s.diagnostics.modes.jump_acceptance,
                   each = (s.cost.gradients - s.cost.warmup_gradients) /
                          (double(s.chains) * double(s.iterations));
      if (method != std::string("smc")) {
        EXPECT_NEAR(each, steps + int(kept), 0.3) << method << weight << ": some lengths are drawn";
      }
      EXPECT_LT(accepted, kept ? 1 : kIdleJumps) << method;
      if (kept) {
        EXPECT_GT(accepted, 0.1) << method;
      }
    }
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
