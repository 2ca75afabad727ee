// SPDX-License-Identifier: Apache-2.0
// Whole runs of `lockstep evidence` with a failure planted that one gate should see.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/commands/evidence.hpp"
#include "host/options/target_input.hpp"
#include "host/runs/known_modes.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"

namespace lockstep::evidence_gates_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Names = std::vector<std::string>;

RunOptions options(const std::string& target, const std::string& method, double gradients,
                   std::uint64_t seed = 1) {
  RunOptions r;
  r.command = "evidence";
  r.target = target;
  r.sampler = method;
  r.gradients = gradients;
  r.chains = 0;
  r.seed = seed;
  r.device = "cpu";
  r.quiet = true;
  return r;
}
nlohmann::ordered_json run(const RunOptions& r) { return to_json(std::get<EvidenceResult>(evidence(r))); }
Names failed(const RunOptions& r) { return run(r)["failed_gates"].get<Names>(); }

/// Two modes in d dimensions, at the origin and at (apart, 0, ..), of weights .7 and .3, as a file.
std::string two_modes(int d, double apart, double sd_of_second) {
  nlohmann::json data;
  std::vector<double> mean(d, 0.0);
  data["means"] = {mean, mean};
  data["means"][1][0] = apart;
  data["weights"] = {0.7, 0.3};
  data["sds"] = {1.0, sd_of_second};
  const std::string name = ::testing::TempDir() + fmt::format("two-{}-{}-{}.json", d, apart, sd_of_second);
  write_atomically(name, data.dump());
  nlohmann::json init;
  init["x"] = data["means"];
  write_atomically(name + ".init.json", init.dump());
  return name;
}

TEST(Length, WhatIsTooShortIsNotEstablished) {
  for (const char* method : {"st", "auto", "pt", "ct-gibbs", "smc", "ais", "bdmc"}) {
    const auto s = run(options("mixture20", method, 3e3));
    EXPECT_EQ(s["verdict"], "not established") << method;
    EXPECT_THAT(s["failed_gates"].get<Names>(), Contains("length")) << method;
  }
}

TEST(SmcGates, SeeFewAncestorsAndParticles) {
  // 1e5 gradients pay for some 40 particles a group, of which few have descendants.
  RunOptions few = options("mixture20", "smc", 1e5);
  few.sampler_settings = {{"base", "scout"}};  // from the modes there are enough
  EXPECT_THAT(failed(few), Contains("ancestors"));
  EXPECT_THAT(failed(options("mixture20", "smc", 1e7)), IsEmpty());
}

TEST(LadderGates, FewRoundTripsFail) {
  EXPECT_THAT(failed(options("mixture20", "pt", 1e5)), Contains("round_trips"));
  EXPECT_THAT(failed(options("mixture20", "pt", 3e6)), IsEmpty());
}

TEST(BothWays, ModesThatOnlyTheReverseRunsMeetFail) {
  // The scout's particles never see a mode of width .05 in ten dimensions; exact draws do.
  RunOptions r = options("mixture", "bdmc", 1e6);
  r.data = two_modes(10, 12, 0.05);
  EXPECT_THAT(failed(r), Contains("estimators_disagree"));
  EXPECT_THAT(failed(options("mixture20", "bdmc", 1e6)), IsEmpty());
}

TEST(KnownStartsOfEvidence, AreRightOrFail) {
  RunOptions wide = options("mixture", "st", 1e6);
  wide.data = two_modes(5, 20000, 1);
  EXPECT_GT(std::abs(run(wide)["log_z"]["estimate"].get<double>()), 0.3);  // the scout alone finds one mode
  wide.init = wide.data.string() + ".init.json";
  const auto found = run(wide);
  EXPECT_EQ(found["verdict"], "pass") << found["failed_gates"];
  EXPECT_NEAR(found["log_z"]["estimate"].get<double>(), 0, 5 * found["log_z"]["se"].get<double>());
  for (const char* method : {"st", "pt", "ais", "ct-gibbs"}) {
    RunOptions narrow = options("mixture", method, 1e6);
    narrow.data = two_modes(10, 40, 0.05);
    narrow.init = narrow.data.string() + ".init.json";
    narrow.sampler_settings = {{"mode_jumps", false}, {"base", "scout"}};
    EXPECT_THAT(failed(narrow), Contains("starts")) << method;
    narrow.sampler_settings = {};
    const auto jumping = run(narrow);
    const auto& z = jumping["log_z"];
    EXPECT_TRUE(jumping["verdict"] == "fail" ||
                std::abs(z["estimate"].get<double>()) < 5 * z["se"].get<double>())
        << method << z;
  }
}

TEST(KnownStartsOfEvidence, ShortChainsThatSeldomChangeModesFail) {
  RunOptions r = options("mixture", "pe", 1e6);
  r.data = two_modes(1, 8, 0.1);
  r.init = r.data.string() + ".init.json";
  r.chains = 16;
  for (const int iterations : {100, 127, 200}) {
    r.iterations = iterations;
    r.sampler_settings = {{"mode_jumps", false}, {"base", "scout"}};
    EXPECT_THAT(failed(r), Contains("rhat")) << iterations;
    r.sampler_settings = {};  // from a base of modes they change
    const auto jumping = run(r);
    EXPECT_EQ(jumping["verdict"], "pass") << iterations << jumping["failed_gates"];
    EXPECT_NEAR(jumping["log_z"]["estimate"].get<double>(), 0, 0.1) << iterations;
  }
}

