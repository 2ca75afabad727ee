// SPDX-License-Identifier: Apache-2.0
// Each gate sees the failure that is planted for it, and nothing else.
#include "host/runs/gates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/engines/points_file.hpp"
#include "host/modes/given_points.hpp"
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"
#include "host/runs/starts.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using testing::Job;
using ::testing::Not;

TEST(Verdict, TooShortIsNeitherPassNorFail) {
  EXPECT_EQ(verdict_of({}), "pass");
  EXPECT_EQ(verdict_of({"rhat"}), "fail");
  EXPECT_EQ(verdict_of({"length"}), "not established");
  EXPECT_EQ(verdict_of({"acceptance", "length", "nested_rhat"}), "not established");
}

TEST(Contradiction, TakesManyErrorsAndManyNats) {
  EXPECT_FALSE(contradicts({0, 0.01}, {2.9, 0.01}));  // far in errors alone
  EXPECT_FALSE(contradicts({0, 1}, {4, 1}));          // far in nats alone
  EXPECT_TRUE(contradicts({9, 0.07}, {-0.5, 0.1}));
  EXPECT_TRUE(contradicts({-0.5, 0.1}, {9, 0.07}));
}

/// The gates that a run of one unit fails, after `harm` was done to it.
std::vector<std::string> failed_after(const Job& job,
                                      const std::function<void(ChainRunResult&, Estimates&)>& harm) {
  testing::Outcome o = testing::run(job);
  harm(o.result, o.units[0]);
  return o.failed(0);
}
Job small(std::int64_t iterations = 600) {
  return {.target = "gaussian", .target_settings = {{"dim", 2}}, .iterations = iterations, .replicates = 1};
}
void nothing(ChainRunResult&, Estimates&) {}

TEST(Gates, PassARightRun) { EXPECT_THAT(failed_after(small(), nothing), IsEmpty()); }

TEST(Gates, TwentyIterationsAreTooFew) {
  const auto failed = failed_after(small(20), nothing);
  EXPECT_THAT(failed, Contains("length"));
  EXPECT_EQ(verdict_of(failed), "not established");
}

// Errors of a single short chain are of one or two degrees of freedom: means were up to 26 of them off.
TEST(Gates, AFewDegreesOfFreedomEstablishNothing) {
  Estimates e;
  std::vector<std::string> none, others = {"rhat"};
  e.mean_df = {30, 8};
  EXPECT_EQ(judge_short_chains(none, e), "");
  e.mean_df = {30, 7};
  EXPECT_EQ(judge_short_chains(others, e), "") << "it fails";
  EXPECT_THAT(judge_short_chains(none, e), ::testing::HasSubstr("has 7 degrees of freedom"));
  EXPECT_EQ(none, std::vector<std::string>{"length"});
}

// Four chains of the No-U-turn sampler on the banana: 127 draws, 46 in its tails, and a second moment 5 errors low.
TEST(Gates, AFewEffectiveDrawsEstablishNothing) {
  Estimates e;
  DrawFigures figures;
  figures.draws = 1000, figures.chains = 4;
  e.mean = {0, 0};
  figures.of.resize(2);
  for (DrawDiagnostics& one : figures.of) one.rhat = 1.01, one.ess_bulk = 400, one.ess_tail = 300;
  std::vector<std::string> none;
  judge_ranks(e, figures);
  EXPECT_EQ(e.effective_draws, 300);
  EXPECT_EQ(judge_short_chains(none, e), "");
  figures.of[1].ess_tail = 46;
  judge_ranks(e, figures);
  EXPECT_THAT(judge_short_chains(none, e), ::testing::HasSubstr("are worth 46 independent ones"));
  EXPECT_EQ(none, std::vector<std::string>{"length"});
}

// Groups of short chains may agree because each began everywhere; single ones say that none has moved.
TEST(Gates, ShortChainsThatKeptToWhereTheyBeganEstablishNothing) {
  Estimates e;
  e.nested = true;
  std::vector<std::string> none, others = {"divergences"};
  e.rhat_of_chains = 1.15;
  EXPECT_EQ(judge_short_chains(none, e), "");
  EXPECT_THAT(none, IsEmpty());
  e.rhat_of_chains = 1.25;
  EXPECT_THAT(judge_short_chains(none, e), ::testing::HasSubstr("R-hat of single chains is 1.2"));
  EXPECT_THAT(none, ::testing::ElementsAre("length"));
  EXPECT_EQ(judge_short_chains(others, e), "") << "it fails";
  EXPECT_THAT(others, ::testing::ElementsAre("divergences"));
}

