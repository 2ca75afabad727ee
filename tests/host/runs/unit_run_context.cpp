// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "host/commands/check.hpp"
#include "host/modes/mode_search.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/errors.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/peak.hpp"

namespace lockstep {
namespace {

RunOptions options_for(const std::string& target, Settings settings = Settings::object()) {
  RunOptions run;
  run.target = target;
  run.target_settings = std::move(settings);
  run.device = "cpu";
  run.quiet = true;
  return run;
}

TEST(RunContext, TakesOverTheOptions) {
  RunOptions run = options_for("gaussian");
  const auto target = build_target(run);
  run.threads = 3;
  run.seed = 99;
  const RunContext c = make_context(run, *target, "label");
  EXPECT_EQ(c.target, target.get());
  EXPECT_EQ(c.threads, 3);
  EXPECT_FALSE(c.cuda);
  EXPECT_EQ(c.key.k0, make_stream_key(99, "label").k0);
  EXPECT_EQ(c.key.k1, make_stream_key(99, "label").k1);
  const RunContext other = make_context(run, *target, "");
  EXPECT_FALSE(other.key.k0 == c.key.k0 && other.key.k1 == c.key.k1);
  EXPECT_NO_THROW(c.tell("nothing", 0.5));  // silent until somebody listens

  for (const auto& [name, precision] :
       {std::pair{"single", Precision::single}, std::pair{"mixed", Precision::mixed},
        std::pair{"double", Precision::double_}}) {
    run.precision = name;
    EXPECT_EQ(make_context(run, *target, "").precision, precision);
  }
  run.threads = 0;
  EXPECT_EQ(make_context(run, *target, "").threads, default_threads());
}

TEST(RunContext, AskedForAGpuItIsThereOrAnError) {
  RunOptions run = options_for("gaussian");
  const auto target = build_target(run);
  run.device = "cuda";
  try {
    const RunContext c = make_context(run, *target, "");
    EXPECT_TRUE(c.cuda);
    EXPECT_EQ(device_name(c).find("cpu"), std::string::npos);
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("--device cpu"), std::string::npos);
  }
  run.device = "auto";
  EXPECT_NO_THROW(make_context(run, *target, ""));
}

TEST(RunContext, DeviceNameTellsTheInstructionSet) {
  RunContext c;
  EXPECT_EQ(device_name(c), std::string("cpu (") + cpu_isa() + ")");
}

TEST(RunContext, ProgressWithoutATerminalIsSilent) {
  ::testing::internal::CaptureStderr();
  for (bool quiet : {false, true}) {
    const auto progress = progress_printer(quiet, "test");
    for (double share : {0.0, 0.5, 1.0, 2.0})
      if (progress->tell("stage", share)) progress->show({});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

/// The plan of a normal target of the dimension of the size.
double planned_bytes(const ModelSpec& model, const RunSize& size) {
  const auto target = build_target(options_for("gaussian", {{"dim", size.dim}}));
  RunContext c;
  c.target = target.get();
  const MemoryPlan plan = planned_memory(c, model, size);
  EXPECT_EQ(plan.device, 0);
  return plan.host;
}

TEST(Memory, PlanGrowsWithWhatIsKept) {
  ModelSpec plain, pe;
  pe.kind = ModelKind::pseudo_extended;
  pe.pseudo_samples = 5;
  const auto with = [](auto change) {
    RunSize size;
    size.dim = 10;
    change(size);
    return size;
  };
  const RunSize one = with([](RunSize&) {}), crowd = with([](RunSize&s) { s.crowd = 1000; });
  const double least = planned_bytes(plain, one);
  EXPECT_GT(least, 8 * 3 * 10);  // position, gradient and momentum at least
  EXPECT_GT(planned_bytes(pe, crowd), planned_bytes(plain, crowd) + 1000 * 8 * 2 * 40);
  EXPECT_GT(planned_bytes(plain, with([](RunSize& s) { s.dim = 20; })), 1.5 * least);
  EXPECT_GT(planned_bytes(plain, with([](RunSize& s) { s.units = 64; })), 32 * least);  // of whole tiles
  EXPECT_GT(planned_bytes(plain, with([](RunSize& s) { s.covariance = true; })), least + 8 * 45 * 128);
  // The scout's particles, of every unit that adapts: position, gradient, and copies to resample from and to.
  const RunSize scouted = with([](RunSize& s) { s.particles = 2048, s.adapting_units = 20; });
  EXPECT_GT(planned_bytes(plain, scouted), 20 * 2048 * 8 * 10 * 4);
  // Stored draws: 4 bytes a coordinate, for pseudo-samples x, log weight and beta of each in double; and once
  // more in a checkpoint.
  const RunSize stored = with([](RunSize& s) { s.stored_draws = 1000, s.weighted_draws = true; });
  EXPECT_GE(planned_bytes(plain, stored) - least, 2 * 4 * 10 * 1000);
  EXPECT_GE(planned_bytes(pe, stored) - planned_bytes(pe, one), 2 * (4 * 10 + 8 * 5 * 12) * 1000);
  ModelSpec dense = plain;
  dense.dense_metric = true;
  EXPECT_GE(planned_bytes(dense, crowd) - planned_bytes(plain, crowd), 1000 * 4 * 55);
  // Chains and draws are counted in double: nothing wraps around.
  const RunSize vast = with([](RunSize& s) { s.chains = std::int64_t(1) << 31, s.stored_draws = 0x1p62; });
  EXPECT_GT(planned_bytes(pe, vast), 1e20);
}

TEST(Memory, SizeOfARun) {
  RunOptions run;
  run.chains = 4;
  run.draws = kAllDraws;
  run.thin = 10;
  run.iterations = 1000;
  SamplerConfig config;
  RunSize size = run_size(run, config, 3, 2, false);
  EXPECT_EQ(size.adapting_units * size.crowd, 2 * 32);
  EXPECT_EQ(size.particles, 2048);
  EXPECT_EQ(size.stored_draws, 4 * 101);
  size = run_size(run, config, 3, 20, true);  // all adapt as one
  EXPECT_EQ(size.adapting_units * size.crowd, 80);
  // A budget of gradients buys as many iterations as it has steps, whatever --iterations says.
  run.gradients = 4e6;
  EXPECT_EQ(run_size(run, config, 3, 1, false).stored_draws, 4 * 100001);
  run.draws = 1000;  // as many of all chains together
  EXPECT_EQ(run_size(run, config, 3, 1, false).stored_draws, 1000);
  run.init = "uniform:1";
  EXPECT_EQ(run_size(run, config, 3, 1, false).particles, 0);
  config.instrument = SamplerConfig::Instrument::bridge;
  EXPECT_EQ(run_size(run, config, 3, 1, false).particles, 2048);
}

TEST(Scout, IsAnnouncedInThousandsOfDimensionsAlone) {
  const auto said = [](int dim, std::int64_t particles, bool quiet) {
    RunOptions run;
    run.quiet = quiet;
    RunSize size;
    size.dim = dim;
    size.adapting_units = 2;
    size.particles = particles;
    ::testing::internal::CaptureStderr();
    say_scout(run, size);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string text = said(4003, 2048, false);  // 200 levels of 3 moves of 4 steps, of two replicates
  EXPECT_NE(text.find("4003 dimensions: 9.8e+06 gradients"), std::string::npos) << text;
  EXPECT_NE(text.find("sampler.instrument=tempered"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(said(kMostSearchedDim, 2048, false), "");
  EXPECT_EQ(said(4003, 0, false), "");
  EXPECT_EQ(said(4003, 2048, true), "");
}

TEST(Memory, TooMuchIsAnErrorBeforeAnythingRuns) {
  try {
    check_memory({1e18, 0}, true);
    FAIL() << "an exabyte was granted";
  } catch (const UserError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.find("931322574.6 GiB"), std::string::npos) << text;
    EXPECT_NE(text.find("--chains"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(check_memory({1e6, 0}, true));
  ::testing::internal::CaptureStderr();
  check_memory({1048576 * 2.5, 0}, false);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("2.5 MiB"), std::string::npos);
}

TEST(Units, NumbersOfChains) {
  EngineSpec spec;
  number_chains(spec, {7, 3}, 3);
  EXPECT_EQ(spec.chain, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(spec.unit, (std::vector<std::uint32_t>{7, 7, 7, 3, 3, 3}));
  number_chains(spec, {1}, 1);
  EXPECT_EQ(spec.chain.size(), 1u);
}

TEST(Units, ChainsOfAUnitWhereNumbersAreMoreThanAnIntCounts) {
  EXPECT_EQ(chains_of_unit(80, 2), 40);
  EXPECT_EQ(chains_of_unit(80, 2 * 3, 3), 40);
  EXPECT_EQ(chains_of_unit(1'000'000, 2211, 2211), 1'000'000);  // 2.2e9 numbers of the chains
  EXPECT_EQ(chains_of_unit(1'000'000, std::size_t(1'000'000) * 2211, 2211), 1);
}

TEST(Units, MeansOfEachUnit) {
  // Two rows of four chains, two units.
  EXPECT_EQ(unit_means({1, 3, 5, 9, 10, 20, 30, 50}, 0, 4, 2), (std::vector<double>{2, 7}));
  EXPECT_EQ(unit_means({1, 3, 5, 9, 10, 20, 30, 50}, 1, 4, 2), (std::vector<double>{15, 40}));
}

TEST(Units, ParametersReachTheirOwnChains) {
  // On a path the cached log density is beta (l - log zeta) + (1 - beta) base: read the parameters off it.
  const auto target = build_target(options_for("gaussian", {{"dim", 2}}));
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.precision = Precision::double_;
  number_chains(spec, {0, 1}, 40);  // more than one tile of 32
  const auto engine = target->engine(spec);
  set_per_unit(*engine, ParameterLayout::beta, {0.25, 1});
  set_per_unit(*engine, ParameterLayout::log_zeta, {8, -8});
  set_axis(*engine, engine->layout().base_mean(), {1, 2, 3, 4}, 2);
  set_axis(*engine, engine->layout().base_inv_sd(), {1, 0.5, 1, 1}, 2);
  set_per_unit(*engine, ParameterLayout::base_log_norm, {0.75, 0});
  engine->set_position(std::vector<double>(160, 0.0));
  engine->initialize();
  const auto cache = engine->cache();
  const double l = -std::log(2 * kPi), base[2] = {0.75 - 0.5 * (1 + 1), -0.5 * (9 + 16)}, zeta[2] = {8, -8};
  for (int c = 0; c < 80; ++c) {
    const int u = c / 40;
    const double beta = u == 0 ? 0.25 : 1;
    EXPECT_NEAR(cache[c], beta * (l - zeta[u]) + (1 - beta) * base[u], 1e-12) << c;
    EXPECT_NEAR(cache[80 + c], base[u] - (l - zeta[u]), 1e-12) << c;
  }
}

TEST(Peak, IsMeasured) {
  EXPECT_GE(default_threads(), 1);
  EXPECT_GE(cpu_register_floats(), 4);
  const double single = fma_peak_gflops(false, 1), full = fma_peak_gflops(true, 1);
  // Half a core's bare minimum to well above any core of today.
  EXPECT_GT(single, 0.5);
  EXPECT_LT(single, 2000);
  EXPECT_GT(full, 0.25);
  EXPECT_LT(full, 1.5 * single);  // half as many lanes; loose, for other work disturbs it
}

// In a process of their own: the flag stays up.
TEST(InterruptDeathTest, FirstSignalRaisesTheFlagSecondEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          catch_interrupts();
          const bool before = interrupted();
          std::raise(signal);
          std::_Exit(!before && interrupted() ? 42 : 1);
        },
        ::testing::ExitedWithCode(42), "");
    EXPECT_EXIT(
        {
          catch_interrupts();
          std::raise(signal);
          std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // two in an instant count as one
          std::raise(signal);
          std::_Exit(1);
        },
        ::testing::KilledBySignal(signal), "");
  }
  EXPECT_FALSE(interrupted());
}

class CheckTarget : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CheckTarget, Passes) {
  RunOptions run = options_for(std::get<0>(GetParam()));
  run.precision = std::get<1>(GetParam());
  ::testing::internal::CaptureStdout();
  const bool good = check_target(run);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_TRUE(good) << text;
  for (const char* part : {"gradient     ok", "lanes        ok", "invariance   ok"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}
INSTANTIATE_TEST_SUITE_P(InDouble, CheckTarget,
                         ::testing::Combine(::testing::Values("gaussian", "mixture20", "bimodal", "banana",
                                                              "flower"),
                                            ::testing::Values("double")));
INSTANTIATE_TEST_SUITE_P(Mixed, CheckTarget,  // others in unit_check.cpp
                         ::testing::Combine(::testing::Values("bimodal", "flower"),
                                            ::testing::Values("mixed")));

TEST(CheckTarget, UnknownTargetIsAnError) { EXPECT_THROW(check_target(options_for("nothing")), UserError); }

}  // namespace
}  // namespace lockstep
