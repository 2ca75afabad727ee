// SPDX-License-Identifier: Apache-2.0
// Draws of a path's base: their density, their control variates, what they say alone and beside chains.
#include "host/paths/base_draws.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "host/runs/state_moments.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using namespace testing;
using Eigen::Matrix2d, Eigen::Vector2d;

Matrix2d lower(double a, double b, double c) {
  Matrix2d m;
  m << a, 0, b, c;
  return m;
}

/// Modes of weights .6 and .4; `data` may be another mixture.
struct Modes {
  static constexpr const char* kTwo = R"({"means": [[-5, 2], [6, -3]], "weights": [0.6, 0.4],
      "covariances": [[[1, 0.6], [0.6, 1.5]], [[0.5, -0.2], [-0.2, 0.4]]]})";
  RunOptions run;
  std::unique_ptr<TargetInstance> target;
  RunContext context;
  PathBase base;
  /// The base: a wide normal, and at each mode the same one, that has neither their shapes nor their weights.
  explicit Modes(const std::string& data = kTwo)
      : run(run_of({.target = "mixture", .data = data})),
        target(build_target(run)),
        context(make_context(run, *target, "modes")) {
    base.density = {{{0.3, Vector2d(0, 0), lower(7, 0, 4)},
                     {0.35, Vector2d(-5, 2), lower(1.2, 0.1, 1.1)},
                     {0.35, Vector2d(6, -3), lower(0.6, 0.05, 0.55)}},
                    false,
                    true};
    base.metric = Vector2d(1, 1);
    base.of_modes = true;
    base.normals = {
        {1, Vector2d(-5, 2), lower(1, 0.6, std::sqrt(1.5 - 0.36))},
        {1, Vector2d(6, -3), lower(std::sqrt(0.5), -0.2 / std::sqrt(0.5), std::sqrt(0.4 - 0.08))}};
  }
  BaseDraws draws(double gradients = 4e5) const {
    return run_base_draws(context, base, {.gradients = gradients, .covariance = true});
  }
};

TEST(BaseDraws, ControlsHaveMeanZeroAndWhatIsDrawnIsTheDensity) {
  Modes t;
  for (const bool tied : {true, false}) {
    t.base.density.tied = tied;
    const DrawnDensity density(t.base.density, t.base.normals);
    const BaseControls controls(density, t.base.normals);
    constexpr int n = 40000;
    Eigen::MatrixXd x(n, 2);
    for (int c = 0; c < n; ++c) x.row(c) = density.draw({t.context.key, 7, std::uint32_t(c), 0});
    const BaseControls::Values v = controls.at(x);
    ASSERT_EQ(v.controls.cols(), controls.count());
    const double most = family_quantile(1e-4, std::size_t(controls.count()) + 1);
    for (int k = 0; k < controls.count(); ++k) {
      RunningMean mean;
      for (int c = 0; c < n; ++c) mean.add(v.controls(c, k));
      EXPECT_GT(mean.variance(), 0) << k;
      EXPECT_LT(std::abs(mean.z()), most) << k;
    }
    RunningMean base;  // E_b base / b is one, and the base is what the path has
    for (int c = 0; c < n; ++c) base.add(std::exp(v.log_base[c] - v.log_density[c]));
    EXPECT_LT(std::abs(base.z(1)), most);
    for (int c = 0; c < 100; ++c) EXPECT_NEAR(v.log_base[c], t.base.density.log_density(x.row(c)), 1e-9);
  }
}

TEST(BaseDraws, FitIsOfLeastSquares) {
  const Eigen::MatrixXd controls = Eigen::MatrixXd::Random(200, 3);
  Eigen::MatrixXd y(200, 2);
  y.col(0) = 2 + controls.col(0).array() - 3 * controls.col(2).array();
  y.col(1).setConstant(5);
  ControlFit fit(3, 2);
  fit.add(controls.topRows(80), y.topRows(80));
  fit.add(controls.bottomRows(120), y.bottomRows(120));
  Eigen::MatrixXd right(4, 2);
  right << 2, 5, 1, 0, 0, 0, -3, 0;
  EXPECT_LT((fit.coefficients() - right).cwiseAbs().maxCoeff(), 1e-6);
}

