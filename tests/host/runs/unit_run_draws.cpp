// SPDX-License-Identifier: Apache-2.0
#include "host/runs/run_draws.hpp"

#include <nlohmann/json.hpp>

#include "host/runs/chain_run.hpp"
#include "tests/support/run_python.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;
using Json = nlohmann::json;

class RunDraws : public FolderTest {};

TEST(QuantitiesOfDraws, AreVariablesByTheirNames) {
  const auto target = build_target(run_of({.target = "eight_schools"}));
  std::vector<float> x(2 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(0.1 * double(i) - 0.7);
  const auto found = quantities_of(*target);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "tau");
  EXPECT_EQ(found[0].size, 0);
  EXPECT_EQ(found[1].name, "theta");
  EXPECT_EQ(found[1].size, 8);
  std::vector<float> values(2 * 9);
  quantity_values(*target, source_of(x, 2, 10), 2)({0, 1, 0, 2}, values.data());
  for (int k = 0; k < 2; ++k) {
    EXPECT_NEAR(values[9 * k], std::exp(x[10 * k + 1]), 1e-6);
    for (int j = 0; j < 8; ++j)
      EXPECT_NEAR(values[9 * k + 1 + j], x[10 * k] + std::exp(x[10 * k + 1]) * x[10 * k + 2 + j], 1e-6);
  }
  EXPECT_TRUE(quantities_of(*build_target(run_of({.target = "banana"}))).empty());
}

/// A limited number of draws is a stretch of all of them, of chains from different starts; the moments do not
/// depend on which are stored.
TEST_F(RunDraws, AFewAreAStretchOfAll) {
  const Job job{.target = "eight_schools", .sampler = "hmc", .iterations = 700, .chains = 32, .warmup = 100};
  const auto target = build_target(run_of(job));
  RunOptions r = run_of(job);
  const auto config = sampler_config(r, target->dim(), target->tails());
  const auto run_with = [&](std::int64_t draws, int thin) {
    r.draws = draws;
    r.thin = thin;
    return run_chains(make_context(r, *target, ""), config, {r, {0}});
  };
  const auto none = run_with(0, 1), all = run_with(kAllDraws, 1);
  for (const int thin : {1, 3}) {
    auto few = run_with(100, thin);
    EXPECT_EQ(few.units[0].sums, none.units[0].sums);
    EXPECT_EQ(few.units[0].sums, all.units[0].sums);
    EXPECT_EQ(few.draws.chains, (std::vector<int>{0, 8, 16, 24}));
    ASSERT_EQ(few.draws.draws, 25);
    EXPECT_EQ(few.draws.first, (699 / thin - 24) * thin);
    const auto x = few.draws.x(), all_x = all.draws.x();
    const auto energy = few.draws.values(draw_energy), density = few.draws.values(draw_log_density),
               diverging = few.draws.values(draw_diverging), all_energy = all.draws.values(draw_energy),
               all_diverging = all.draws.values(draw_diverging);
    for (int k = 0; k < 4; ++k)
      for (int t = 0; t < 25; ++t) {
        const std::int64_t at = few.draws.chains[k] * 700 + few.draws.first + t * thin, here = k * 25 + t;
        for (int i = 0; i < 10; ++i) ASSERT_EQ(x[here * 10 + i], all_x[at * 10 + i]);
        ASSERT_EQ(energy[here], all_energy[at]);
        ASSERT_EQ(diverging[here], all_diverging[at]);
        EXPECT_GT(energy[here] + density[here], -1e-4) << "the kinetic energy";
      }
    EXPECT_TRUE(few.draws.log_weight.empty());
    write_run_draws(folder_ / "draws.nc", few, r, make_context(r, *target, ""), config);
    const Json file = Json::parse(run_python("read_draws.py", folder_ / "draws.nc"));
    EXPECT_FALSE(file.contains("weighted"));
    const Json& posterior = file["posterior"];
    EXPECT_EQ(posterior["dims"], (Json{{"chain", 4}, {"draw", 25}, {"x_dim_0", 10}, {"theta_dim_0", 8}}));
    EXPECT_EQ(posterior["variables"]["x_dim_0"]["values"][1], "log_tau");
    EXPECT_EQ(posterior["variables"]["tau"]["dims"], (Json{"chain", "draw"}));
    EXPECT_EQ(posterior["variables"]["theta"]["dims"], (Json{"chain", "draw", "theta_dim_0"}));
    const Json& stats = file["sample_stats"]["variables"];
    EXPECT_TRUE(stats["diverging"]["flag"]);
    EXPECT_EQ(stats["energy"]["values"].size(), 100u);
    const Json& attributes = posterior["attributes"];
    EXPECT_EQ(attributes["chains_kept"], Json({0, 8, 16, 24}));
    EXPECT_EQ(attributes["chains_run"], 32);
    EXPECT_EQ(attributes["first_iteration"], (699 / thin - 24) * thin);
    EXPECT_EQ(attributes["thin"], thin);
    EXPECT_EQ(attributes["iterations"], 700);
  }
}

}  // namespace
}  // namespace lockstep