TEST(KnownModes, AreClimbedToMergedAndWeighed) {
  RunOptions r = options("mixture", "st", 1e5);
  r.data = two_modes(3, 12, 0.05);
  const auto target = build_target(r);
  const Eigen::Vector3d near(0.8, -0.5, 0.3), same(-1, 1, 0), other(12.06, 0.02, -0.03);
  double gradients = 0;
  const auto modes = known_modes(*target, {near, same, other}, gradients);
  ASSERT_EQ(modes.size(), 2u);
  EXPECT_GT(gradients, 3 * 2 * 3);  // of three climbs and two curvatures, by differences
  EXPECT_LT(gradients, 3 * (500 + 2 * 3));
  EXPECT_LT(modes[0].x.norm(), 1e-3);
  EXPECT_NEAR(modes[1].x[0], 12, 1e-4);
  // Laplace's approximation of a normal is exact, but for differences of gradients.
  EXPECT_NEAR(modes[0].log_mass, std::log(0.7), 1e-3);
  EXPECT_NEAR(modes[1].log_mass, std::log(0.3), 1e-3);
  WeightedDraws draws;
  draws.dim = 3;
  draws.add({0.5, 0.1, 0, 0, 0, 0}, {-1, -2});  // two states near the first mode
  EXPECT_EQ(unvisited_modes(modes, 0, draws, {1, 1, 1}), std::vector<int>{1});
  EXPECT_THAT(unvisited_modes(modes, 10, draws, {1, 1, 1}), IsEmpty());  // it holds e^-11 of that
  draws.add({11.9, 0.1, 0, 0, 0, 0}, {-3, -2});
  EXPECT_THAT(unvisited_modes(modes, 0, draws, {1, 1, 1}), IsEmpty());
}

TEST(KnownModes, SharePointsOutAsTheirMassesAre) {
  const std::vector<KnownMode> modes = {{{}, std::log(0.75), {0, 2}}, {{}, std::log(0.25), {1}}};
  std::vector<int> count(4, 0);
  const auto dealt = deal_points(modes, 4, 40);  // the last point leads nowhere: once is enough
  for (int p : dealt) ++count[p];
  EXPECT_EQ(count, (std::vector<int>{15, 10, 14, 1}));
  for (int p = 0; p < 4; ++p) EXPECT_EQ(dealt[p], p);  // whatever their masses, each point is tried
  EXPECT_EQ(deal_points(modes, 4, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(deal_points({}, 2, 5), (std::vector<int>{0, 1, 0, 1, 0}));
}

TEST(KnownModes, AFunnelHasNone) {
  RunOptions r = options("eight_schools", "st", 1e5);
  const auto target = build_target(r);
  double gradients = 0;
  EXPECT_NO_THROW(known_modes(*target, {Eigen::VectorXd::Zero(target->dim())}, gradients));
}

TEST(UnusedOptions, AreRefusedByName) {
  const auto complaint = [](const std::function<void(RunOptions&)>& change, const std::string& method = "st",
                            const std::string& target = "gaussian") {
    RunOptions r = options(target, method, 1e5);
    change(r);
    try {
      run(r);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint([](RunOptions& r) { r.warmup = 50; }),
              HasSubstr("--warmup has no effect on method st"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.said = {"warmup"}; }),
              HasSubstr("--warmup has no effect on method st"));
  EXPECT_THAT(
      complaint([](RunOptions& r) { r.said = {"init_scale"}, r.sampler_settings["base"] = "gaussian"; }),
      HasSubstr("--init-scale has no effect on base gaussian"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.thin = 10; }), HasSubstr("--thin has no effect on method st"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.warmup_draws = true; }),
              HasSubstr("--warmup-draws has no effect"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.paper_settings = true; }), HasSubstr("--paper-settings"));
  for (const char* method : {"ais", "bdmc", "smc"})
    EXPECT_THAT(complaint([](RunOptions& r) { r.chains = 64; }, method),
                HasSubstr("--chains goes with methods whose"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.init = "uniform:3"; }), HasSubstr("sampler.base=warmup"));
  EXPECT_THAT(complaint([](RunOptions& r) { r.init_scale = 3, r.sampler_settings["base"] = "gaussian"; }),
              HasSubstr("--init-scale has no effect on base gaussian"));
  EXPECT_THAT(
      complaint([](RunOptions& r) { r.init_scale = 3, r.target_settings["units"] = 4; }, "st", "boltzmann"),
      HasSubstr("base mean-field"));
  EXPECT_EQ(complaint([](RunOptions& r) { r.init_scale = 3; }), "");
  EXPECT_THAT(
      complaint([](RunOptions& r) { r.sampler_settings["instrument"] = "fixed", r.init = "uniform:2"; },
                "pe"),
      HasSubstr("needs the bridge"));
  EXPECT_THAT(complaint([](RunOptions& r) {
                r.init = "uniform:2", r.init_scale = 3, r.sampler_settings["base"] = "warmup";
              }),
              HasSubstr("--init-scale has no effect on base warmup"));
  const auto given = [&](Settings settings, const std::string& method = "st") {
    return complaint([&](RunOptions& r) { r.sampler_settings.update(settings); }, method);
  };
  EXPECT_THAT(given({{"pilot_share", 0.3}}, "smc"), HasSubstr("pilot_share of method smc has no effect"));
  EXPECT_EQ(given({{"pilot_share", 0.3}}), "");
  for (const char* key : {"scout_particles", "base_starts", "base_inflation"})
    EXPECT_THAT(given({{"base", "gaussian"}, {key, 100}}),
                HasSubstr(std::string(key) + " has no effect on base gaussian"));
  EXPECT_THAT(given({{"base", "mixture"}, {"scout_particles", 100}}), HasSubstr("base mixture"));
  EXPECT_EQ(given({{"base", "gaussian"}, {"bootstrap", 1}, {"base_inflation", 1.5}}), "");
  EXPECT_EQ(complaint([](RunOptions& r) { r.warmup = 150; }, "pe"), "");
}

}  // namespace
}  // namespace lockstep::evidence_gates_test