/// Of a mixture of the normals that the controls are made of nothing is left uncertain; without them a thousand times more.
TEST(BaseDraws, AreExactWhereModesAreNormal) {
  Modes t;
  const BaseDraws exact = t.draws(4e6);
  ASSERT_TRUE(exact.taken());
  EXPECT_NEAR(exact.log_z().estimate, t.target->truth().log_z, 1e-8);
  EXPECT_LT(exact.number, 1.2e6);  // enough, long before the budget
  const double second = exact.sums[0][5] / exact.sums[0][MomentLayout::count];
  EXPECT_NEAR(second, t.target->truth().second_moment(0), 1e-6);
  for (NormalComponent& n : t.base.normals) n.factor *= 0.7;
  const BaseDraws other = t.draws(4e6);
  ASSERT_TRUE(other.taken());
  EXPECT_GT(other.log_z().se, 1e-5);
  EXPECT_LT(std::abs(other.log_z().estimate - t.target->truth().log_z), 4.5 * other.log_z().se);
  EXPECT_GT(other.number, 3.5e6);
}

TEST(BaseDraws, AreNotMadeWhereTheyAreNotWorthIt) {
  Modes t;
  t.base.density = BaseDensity::normal(Vector2d(0, 0), lower(300, 0, 300), true);
  t.base.of_modes = false;
  const BaseDraws poor = t.draws();
  EXPECT_FALSE(poor.taken());
  EXPECT_GT(poor.number, 0);
  EXPECT_LE(poor.number, 5e3);
  EXPECT_EQ(Modes().draws(1e4).number, 0);  // a trial would take too much of it
}

/// Chains of which a part q was where the base hardly reaches, at x or, without it, in no state that was kept.
TemperedResult chains_beyond(const Modes& t, double q, std::optional<Vector2d> x) {
  const MomentLayout layout{2, int(t.target->quantities().size()), true};
  TemperedResult r;
  r.top.assign(8, 1e5);
  r.tail.assign(8, q * 1e5);
  r.tail_moments.assign(8, std::vector<double>(layout.rows(), 0.0));
  for (auto& m : r.tail_moments)
    if (x) add_state(*t.target, layout, x->data(), 0.7, m);
  return r;
}

/// One mode in a hundred lies where the base is not: draws leave it out, and chains that were there put it back.
TEST(BaseDraws, LeaveToChainsWhatTheBaseDoesNotReach) {
  Modes t(R"({"means": [[-5, 2], [6, -3], [40, 40]], "weights": [0.6, 0.39, 0.01], "sds": [1, 0.6, 0.01]})");
  t.base.normals = {{1, Vector2d(-5, 2), lower(1, 0, 1)}, {1, Vector2d(6, -3), lower(0.6, 0, 0.6)}};
  const BaseDraws draws = t.draws();
  ASSERT_TRUE(draws.taken());
  EXPECT_NEAR(draws.log_z().estimate, std::log(0.99), 1e-4);
  const Truth& truth = t.target->truth();

  const auto right = combined(*t.target, true, draws, chains_beyond(t, 0.01, Vector2d(40, 40)));
  ASSERT_TRUE(right);
  EXPECT_NEAR(right->log_z.estimate, truth.log_z, 1e-4);
  EXPECT_NEAR(right->beyond, 0.01, 1e-9);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(right->moments.mean[i], truth.mean[i], 1e-3);
    EXPECT_NEAR(right->moments.second[i], truth.second_moment(i), 0.02);
  }
  EXPECT_NEAR(right->moments.covariance[1], truth.covariance[1], 0.05);

  // Not seen in a state: the mean of what is there is not known, and the errors say so.
  const auto blind = combined(*t.target, true, draws, chains_beyond(t, 0.01, {}));
  ASSERT_TRUE(blind);
  EXPECT_NEAR(blind->log_z.estimate, truth.log_z, 1e-4);
  EXPECT_GT(blind->moments.mean_se[0], 3 * right->moments.mean_se[0]) << right->moments.mean_se[0];
  // Never visited: nobody knows of it.
  EXPECT_NEAR(combined(*t.target, true, draws, chains_beyond(t, 0, {}))->log_z.estimate, std::log(0.99),
              1e-4);
  // Too much is beyond: chains alone.
  EXPECT_FALSE(combined(*t.target, true, draws, chains_beyond(t, 0.03, Vector2d(40, 40))));
}

TEST(BaseDraws, MeansThatDifferAreSaid) {
  WeightedMoments one;
  one.mean = {1, 2, 3};
  one.mean_se = one.mean_unscaled_se = {0.1, 0.1, 0.1};
  one.mean_df = {7, 7, 7};
  WeightedMoments other = one;
  EXPECT_EQ(first_mean_that_differs(one, other), -1);
  other.mean[1] += 0.3;  // of eight groups three errors are not so rare
  EXPECT_EQ(first_mean_that_differs(one, other), -1);
  other.mean[1] += 0.4;
  EXPECT_EQ(first_mean_that_differs(one, other), 1);
  EXPECT_EQ(first_mean_that_differs(other, one), 1);
}

}  // namespace
}  // namespace lockstep
