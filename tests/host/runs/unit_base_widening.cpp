// SPDX-License-Identifier: Apache-2.0
// A base that is narrower than the target becomes as wide as the chains of a warm-up; others stay.
#include "host/runs/base_widening.hpp"

#include <gtest/gtest.h>

#include "host/engines/sharded_engine.hpp"
#include "kernels/base.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

constexpr int kDim = 3, kChains = 64;

/// A standard normal, and a warm-up of pseudo-extended chains that begin at draws of it; the bases' sds along
/// the axes are `times` what they should be.
class BaseWidenings : public ::testing::Test {
 protected:
  Frozen after(std::int64_t iterations, std::vector<double> times,
               const std::function<void(Frozen&)>& change = {}) {
    const testing::Job job{.target = "gaussian", .target_settings = {{"dim", kDim}, {"ratio", 1}}};
    const RunOptions run = testing::run_of(job);
    const auto target = build_target(run);
    const SamplerConfig config = sampler_config(run, kDim, target->tails());
    const RunContext context = make_context(run, *target, "test");
    const std::vector<std::uint32_t> units{4, 7};
    Frozen f;
    f.model = config.model;
    f.step_size.assign(2, 0.3);
    f.trajectory_time.assign(2, 1.5);
    f.scale.assign(2 * kDim, 1.0);
    f.base_mean.assign(2 * kDim, 0.1);
    f.warmup_log_z.assign(2, NAN);
    f.log_zeta.assign(2, double(float(config.tilt)));
    for (const double by : times) f.base_sd.push_back(config.base_inflation * by);
    f.base_sd.resize(2 * kDim, config.base_inflation);  // the second unit's are right
    if (change) change(f);

    const auto engine = make_engine(context, engine_spec(context, f.model, units, kChains));
    std::vector<double> x(std::size_t(engine->rows()) * engine->chains());
    const int samples = engine->samples();
    for (int c = 0; c < engine->chains(); ++c) {
      const Draw<double> draw{context.key, 0, std::uint32_t(c), 0};
      const auto z = normals(draw, Purpose::base, samples * kDim);
      for (int i = 0; i < samples * kDim; ++i) x[std::size_t(i) * engine->chains() + c] = z[i];
    }
    set_frozen(*engine, config, units, f);
    engine->set_position(x);
    engine->initialize();
    BaseWidening widening(context, config, f, iterations);
    LaunchSpec launch = ChainRunOptions{run, units}.launch(context, config);
    for (std::int64_t t = 0; t < iterations; ++t) {
      launch.begin = std::uint32_t(t);
      launch.end = launch.begin + 1;
      launch.record = widening.within(t);
      engine->advance(launch);
      Launched launched{*engine, launch};
      widening.record(launched, t);
      if (widening.widened(t + 1, f).empty()) continue;
      ++times_;
      set_frozen(*engine, config, units, f);
      engine->initialize();
    }
    inflation_ = config.base_inflation;
    tilt_ = config.tilt;
    return f;
  }
  int times_ = 0;
  double inflation_ = 0, tilt_ = 0;
};

TEST_F(BaseWidenings, FollowWhatChainsSee) {
  const Frozen f = after(400, {0.4, 1, 0.7});
  EXPECT_GE(times_, 1);
  // Some 64 x 50 draws, of which few are independent: to a tenth. 1.1 too narrow may stay.
  EXPECT_NEAR(f.base_sd[0], inflation_, 0.12 * inflation_);
  EXPECT_EQ(f.base_sd[1], inflation_);
  EXPECT_NEAR(f.base_sd[2], inflation_, 0.12 * inflation_);
  EXPECT_NEAR(f.scale[0], f.base_sd[0] / (0.4 * inflation_), 1e-12) << "and so does the metric";
  // Its zeta is that of a normalised target. The other unit is as it was.
  EXPECT_NEAR(f.warmup_log_z[0], 0, 0.5);
  EXPECT_NEAR(f.log_zeta[0], f.warmup_log_z[0] + tilt_ + 0.5, 0.5);
  for (int i = kDim; i < 2 * kDim; ++i) EXPECT_EQ(f.base_sd[i], inflation_);
  EXPECT_TRUE(std::isnan(f.warmup_log_z[1]));
  EXPECT_EQ(f.log_zeta[1], double(float(tilt_)));
}

TEST_F(BaseWidenings, StopAtFiveTimes) {
  const Frozen f = after(400, {0.02, 1, 1});
  EXPECT_LE(f.base_sd[0], 5 * 0.02 * inflation_ * (1 + 1e-12));
  EXPECT_GT(f.base_sd[0], 2 * 0.02 * inflation_);
}

