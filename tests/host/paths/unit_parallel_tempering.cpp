// SPDX-License-Identifier: Apache-2.0
// Parallel tempering from a Gaussian base to a Gaussian target of another scale, where the barrier, log Z and
// the ideal number of round trips are known.
#include "host/paths/parallel_tempering.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "targets/registry.hpp"
#include "tests/support/gaussian_path.hpp"
#include "tests/support/statistics.hpp"
#include "tests/support/target_input.hpp"
#include "tests/support/watch.hpp"

namespace lockstep {
namespace {

using testing::GaussianPath;

struct Scales {
  GaussianPath path{2, 5, 1, 0, 0};  // base N(0, 5^2 I) to the standard normal in two dimensions
  std::unique_ptr<TargetInstance> target = [] {
    testing::MemoryInput in;
    in.numbers["dim"] = 2;
    return find_target("gaussian")->make(in);
  }();
  RunContext context;
  PathBase base =
      PathBase::from_moments(Eigen::Vector2d::Zero(), 25 * Eigen::Matrix2d::Identity(), 1, 0, "given");
  Scales() {
    context.target = target.get();
    context.key = make_stream_key(20260401, "parallel tempering");
  }
  ParallelTemperingResult run(const ParallelTemperingOptions& o) {
    PilotOptions p;
    p.groups = o.groups;
    p.particles = 512;
    p.seeds = o.copies;
    return run_parallel_tempering(context, base, run_pilot(context, base, p), o);
  }
};

TEST(ParallelTempering, BarrierLadderAndLogZ) {
  Scales s;
  ParallelTemperingOptions o{{.discard = 0.33}, 64, {}, true};
  o.ladder = {0, 0.4, 0.6, 0.8, 0.9, 1};  // far from equal rejection
  o.gradients = 1.5e6;
  o.copies = 64;
  const auto r = s.run(o);
  const double barrier = s.path.barrier(1);
  EXPECT_NEAR(r.barrier, 5 * s.path.rejection(0, s.path.at_barrier(0.2)), 0.03);
  EXPECT_LT(r.barrier, barrier);  // its limit for many levels
  for (int k = 0; k < 6; ++k) EXPECT_NEAR(r.samples.ladder[k], s.path.at_barrier(k / 5.0), 0.02) << k;
  for (const Jackknife& j : {bridge_stepping_stones(r.samples, 0), forward_stepping_stones(r.samples, 0),
                             backward_stepping_stones(r.samples, 0)}) {
    EXPECT_LT(j.se(), 0.05);
    EXPECT_LT(std::abs(j.estimate), 4.5 * j.se());
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(std::abs(r.moments.mean[i]), 4.5 * r.moments.mean_se[i]);
    EXPECT_LT(std::abs(r.moments.second[i] - 1), 4.5 * r.moments.second_se[i]);
  }
  // Levels that hold independent draws would make 1 / (2 + 2 Lambda') of a round trip a chain and iteration,
  // over the number of levels, with Lambda' = sum r / (1 - r) (Syed et al. 2022); ours are correlated.
  const double each = r.rejection[0] / (1 - r.rejection[0]);
  const double ideal = double(r.iterations) * o.copies / (2 + 2 * 5 * each);
  EXPECT_GT(r.round_trips, 0.4 * ideal);
  EXPECT_LT(r.round_trips, 1.1 * ideal);
}

TEST(ParallelTempering, AGivenLadderStays) {
  Scales s;
  ParallelTemperingOptions o;
  o.ladder = {0, 0.25, 1};
  o.respace = false;
  o.gradients = 2e5;
  const auto r = s.run(o);
  EXPECT_EQ(r.samples.ladder, o.ladder);
  EXPECT_EQ(r.rejection.size(), 2u);
  EXPECT_NEAR(r.rejection[0], s.path.rejection(0, 0.25), 0.05);
  EXPECT_NEAR(r.rejection[1], s.path.rejection(0.25, 1), 0.05);
}

TEST(ParallelTempering, ProgressKnowsWhatItHasCost) {
  Scales s;
  const auto watch = std::make_shared<testing::Watch>();
  s.context.progress = watch;
  ParallelTemperingOptions o{{.discard = 0.33}, 64, {0, 0.5, 1}, true};
  o.gradients = 2e5;
  const auto r = s.run(o);
  EXPECT_GT(watch->last("pilot").gradients, 0);
  EXPECT_EQ(watch->last("sampling").gradients + 3 * 64, r.gradients);  // and the first of each chain
  EXPECT_EQ(watch->last("sampling").divergences, r.divergences);
}

}  // namespace
}  // namespace lockstep
