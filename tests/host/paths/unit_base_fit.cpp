// SPDX-License-Identifier: Apache-2.0
#include "host/paths/base_fit.hpp"

#include "host/paths/advi.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// A target with a context to fit it in.
struct Started {
  std::unique_ptr<TargetInstance> target;
  RunOptions run;
  RunContext context;
  explicit Started(const Job& job, int threads = 1) : run(run_of(job)) {
    run.warmup = RunOptions().warmup;  // which evidence does not take
    run.threads = threads;
    target = build_target(run);
    context = make_context(run, *target, "test");
  }
  LocalFits advi(int starts) const { return fit_local(context, {.starts = starts, .init_scale = 10}); }
};

Job gaussian(int dim, double ratio) {
  return {.target = "gaussian", .target_settings = {{"dim", dim}, {"ratio", ratio}}};
}
Job correlated() {
  return {.target = "mixture",
          .data = R"({"means": [[2, -1]], "weights": [1], "covariances": [[[1, 1.2], [1.2, 4]]]})"};
}
Job two_modes() { return {.target = "two_modes", .target_settings = {{"dim", 3}}}; }

// The last steps are 0.01 standard deviations long, and window means may still drift by 2 of them a window:
// three such windows are 0.06.
constexpr double kNear = 0.06;

TEST(Advi, FindsAGaussianWithIndependentAxes) {
  const Started s(gaussian(6, 30));
  const LocalFits found = s.advi(8);
  EXPECT_EQ(found.converged(), 8);
  EXPECT_EQ(found.distinct().size(), 1u);
  EXPECT_GT(found.gradients, 8 * 4 * 75);
  for (const LocalFit& f : found.fits) {
    for (int i = 0; i < 6; ++i) {
      const double sd = std::sqrt(s.target->truth().variance(i));
      EXPECT_NEAR(f.mean[i], 0, kNear * sd);
      EXPECT_NEAR(f.sd[i], sd, kNear * sd);
    }
    EXPECT_NEAR(f.elbo, 0, 6 * kNear * kNear);  // (mean^2 + 2 log^2 sd) / 2 an axis, and some of its noise
  }
}

TEST(Advi, CorrelatedAxesGiveTheKnownMeanField) {
  // Covariance (1, 1.2; 1.2, 4): determinant 2.56, so sd_i^2 = 1 / precision_ii = 2.56 / 4 and 2.56 / 1, and
  // the ELBO lacks log(sqrt 2.56 / (sd_1 sd_2)) = log(1.6 / 1.28).
  const LocalFits found = Started(correlated()).advi(8);
  const LocalFit& best = found.fits[0];
  EXPECT_NEAR(best.mean[0], 2, 2 * kNear);
  EXPECT_NEAR(best.mean[1], -1, 2 * kNear * 1.6);
  EXPECT_NEAR(best.sd[0], 0.8, 2 * kNear * 0.8);  // the gradient's noise does not vanish here
  EXPECT_NEAR(best.sd[1], 1.6, 2 * kNear * 1.6);
  // log density - log q is -1.2 / 2.56 * 1.28 z_1 z_2 up to a constant: sd 0.6 / sqrt 128, over 8 the best.
  EXPECT_NEAR(best.elbo, -std::log(1.6 / 1.28), 4 * 0.6 / std::sqrt(128));
  EXPECT_EQ(found.distinct().size(), 1u);
}

TEST(Advi, MixtureOfModesHasTheirWeightsAndMoments) {
  // Some restarts settle on both modes at once, a third local optimum, which must not be counted again.
  const LocalFits found = Started(two_modes()).advi(64);
  const auto parts = found.distinct();
  ASSERT_EQ(parts.size(), 2u);
  const MixtureMoments m = mixture_moments(parts);
  // Modes 8 sd apart share less than 1e-4 of their mass: logsumexp(ELBO) = log Z but for what the fits lack.
  EXPECT_NEAR(parts[0].elbo, std::log(0.7), 0.03);
  EXPECT_NEAR(parts[1].elbo, std::log(0.3), 0.03);
  EXPECT_NEAR(m.log_sum, 0, 0.03);
  EXPECT_NEAR(m.mean[0], 1.6, 0.2);
  EXPECT_NEAR(m.covariance(0, 0), 1 + 64 * 0.21, 0.6);
  EXPECT_NEAR(m.covariance(1, 1), 1, 0.15);
  EXPECT_NEAR(m.covariance(0, 1), 0, 0.3);
}

TEST(Advi, ARestartDependsNeitherOnCompanyNorOnThreads) {
  const LocalFits many = Started(two_modes(), 2).advi(16), few = Started(two_modes(), 1).advi(4);
  for (const LocalFit& f : few.fits) {
    const auto same = [&](const LocalFit& g) { return g.mean == f.mean && g.sd == f.sd && g.elbo == f.elbo; };
    EXPECT_EQ(std::count_if(many.fits.begin(), many.fits.end(), same), 1);
  }
}

EvidenceConfig config(const Started& s, const Settings& settings) {
  RunOptions run = s.run;
  run.sampler = "auto";
  run.sampler_settings = settings;
  run.gradients = 1e6;
  return evidence_config(run, s.target->dim(), s.target->tails());
}

