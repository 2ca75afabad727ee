// SPDX-License-Identifier: Apache-2.0
#include "host/runs/chain_run.hpp"
#include "host/runs/draw_figures.hpp"

#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(DrawFigures, KeepAsMuchAsIsCheap) {
  const auto iterations = [](int dim, int chains) {
    const auto target =
        build_target(run_of({.target = "gaussian", .sampler = "hmc", .target_settings = {{"dim", dim}}}));
    return overview_iterations(*target, chains);
  };
  EXPECT_EQ(iterations(2, 256), 2048);    // 2^20 numbers
  EXPECT_EQ(iterations(1000, 256), 64);   // 2^14 of each parameter
  EXPECT_EQ(iterations(40, 65536), 12);   // of which trebled strides leave the least that R-hat takes
  EXPECT_EQ(iterations(1000, 65536), 0);  // too much to keep unasked
}

/// Figures of the overview are those of all draws as long as it holds them all; they are near where it holds
/// one in four. Quantities come after coordinates.
TEST(DrawFigures, AreOfAllChains) {
  const Job job{.target = "eight_schools", .sampler = "hmc", .iterations = 1024, .chains = 64};
  const auto target = build_target(run_of(job));
  RunOptions r = run_of(job);
  const auto figures = [&](std::int64_t draws, std::int64_t overview) {
    ChainRunOptions options{r, {0}};
    options.draws = draws;
    options.overview = overview;
    const SamplerConfig config = sampler_config(r, 10, target->tails());
    return draw_figures(*target, run_chains(make_context(r, *target, ""), config, options), config, 1, 2,
                        true);
  };
  const DrawFigures all = figures(kAllDraws, 0), seen = figures(0, 1024), some = figures(0, 300);
  ASSERT_EQ(all.of.size(), 19u);
  EXPECT_EQ(all.draws, 1024);
  EXPECT_EQ(some.draws, 114);
  EXPECT_EQ(some.every, 9);
  EXPECT_EQ(seen.log_density_rhat, all.log_density_rhat);
  ASSERT_EQ(all.lost.least.mean.size(), 10u);
  EXPECT_EQ(seen.lost.least.second, all.lost.least.second);
  EXPECT_GT(all.log_density_rhat, 1.01);  // of 16 independent draws sqrt(1 + 1 / 16)
  EXPECT_LT(all.log_density_rhat, 1.05);
  for (std::size_t i = 0; i < 19; ++i) {
    EXPECT_EQ(seen.of[i].rhat, all.of[i].rhat);
    EXPECT_EQ(seen.of[i].ess_bulk, all.of[i].ess_bulk);
    EXPECT_EQ(seen.of[i].q95, all.of[i].q95);
    EXPECT_GT(all.of[i].q50, all.of[i].q5);
    // A quantile's probability has the standard error sqrt(p (1 - p) / n) of n independent draws; 5 of them,
    // in units of the density, which is above 0.05 / sd at these quantiles of bell shapes.
    EXPECT_NEAR(some.of[i].q95, all.of[i].q95,
                5 * std::sqrt(0.05 * 0.95 / some.of[i].ess_tail) * all.of[i].sd / 0.05);
  }
}

}  // namespace
}  // namespace lockstep
