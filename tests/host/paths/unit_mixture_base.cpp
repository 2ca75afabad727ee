// SPDX-License-Identifier: Apache-2.0
// Paths that begin at a mixture of two normals: what every method makes of two modes far apart, which from one wide
// normal each would weigh by luck.
#include <gtest/gtest.h>

#include <cmath>

#include "host/estimators/log_sums.hpp"
#include "host/paths/annealing.hpp"
#include "host/paths/parallel_tempering.hpp"
#include "host/runs/run_context.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// Modes of weights .6 and .4 at distance 12 with correlated axes; the base knows where they are, but neither their
/// shapes nor their weights.
struct TwoModes {
  RunOptions run =
      run_of({.target = "mixture", .data = R"({"means": [[-5, 2], [6, -3]], "weights": [0.6, 0.4],
                                       "covariances": [[[1, 0.6], [0.6, 1.5]], [[0.5, -0.2], [-0.2, 0.4]]]})"});
  std::unique_ptr<TargetInstance> target = build_target(run);
  RunContext context = make_context(run, *target, "two modes");
  PathBase base;
  TwoModes() {
    Eigen::Matrix2d wide;
    wide << 1.6, 0, 0.4, 1.5;
    base.density.components = {{0.5, Eigen::Vector2d(-4.6, 1.7), wide},
                               {0.5, Eigen::Vector2d(5.5, -2.8), wide}};
    base.metric = Eigen::Vector2d(1.2, 1.1);
    base.log_zeta = 0.3;
    base.how = "given";
  }
  Pilot pilot() const {
    PilotOptions p;
    p.particles = p.seeds = 1024;
    return run_pilot(context, base, p);
  }
  void agrees(double log_z, double se, const WeightedMoments& moments) const {
    EXPECT_LT(se, 0.05);
    EXPECT_LT(std::abs(log_z - target->truth().log_z), 4 * se);
    for (int i = 0; i < 2; ++i) {
      EXPECT_LT(std::abs(moments.mean[i] - target->truth().mean[i]), 4 * moments.mean_se[i]) << i;
      EXPECT_LT(moments.mean_se[i], 0.7);  // the modes are 11 apart
    }
  }
};

TEST(MixtureBase, SequentialMonteCarlo) {
  const TwoModes t;
  const Jackknife z = t.pilot().log_z_of_groups() + t.base.taken_out();
  EXPECT_LT(z.se(), 0.05);
  EXPECT_LT(std::abs(z.estimate - t.target->truth().log_z), 4 * z.se());
}

TEST(MixtureBase, Annealing) {
  const TwoModes t;
  AnnealingOptions o;
  for (int k = 0; k <= 100; ++k) o.ladder.push_back(k / 100.0);
  o.step_size.assign(o.ladder.size(), 0.5);
  o.runs = 4096;
  const AnnealingResult r = anneal(t.context, t.base, o);
  LogSum sum;
  double squares = 0;
  for (double w : r.log_weight) sum.add(w);
  const double log_mean = sum.log() - std::log(double(o.runs));
  for (double w : r.log_weight) squares += std::pow(std::exp(w - log_mean) - 1, 2);
  t.agrees(log_mean + t.base.taken_out(), std::sqrt(squares) / o.runs, r.moments);
}

TEST(MixtureBase, TemperedChains) {
  const TwoModes t;
  const Pilot pilot = t.pilot();
  TemperedOptions o;
  o.gradients = 3e6;
  for (const Tempering tempering : {Tempering::levels, Tempering::gibbs, Tempering::joint}) {
    o.tempering = tempering;
    o.moves.control = tempering == Tempering::joint ? Control::logistic : Control::none;
    const TemperedResult r = run_tempered(t.context, t.base, pilot, o);
    t.agrees(r.stepping.estimate, r.stepping.se, r.moments);
    t.agrees(r.ends.estimate, r.ends.se, r.moments);
  }
}

TEST(MixtureBase, ParallelTempering) {
  const TwoModes t;
  ParallelTemperingOptions o;
  o.ladder = {0, 0.3, 0.6, 1};
  o.gradients = 3e6;
  const auto r = run_parallel_tempering(t.context, t.base, t.pilot(), o);
  const Jackknife z = bridge_stepping_stones(r.samples, 0) + t.base.taken_out();
  t.agrees(z.estimate, z.se(), r.moments);
}

}  // namespace
}  // namespace lockstep
