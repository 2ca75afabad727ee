// SPDX-License-Identifier: Apache-2.0
#include "host/runs/weighted_draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "host/commands/evidence.hpp"
#include "host/options/target_input.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

class WeightedDrawsTest : public testing::FolderTest {
 protected:
  Json read() { return Json::parse(testing::run_python("read_draws.py", folder_ / "draws.nc")); }
};

/// Two groups of two chains, three draws; the value says where a state stands: 100 group + 10 chain + draw.
TEST_F(WeightedDrawsTest, PosteriorIsResampledWithinGroupsByWeight) {
  WeightedDraws stored;
  stored.dim = 1;
  const double weight[3][4] = {{1, 0, 2, 2}, {1, 2, 2, 2}, {0, 0, 2, 2}};
  for (int t = 0; t < 3; ++t) {
    std::vector<double> x, log_weight;
    for (int c = 0; c < 4; ++c) {
      x.push_back(100 * (c / 2) + 10 * (c % 2) + t);
      log_weight.push_back(std::log(weight[t][c]));
    }
    stored.add(x, log_weight);
  }
  RunOptions run;
  run.target = "gaussian";
  run.target_settings = {{"dim", 1}};
  const auto target = build_target(run);
  write_weighted_draws(folder_ / "draws.nc", stored, *target, 2, {1, 2}, {kAllDraws, true, {{"seed", "1"}}});
  const Json found = read();
  EXPECT_NE(found["posterior"]["attributes"]["resampled"], "");
  // Effective sizes: 16 / 6 in the first group, 6 in the second.
  EXPECT_EQ(found["posterior"]["dims"], Json({{"chain", 2}, {"draw", 2}, {"x_dim_0", 1}}));
  const auto x = found["posterior"]["variables"]["x"]["values"].get<std::vector<double>>();
  ASSERT_EQ(x.size(), 4u);
  for (int p = 0; p < 2; ++p) {
    EXPECT_TRUE(x[p] == 0 || x[p] == 1 || x[p] == 11) << x[p];
    EXPECT_GE(x[2 + p], 100);
  }
  EXPECT_TRUE(x[0] == 11 || x[1] == 11);  // half of the group's weight
  EXPECT_EQ(found["weighted"]["dims"],
            Json({{"chain", 4}, {"draw", 3}, {"pseudo_sample", 1}, {"x_dim_0", 1}}));
  EXPECT_EQ(found["weighted"]["variables"]["x"]["values"],
            Json({0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112}));
  EXPECT_NEAR(found["weighted"]["variables"]["log_weight"]["values"][4], std::log(2), 1e-12);
  // Of two draws at most, one a group; and the states are not kept unless they are asked for.
  write_weighted_draws(folder_ / "draws.nc", stored, *target, 2, {1, 2}, {3});
  const Json few = read();
  EXPECT_EQ(few["posterior"]["dims"], Json({{"chain", 2}, {"draw", 1}, {"x_dim_0", 1}}));
  EXPECT_FALSE(few.contains("weighted"));
}

TEST_F(WeightedDrawsTest, EveryMethodStoresDrawsOfTheTarget) {
  for (const char* method : {"auto", "ct-gibbs", "ct-joint", "extended", "pt", "smc", "ais"}) {
    RunOptions run;
    run.command = "evidence";
    run.target = "two_modes";
    run.target_settings = {{"dim", 3}};
    run.sampler = method;
    run.gradients = 6e5;
    run.chains = 0;
    run.device = "cpu";
    run.quiet = true;
    run.draws = kAllDraws;
    run.force = true;
    run.out = folder_;
    evidence(run);
    const Json found = read();
    const int chains = found["posterior"]["dims"]["chain"], draws = found["posterior"]["dims"]["draw"];
    EXPECT_EQ(chains, 8) << method;
    ASSERT_GE(draws, 20) << method;
    const auto x = found["posterior"]["variables"]["x"]["values"].get<std::vector<double>>();
    double positive = 0;
    for (std::size_t k = 0; k < x.size(); k += 3) positive += x[k] > 0;
    // Far from 1/2, as weights that were forgotten would not be: the base is symmetric about the middle.
    EXPECT_NEAR(positive / double(chains * draws), 0.7, 5 * std::sqrt(0.21 / (chains * draws)) + 0.05)
        << method;
  }
}

}  // namespace
}  // namespace lockstep
