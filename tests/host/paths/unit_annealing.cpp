// SPDX-License-Identifier: Apache-2.0
// What annealing gives exactly: weights of a flat energy, of one step, and Z both ways where chains jump between modes.
#include "host/paths/annealing.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "host/estimators/annealed_weights.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/options/target_input.hpp"
#include "host/paths/path_base.hpp"
#include "host/runs/run_context.hpp"
#include "targets/mixture.hpp"
#include "tests/support/search_case.hpp"
#include "tests/support/watch.hpp"

namespace lockstep {
namespace {

constexpr int kRuns = 64;

struct Setting {
  RunOptions options;
  std::unique_ptr<TargetInstance> target;
  RunContext context;

  static RunOptions on(const std::string& name) {
    RunOptions r;
    r.command = "evidence";
    r.target = name;
    r.device = "cpu";
    r.precision = "double";
    r.quiet = true;
    return r;
  }
  explicit Setting(const std::string& name)
      : options(on(name)),
        target(build_target(options)),
        context(make_context(options, *target, "annealing")) {}

  AnnealedChains anneal(const PathBase& base, const std::vector<double>& ladder, bool reverse) const {
    const auto engine = base.path_engine(context, {0}, kRuns);
    return anneal_chains(context, *engine,
                         {ladder, std::vector<double>(ladder.size(), 0.3), 3, reverse, "annealing", 16},
                         base.draws(context.key, 0, kRuns, kRuns));
  }
};

TEST(Annealing, AFlatEnergyGivesWeightsOfOne) {
  const Setting r("gaussian");
  const int d = r.target->dim();
  const Truth& truth = r.target->truth();
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(d, d);
  for (int i = 0; i < d; ++i) covariance(i, i) = truth.variance(i);
  const auto base = PathBase::from_moments(Eigen::Map<const Eigen::VectorXd>(truth.mean.data(), d),
                                           covariance, 1, truth.log_z, "the target");
  std::vector<double> ladder;
  for (int k = 0; k <= 40; ++k) ladder.push_back(k / 40.0);
  for (bool reverse : {false, true})
    for (double w : r.anneal(base, ladder, reverse).log_weight)
      EXPECT_NEAR((reverse ? -w : w) + base.taken_out(), truth.log_z, 1e-10);
}

TEST(Annealing, OneStepIsImportanceSampling) {
  const Setting r("mixture20");
  const auto base =
      PathBase::from_moments(Eigen::Vector2d(4, 5), 9 * Eigen::Matrix2d::Identity(), 1, 0.7, "given");
  const auto start = base.draws(r.context.key, 0, kRuns, kRuns);
  const auto log_weight = r.anneal(base, {0, 1}, false).log_weight;
  for (int c = 0; c < kRuns; ++c) {
    const double x[2] = {start[c], start[kRuns + c]}, quad = std::pow(x[0] - 4, 2) + std::pow(x[1] - 5, 2);
    double gradient[2];
    const double expected = r.target->log_density(x, gradient) + quad / 18 + std::log(2 * kPi * 9);
    EXPECT_NEAR(log_weight[c] + base.taken_out(), expected, 1e-9 * (1 + std::abs(expected)));
  }
}

TEST(Annealing, ProgressKnowsWhatItHasCost) {
  Setting r("gaussian");
  const int d = r.target->dim();
  const auto base =
      PathBase::from_moments(Eigen::VectorXd::Zero(d), 4 * Eigen::MatrixXd::Identity(d, d), 1, 0, "given");
  const auto watch = std::make_shared<testing::Watch>();
  r.context.progress = watch;
  r.context.before = {1000, 5};
  AnnealingOptions o;
  for (int k = 0; k <= 200; ++k) o.ladder.push_back(k / 200.0);
  o.step_size.assign(o.ladder.size(), 0.3);
  o.runs = kRuns;
  const AnnealingResult result = anneal(r.context, base, o);
  ASSERT_GT(watch->told.size(), 2u);
  EXPECT_LT(watch->told[0].health.gradients, watch->told[1].health.gradients);
  const RunHealth last = watch->told.back().health;
  EXPECT_EQ(last.gradients + kRuns, result.gradients + 1000);  // and the first of each run
  EXPECT_EQ(last.divergences, result.divergences + 5);
}

/// .9 N(-8, .1^2) + .1 N(8, 1), reached from N(0, 5^2) by way of one level where trajectories of a step are too long for the
/// first and jumps take chains from either mode to the other.
struct ByOneLevel {
  static constexpr int kMany = 60000;
  static testing::MemoryInput mixture() {
    testing::MemoryInput in;
    in.arrays["means"] = {{-8, 8}, {2, 1}};
    in.arrays["weights"] = {{0.9, 0.1}, {2}};
    in.arrays["sds"] = {{0.1, 1}, {2}};
    return in;
  }
  testing::SearchCase<MixtureTarget> mix{mixture()};
  const PathBase base =
      PathBase::from_moments(Eigen::VectorXd::Zero(1), 25 * Eigen::MatrixXd::Identity(1, 1), 1, 0.7, "given");
  RunContext context;

  ByOneLevel() {
    ModeLibrary library(1);
    for (const double side : {-1.0, 1.0}) {
      Mode m;
      m.place = {8 * side};
      m.factor = {side < 0 ? 0.1 : 1};
      m.laplace_log_mass = m.log_mass = std::log(side < 0 ? 0.9 : 0.1);
      library.add(m);
    }
    mix.context.precision = Precision::double_;
    context = with_jumps(mix.context, library);
  }
  /// Log weights along a ladder, and of all jumps the share that is accepted.
  std::pair<std::vector<double>, double> along(const std::vector<double>& ladder, bool from_target,
                                               bool reverse) const {
    std::vector<double> start = base.draws(context.key, 0, kMany, kMany);
    for (int c = 0; c < kMany && from_target; ++c) {
      ExactDraw exact(context.key, std::uint64_t(c));
      mix.target.draw(exact, &start[c]);
    }
    const auto engine = base.path_engine(context, {from_target ? 1u : 0u}, kMany);
    const AnnealedChains r = anneal_chains(
        context, *engine, {ladder, std::vector<double>(ladder.size(), 0.3), 1, reverse, "annealing"}, start);
    JumpCounts jumps;
    jumps.add(r.stats, *find_transition("hmc"), kMany);
    return {r.log_weight, jumps.accepted / jumps.proposed};
  }
  double z(const LogZ& found) const { return std::abs(found.estimate + base.taken_out()) / found.se; }
};

// Jarzynski's equality one way, Bennett's ratio both ways. The latter is of a path and the same one backwards: where jumps come
// after trajectories on the way back too, it is off by over ten errors.
TEST(Annealing, BothWaysGiveZWhereChainsJump) {
  const ByOneLevel r;
  const auto [forward, jumps] = r.along({0, 0.5, 1}, false, false);
  const auto [back, jumps_back] = r.along({0, 0.5, 1}, true, true);
  EXPECT_GT(jumps, 0.3);
  EXPECT_GT(jumps_back, 0.3);
  EXPECT_LT(r.z(summarise_weights(forward).log_mean), 4);
  EXPECT_LT(r.z(bennett_acceptance_ratio(forward, back)), 4);
  const auto [in_order, same] = r.along({1, 0.5, 0}, true, false);
  EXPECT_NEAR(same, jumps_back, 0.02) << "which alone tells nothing";
  EXPECT_GT(r.z(bennett_acceptance_ratio(forward, in_order)), 8);
}

}  // namespace
}  // namespace lockstep
