// SPDX-License-Identifier: Apache-2.0
#include "host/paths/tempered_pilot.hpp"

#include "tests/support/resumed.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

class PilotFiles : public FolderTest {};

TEST_F(PilotFiles, PilotsGoOnFromEveryLevel) {
  const RunOptions run = run_of({.target = "mixture20"});
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "pilot");
  const Eigen::Vector2d mean(5, 5);
  const Eigen::Matrix2d covariance{{20, 12}, {12, 20}};
  PathBase base = PathBase::from_moments(mean, covariance, 1.2, 0.5, "by hand");
  base.warning = "none";
  ASSERT_FALSE(base.density.by_axes);
  PathBase again;
  save(folder_ / "base", base);
  load(folder_ / "base", again);
  EXPECT_EQ(again.density.mean(), base.density.mean());
  EXPECT_EQ(again.density.components[0].factor, base.density.components[0].factor);
  EXPECT_EQ(again.metric, base.metric);
  EXPECT_EQ(again.taken_out(), base.taken_out());
  EXPECT_EQ(again.how, "by hand");
  EXPECT_EQ(again.warning, "none");
  const PilotOptions options{
      .groups = 4, .particles = 256, .seeds = 32, .moves = 2, .linger = 3, .linger_of_delta = 2};
  const Pilot found = expect_same_from_every_level(
      folder_, [&] { return std::make_unique<PilotRun>(context, again, options); });
  EXPECT_EQ(found.ladder.front(), 0);
  EXPECT_EQ(found.ladder.back(), 1);
  EXPECT_EQ(found.states.size(), found.ladder.size());
  EXPECT_EQ(found.last_weight.size(), 256u);
  const Pilot once = run_pilot(context, base, options);
  EXPECT_EQ(found.last, once.last);
  EXPECT_EQ(found.step_size, once.step_size);
  EXPECT_EQ(found.drift, once.drift);
  ASSERT_EQ(found.drift.size(), 1 + 4 * mean.size() + target->quantities().size());
  EXPECT_EQ(found.drift[0].size(), 4u);
}

/// Weighted particles stay what they are; what they were is not compared with itself.
TEST(Pilots, ParticlesOfTheTargetDoNotDrift) {
  const RunOptions run = run_of({.target = "gaussian"});
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "pilot");
  const int d = target->dim();
  const PathBase base =
      PathBase::from_moments(Eigen::VectorXd::Constant(d, 1), Eigen::MatrixXd::Identity(d, d) * 4, 1, 0, "");
  PilotOptions options{.groups = 8, .particles = 8 * 512, .seeds = 8};
  const double without = run_pilot(context, base, options).gradients;
  options.linger = options.linger_of_delta = 3;
  const Pilot found = run_pilot(context, base, options);
  ASSERT_EQ(found.drift.size(), 1u + 4 * d);
  for (const auto& of_blocks : found.drift) {
    ASSERT_EQ(of_blocks.size(), 32u);
    const LogZ drift = block_mean(of_blocks).value();
    EXPECT_LT(std::abs(drift.estimate), 4 * drift.se);
    EXPECT_GT(drift.se, 1e-3);
    EXPECT_LT(drift.se, 0.2);
  }
  const double transitions = 3.0 * options.particles;
  EXPECT_NEAR(found.gradients - without, transitions * (options.num_leapfrog + 0.5), 0.5 * transitions);
}

}  // namespace
}  // namespace lockstep