// Chains that cannot leave the mode that they began in, as many in each of their groups in either.
TEST(Gates, ShortChainsAreSeenOneByOne) {
  RunOptions r = testing::run_of({.target = "two_modes",
                                  .sampler = "hmc",
                                  .target_settings = {{"dim", 2}},
                                  .iterations = 200,
                                  .chains = 64});
  r.sampler_settings = {{"mode_jumps", false}};
  const auto target = build_target(r);
  ChainRunOptions options{r, {0}};
  options.overview = 200;
  const SamplerConfig config = sampler_config(r, 2, target->tails());
  const ChainRunResult run = run_chains(make_context(r, *target, ""), config, options);
  Estimates e = estimate(run.units[0]);
  ASSERT_TRUE(e.nested);
  judge_ranks(e, draw_figures(*target, run, config, 1, 2, e.nested));
  EXPECT_GT(e.rhat_of_chains, kChainsApart);
}

TEST(Gates, LogZThatIsNotThereFails) {
  EXPECT_THAT(failed_after(small(), [](auto& r, auto&) { r.log_z[0].estimate = NAN; }), Contains("log_z"));
}

// Particles that lost a mode are no fault of a run whose log Z the modes found hold.
TEST(Gates, LogZFarAboveTheScoutsIsTheModes) {
  const auto failed = [](double by, double held) {
    return failed_after(small(), [&](auto& r, auto&) {
      r.log_z[0].estimate += by;
      ModeLibrary modes(2);
      for (const double at : {0.0, 30.0}) {
        Mode m;
        m.place = {at, 0};
        m.factor = {1, 0, 0, 1};
        m.log_mass = m.laplace_log_mass = r.log_z[0].estimate + std::log(held / 2);
        m.effective_share = 0.9;
        modes.add(m);
      }
      r.modes.resize(1);
      r.modes[0].library = modes;
    });
  };
  EXPECT_THAT(failed(4, 1), Not(Contains("scout")));
  EXPECT_THAT(failed(4, 0.4), Contains("scout"));  // less than half of it
  EXPECT_THAT(failed(-4, 1), Contains("scout"));
}

TEST(Gates, LogZFarFromTheScoutsFails) {
  EXPECT_THAT(failed_after(small(), [](auto& r, auto&) { r.log_z[0].se = NAN; }), Contains("log_z"));
  EXPECT_THAT(failed_after(small(), [](auto& r, auto&) { r.log_z[0].estimate += 4; }), Contains("scout"));
  EXPECT_THAT(failed_after(small(), [](auto& r, auto&) { r.log_z[0].estimate += 2; }),
              Not(Contains("scout")));
}

// Nor is it where the warm-up, which widened the base, saw as much.
TEST(Gates, LogZFarAboveTheScoutsIsWhatAWiderBaseHolds) {
  const auto failed = [](double by, double seen) {
    return failed_after(small(), [=](auto& r, auto&) {
      r.frozen.warmup_log_z[0] = r.log_z[0].estimate + seen;
      r.log_z[0].estimate += by;
    });
  };
  EXPECT_THAT(failed(4, 3.5), Not(Contains("scout")));
  EXPECT_THAT(failed(4, 0.5), Contains("scout"));
  EXPECT_THAT(failed(4, NAN), Contains("scout"));
  EXPECT_THAT(failed(-4, -4), Contains("scout"));
}

TEST(Gates, InverseTemperaturesThatStandStillFail) {
  const auto failed = [](double spread) {
    return failed_after(small(), [=](auto&, auto& e) { e.beta_spread = spread; });
  };
  EXPECT_THAT(failed(20), Contains("round_trips"));
  EXPECT_THAT(failed(5), Not(Contains("round_trips")));
  EXPECT_THAT(failed(NAN), Not(Contains("round_trips")));
}

TEST(Gates, ATargetWiderThanItsBaseFails) {
  const auto widened = [](double by) {
    return failed_after(small(), [by](auto& r, auto&) {
      for (double& sd : r.frozen.base_sd) sd /= by;
    });
  };
  EXPECT_THAT(widened(1.6), Contains("base"));
  EXPECT_THAT(widened(1.1), Not(Contains("base")));
}

TEST(Gates, AScoutWiderThanTheDrawsFails) {
  const auto widened = [](double by, double error, double box = INFINITY) {
    Job job = small();
    if (std::isfinite(box)) job.sampler_settings["box"] = box;
    return failed_after(job, [=](auto& r, auto&) {
      r.modes.clear();
      ASSERT_EQ(r.frozen.scout_variance.size(), 2u);
      r.frozen.scout_variance[1].estimate *= by * by;
      r.frozen.scout_variance[1].se = error;
    });
  };
  EXPECT_THAT(widened(1.6, 0.1), Contains("scout"));
  EXPECT_THAT(widened(1.2, 0.1), Not(Contains("scout")));
  EXPECT_THAT(widened(1.6, 1), Not(Contains("scout"))) << "within its error";
  EXPECT_THAT(widened(1.6, 0.1, 1e3), Not(Contains("scout"))) << "which knows no box";
  EXPECT_THAT(warning_of({1, 1.6}, {"x", "y"}),
              ::testing::HasSubstr("1.6 times as wide as the draws along y"));
}