TEST(FitBase, EveryNameFitsTwoModes) {
  const Started s(two_modes());
  for (const char* name : {"auto", "scout", "warmup", "mixture"}) {
    const auto base = fit_base(s.context, config(s, {{"base", name}, {"base_inflation", 1}}), s.run);
    EXPECT_NEAR(base.density.mean()[0], 1.6, 0.8) << name;
    EXPECT_NEAR(base.density.sd()[0], std::sqrt(14.44), 0.5) << name;
    EXPECT_NEAR(base.density.sd()[1], 1, 0.25) << name;
    EXPECT_NEAR(base.log_zeta, 0, 0.3) << name;
    EXPECT_GT(base.gradients, 1e4) << name;
    EXPECT_TRUE(base.warning.empty()) << base.warning;
  }
  const auto one = fit_base(s.context, config(s, {{"base", "advi"}, {"base_inflation", 1}}), s.run);
  EXPECT_NEAR(one.density.mean()[0], 4, 0.1);
  EXPECT_NEAR(one.log_zeta, std::log(0.7), 0.05);
  EXPECT_NE(one.warning.find("one of 2"), std::string::npos) << one.warning;
  const auto given = fit_base(s.context, config(s, {{"base_mean", 3}, {"base_sd", {5, 6, 7}}}), s.run);
  EXPECT_EQ(given.density.sd(), (std::vector<double>{5, 6, 7}));
  EXPECT_EQ(given.density.mean(), Eigen::Vector3d::Constant(3));
  EXPECT_EQ(given.gradients, 0);
}

TEST(FitBase, WarmUpFromAUniformStartFindsItsLogZ) {
  Started s(correlated());
  s.run.init = "uniform:3";
  const auto base = fit_base(s.context, config(s, {{"base", "warmup"}, {"base_inflation", 1}}), s.run);
  EXPECT_FALSE(base.density.by_axes);
  EXPECT_NEAR(base.density.sd()[1], 2, 0.2);
  EXPECT_NEAR(base.log_zeta, 0, 0.1);
}

TEST(Bootstrap, AGaussianFromABadBase) {
  const Started s(gaussian(4, 5));
  const EvidenceConfig c = config(s, {{"base_mean", 6}, {"base_sd", 8}});
  PathBase base = fit_base(s.context, c, s.run);
  double spent = 0;
  for (int round = 0; round < 2; ++round) {
    const Pilot pilot =
        run_pilot(with_own_numbers(s.context, std::to_string(round)), base, {.particles = 4096, .seeds = 64});
    spent += pilot.gradients;
    base = refit_base(base, pilot, 1);
  }
  EXPECT_EQ(base.gradients, spent);
  EXPECT_TRUE(base.density.by_axes);
  EXPECT_NEAR(base.log_zeta, 0, 0.05);
  for (int i = 0; i < 4; ++i) {
    const double sd = std::sqrt(s.target->truth().variance(i));
    EXPECT_NEAR(base.density.mean()[i], 0, 0.1 * sd);  // 5 sd of the mean of 2500 effective particles
    EXPECT_NEAR(base.density.sd()[i], sd, 0.1 * sd);
  }
}

/// A pilot of `n` particles on the line x_2 = 2 x_1, all of one weight but those of the second half's group.
Pilot line(int n, double second_group_log_z) {
  Pilot p;
  p.group_log_z = {0, second_group_log_z};
  p.log_z = {0, -3};
  p.gradients = 10;
  p.curvature = {1, 1};
  p.last_weight.assign(n, 2.0 / n);
  for (int i = 0; i < 2; ++i)
    for (int c = 0; c < n; ++c) p.last.push_back((i + 1) * (c % 2 == 0 ? 1.0 : -1.0) * (1 + c % 3));
  return p;
}

TEST(Metric, TakesTheScaleWithinAMode) {
  const auto wide = [] {
    return PathBase::from_moments(Eigen::Vector2d::Zero(), Eigen::Vector2d(16, 1).asDiagonal(), 1, 0, "");
  };
  PathBase base = wide();
  EXPECT_DOUBLE_EQ(base.metric[0], 4);
  base.fit_metric({1, 1});                             // a scale of 1 on either axis
  EXPECT_NEAR(base.metric[0], std::sqrt(2.0), 1e-12);  // 4^(1/4)
  EXPECT_NEAR(base.metric[1], 1, 1e-12);
  base = wide();
  base.fit_metric({1 / 16.0, 1});  // that of the base: nothing changes
  EXPECT_NEAR(base.metric[0], 4, 1e-12);
  base = wide();
  base.fit_metric({1, 1e12});  // one particle far out
  EXPECT_NEAR(base.metric[1], std::pow(0.25 / 30, 0.75), 1e-12);
  base = wide();
  base.fit_metric({NAN, 0});
  EXPECT_NEAR(base.metric[0], 4, 1e-12);
}

TEST(Bootstrap, TooFewParticlesRefitLess) {
  const Started s(gaussian(2, 1));
  PathBase old = fit_base(s.context, config(s, {{"base_sd", 9}}), s.run);
  old.gradients = 7;
  const PathBase few = refit_base(old, line(16, 0), 1), some = refit_base(old, line(24, 0), 1),
                 many = refit_base(old, line(48, 0), 1), lost = refit_base(old, line(36, -1000), 1);
  EXPECT_EQ(few.density.sd(), old.density.sd());
  EXPECT_EQ(few.log_zeta, 0);
  EXPECT_NE(few.warning.find("too few"), std::string::npos);
  EXPECT_EQ(few.gradients, 17);
  EXPECT_EQ(lost.density.sd(), old.density.sd());  // one group has all the weight: 18 particles
  EXPECT_TRUE(some.density.by_axes);
  EXPECT_LT(some.density.sd()[0], 4);
  EXPECT_NEAR(some.log_zeta, -3, 1e-5);  // beside rounding in the engine
  EXPECT_FALSE(many.density.sd() == old.density.sd());
}

}  // namespace
}  // namespace lockstep
