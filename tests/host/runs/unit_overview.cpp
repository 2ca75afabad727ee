// SPDX-License-Identifier: Apache-2.0
#include "host/runs/chain_run.hpp"
#include "host/runs/overview.hpp"

#include "host/runs/recording.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// x at multiples of the stride and at nothing else, whatever the number of iterations.
TEST(Overview, IsEveryStrideThOfAllDraws) {
  const Job job{
      .target = "gaussian", .sampler = "hmc", .target_settings = {{"dim", 2}}, .chains = 5, .warmup = 50};
  const auto target = build_target(run_of(job));
  for (const std::int64_t iterations : {3, 64, 65, 1000, 9001})
    for (const std::int64_t most : {4, 100, 20000}) {
      RunOptions r = run_of(job);
      r.iterations = iterations;
      ChainRunOptions options{r, {0}};
      options.draws = kAllDraws;
      options.overview = most;
      const auto run =
          run_chains(make_context(r, *target, ""), sampler_config(r, 2, target->tails()), options);
      const std::vector<float> x = run.draws.x();
      const std::int64_t stride = run.overview.stride(), draws = run.overview.draws();
      EXPECT_EQ(draws, (iterations + stride - 1) / stride);
      EXPECT_LE(draws, most);
      EXPECT_TRUE(stride == 1 || 3 * draws > most) << "no fewer than there is room for";
      const std::vector<float> acceptance = run.draws.values(draw_acceptance);
      ASSERT_EQ(run.overview.acceptance().size(), std::size_t(5 * draws));
      for (std::int64_t t = 0; t < draws; ++t)
        for (int c = 0; c < 5; ++c) {
          ASSERT_EQ(run.overview.acceptance()[t * 5 + c], acceptance[c * iterations + t * stride]);
          for (int i = 0; i < 2; ++i)
            ASSERT_EQ(run.overview.x()[(t * 5 + c) * 2 + i], x[(c * iterations + t * stride) * 2 + i]);
        }
    }
}

TEST(Overview, LaunchesAreNeverTooLong) {
  for (const std::int64_t most : {4, 7, 64, 1000, 100000}) {
    Overview overview(1, 1, most);
    for (std::int64_t t = 0; t < 3000000;) {
      LaunchSpec launch;
      launch.begin = std::uint32_t(t);
      launch.end = std::uint32_t(t + launch_length(t));
      ASSERT_LE(overview.place(launch), overview.capacity()) << most << " at " << t;
      t = launch.end;
    }
  }
}

}  // namespace
}  // namespace lockstep