TEST_F(BaseWidenings, LeaveRightBasesAndShortWarmUpsAlone) {
  const Frozen right = after(400, {1, 1, 1}), brief = after(60, {0.4, 1, 1});
  EXPECT_EQ(right.base_sd, std::vector<double>(2 * kDim, inflation_));
  EXPECT_EQ(brief.base_sd[0], 0.4 * inflation_);
  EXPECT_EQ(times_, 0);
}

TEST_F(BaseWidenings, KeepCorrelationsAndLeaveBasesOfModesAlone) {
  Eigen::Matrix3d factor = Eigen::Matrix3d::Identity();
  factor(1, 0) = 0.5;
  const auto normal = [&](Frozen& f) {
    f.model.base = base_number<NormalMixture>();
    for (int u = 0; u < 2; ++u) {
      const Eigen::Map<const Eigen::Vector3d> sd(f.base_sd.data() + u * kDim);
      f.full_base.push_back(
          BaseDensity::normal(Eigen::Vector3d::Constant(0.1), sd.asDiagonal() * factor, false));
    }
  };
  const Frozen wider = after(400, {1, 0.4, 1}, normal);
  const Eigen::MatrixXd of = wider.full_base[0].components[0].factor;
  EXPECT_NEAR(of(1, 0) / of(1, 1), 0.5, 1e-12);
  EXPECT_NEAR(of(1, 1), wider.base_sd[1], 1e-12);
  EXPECT_GT(wider.base_sd[1], 0.8 * inflation_);

  // Unit 0 begins at modes, whatever its axis 1 is; and no unit does beside it that should not.
  const Frozen beside = after(400, {1, 0.4, 1, 0.4, 1, 1}, [&](Frozen& f) {
    normal(f);
    auto& parts = f.full_base[0].components;
    parts.push_back(parts[0]);
    parts[0].weight = parts[1].weight = 0.5;
  });
  EXPECT_EQ(beside.base_sd[1], 0.4 * inflation_);
  EXPECT_GT(beside.base_sd[kDim], 0.8 * inflation_);
}

TEST_F(BaseWidenings, TakeADenseMetricAlong) {
  const Frozen f = after(400, {1, 0.4, 1}, [](Frozen& f) {
    f.model.dense_metric = true;  // of a full base, which no window of the warm-up learns
    f.factor.clear();
    for (int u = 0; u < 2; ++u) f.factor.insert(f.factor.end(), {1, 0.2, 1, 0.1, 0.3, 1});
  });
  const double wider = f.base_sd[1] / (0.4 * inflation_);
  EXPECT_GT(wider, 1.5);
  EXPECT_NEAR(f.factor[1], 0.2 * wider, 1e-12);
  EXPECT_NEAR(f.factor[2], wider, 1e-12);
  EXPECT_EQ(f.factor[4], 0.3);
}

// Chains of a transition that keeps log densities of its own would go on by those of the base before.
TEST(BaseWideningRuns, LeaveTransitionsWithTheirOwnDensitiesAlone) {
  testing::Job job{.target = "gaussian",
                   .target_settings = {{"dim", 20}},
                   .sampler_settings = {{"scout_particles", 16}},
                   .iterations = 64,
                   .chains = 8,
                   .warmup = 200,
                   .replicates = 2};
  const auto widened = [&] { return std::isfinite(testing::run(job).result.frozen.warmup_log_z[0]); };
  EXPECT_TRUE(widened());
  job.sampler_settings["transition"] = "pt_rwm";
  EXPECT_FALSE(widened());
}

TEST(BaseWideningRuns, AreOfEachUnitAlone) {
  const testing::Job job{.target = "gaussian",
                         .target_settings = {{"dim", 6}},
                         .sampler_settings = {{"scout_particles", 32}},
                         .iterations = 64,
                         .chains = 8,
                         .warmup = 200};
  const auto target = build_target(testing::run_of(job));
  const ChainRunResult all = testing::run_on(*target, job, {0, 1, 2, 3, 4, 5});
  int widened = 0;
  for (std::uint32_t u = 0; u < 6; ++u) {
    const ChainRunResult alone = testing::run_on(*target, job, {u});
    EXPECT_EQ(alone.units[0].sums, all.units[u].sums) << u;
    widened += std::isfinite(all.frozen.warmup_log_z[u]);
  }
  EXPECT_GT(widened, 0);
  EXPECT_LT(widened, 6);
}

}  // namespace
}  // namespace lockstep