TEST(NeverVaried, IsSeenToRounding) {
  EXPECT_TRUE(never_varied(0, 0));
  EXPECT_TRUE(never_varied(1, 8e-18));
  EXPECT_FALSE(never_varied(0, 1e-30));
  EXPECT_FALSE(never_varied(1e8, 1e-3));
  EXPECT_FALSE(never_varied(1, NAN));  // one block alone: unknown for another reason
  // A smooth indicator of a region that no draw was in has a tail, and that an error.
  EXPECT_TRUE(never_varied("probability_mode[1]", 1e-26, 9e-27, 1e5));
  EXPECT_TRUE(never_varied("probability_mode[0]", 1 - 1e-9, 1e-10, 1e5));
  EXPECT_FALSE(never_varied("probability_mode[1]", 1e-3, 1e-4, 1e5));
  EXPECT_FALSE(never_varied("tau", 1e-26, 9e-27, 1e5));
}

// Known points (--init FILE). Two modes of which the scout finds one: what a user knows must reach the base.

Job two_modes(const std::string& sds, const std::string& init, int dim, std::int64_t iterations) {
  const auto point = [&](int at) {
    std::string text;
    for (int i = 0; i < dim; ++i) text += (i ? "," : "[") + std::to_string(at);
    return text + "]";
  };
  Job job{.target = "mixture",
          .iterations = iterations,
          .chains = 256,
          .init = init,
          .replicates = 1,
          .data = "{\"means\": [" + point(0) + "," + point(40) + "], \"weights\": [0.6, 0.4], \"sds\": [" +
                  sds + "]}"};
  return job;
}

TEST(KnownStarts, FeedTheBaseSoThatTheAnswerIsRight) {
  const std::string file = ::testing::TempDir() + "known-starts.json";
  write_atomically(file, "{\"x\": [[0, 0], [40, 40]]}");
  const testing::Outcome o = testing::run(two_modes("1, 1", file, 2, 600));
  EXPECT_THAT(o.failed(0), IsEmpty());
  EXPECT_NEAR(o.units[0].mean[0], 16, 5 * o.units[0].mean_se[0]);
  EXPECT_LT(o.units[0].mean_se[0], 1);
  EXPECT_NEAR(o.result.log_z[0].estimate, 0, 5 * o.result.log_z[0].se);
  // The base that was learned covers both modes.
  EXPECT_NEAR(o.result.frozen.base_mean[0], 16, 8);
  EXPECT_GT(o.result.frozen.base_sd[0], 15);
}

TEST(KnownStarts, WhereNoChainCanGoBetweenThemTheRunFails) {
  // A mode of width .05 in ten dimensions is beyond any tempering from a base as wide as the modes are apart.
  const std::string file = ::testing::TempDir() + "known-narrow.json";
  write_atomically(file, "{\"x\": [[0,0,0,0,0,0,0,0,0,0], [40,40,40,40,40,40,40,40,40,40]]}");
  Job job = two_modes("1, 0.05", file, 10, 150);
  job.warmup = 150;
  job.chains = 64;
  const testing::Outcome o = testing::run(job);
  EXPECT_THAT(o.failed(0), Contains("rhat"));
}

TEST(KnownStarts, AllPseudoSamplesOfAChainStandAtOneAndSuperchainsTakeThemInTurn) {
  const std::string file = ::testing::TempDir() + "known-starts.json";
  write_atomically(file, "{\"x\": [[0, 0], [40, 40]]}");
  Job job = two_modes("1, 1", file, 2, 100);
  const auto target = build_target(testing::run_of(job));
  const RunOptions run = testing::run_of(job);
  const SamplerConfig config = sampler_config(run, 2, target->tails());
  const RunContext context = make_context(run, *target, "test");
  const auto engine = target->engine(engine_spec(context, config.model, {0}, 6));
  const std::vector<std::uint32_t> units = {0};
  const std::vector<int> superchain = {0, 0, 1, 1, 2, 2};
  const auto known = read_starts(file, 2);
  const auto x =
      starts(context, *engine, {run.init, config.model.box, units, ScoutResult(), known, superchain});
  for (int c = 0; c < 6; ++c)
    for (int row = 0; row < engine->samples() * 2; ++row)
      EXPECT_EQ(x[std::size_t(row) * 6 + c], superchain[c] % 2 == 0 ? 0 : 40) << row << ", " << c;
}

}  // namespace
}  // namespace lockstep
