// SPDX-License-Identifier: Apache-2.0
// Whole runs: what adaptation freezes, and that a unit's result depends on nothing but the unit.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "host/runs/chain_run.hpp"
#include "host/util/interrupt.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;
const Settings kNarrow = {{"dim", 6}, {"ratio", 30}};

TEST(Adaptation, PooledIsOneForAllUnits) {
  const Outcome o = run({.target = "bimodal", .iterations = 64, .pooled = true, .replicates = 4});
  const Frozen& f = o.result.frozen;
  for (const auto* v : {&f.step_size, &f.trajectory_time, &f.log_zeta, &f.scale, &f.base_mean, &f.base_sd}) {
    ASSERT_EQ(v->size(), 4u);  // one dimension
    for (double x : *v) EXPECT_EQ(x, v->front());
  }
  EXPECT_NE(o.units[0].mean[0], o.units[1].mean[0]);  // the replicates differ all the same
  const Outcome own = run({.target = "bimodal", .iterations = 64, .replicates = 4});
  EXPECT_NE(own.result.frozen.step_size[0], own.result.frozen.step_size[1]);
}

TEST(Adaptation, ReachesTheTargetAcceptance) {
  // Dual averaging aims at the harmonic mean over chains, which is below the mean that is reported: by
  // Jensen, and by no more than a quarter here, where acceptance varies between 0 and 1 with the jittered
  // length of the trajectory.
  double last = 0;
  for (double goal : {0.5, 0.7, 0.9}) {
    const Outcome o = run({.target = "gaussian",
                           .sampler = "hmc",
                           .sampler_settings = {{"target_acceptance", goal}},
                           .replicates = 4});
    double mean = 0;
    for (const auto& e : o.units) {
      EXPECT_GT(e.acceptance, goal - 0.03);
      EXPECT_LT(e.acceptance, std::min(goal + 0.25, 0.52 + 0.5 * goal));
      mean += e.acceptance / 4;
    }
    EXPECT_GT(mean, last + 0.03);
    last = mean;
  }
}

TEST(Adaptation, LearnsTheScales) {
  const Outcome o = run({.target = "gaussian",
                         .sampler = "hmc",
                         .target_settings = kNarrow,
                         .warmup = 800,
                         .init = "uniform:10",
                         .replicates = 4});
  for (int u = 0; u < 4; ++u)
    for (int i = 0; i < 6; ++i)
      EXPECT_NEAR(std::log(o.result.frozen.scale[u * 6 + i] / std::pow(30, i / 5.0)), 0, 0.4)
          << u << ", axis " << i;
}

/// Stops what comes after the chains: draws of the modes (sampler.recycle), or a search from places that they came upon.
struct AfterSampling : Progress {
  bool sampled = false, stopped = false;
  bool tell(const std::string& stage, double) override {
    sampled = sampled || stage == "sampling";
    if (!sampled || stage == "sampling") return false;
    stopped = true;
    throw Interrupted();
  }
};

TEST(Runs, StoppedAfterTheChainsKeepThem) {
  RunOptions r = run_of({.target = "mixture20",
                         .sampler = "hmc",
                         .sampler_settings = {{"recycle", true}},
                         .iterations = 64,
                         .chains = 32});
  const auto target = build_target(r);
  RunContext context = make_context(r, *target, "");
  const auto progress = std::make_shared<AfterSampling>();
  context.progress = progress;
  ChainRunOptions options{r, {0}};
  options.searches = true;
  options.overview = 64;
  const ChainRunResult result = run_chains(context, sampler_config(r, 2, target->tails()), options);
  EXPECT_TRUE(progress->stopped);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.units[0].iterations, 64);
  EXPECT_GT(result.modes[0].library.size(), 10);
}

/// A target that gives its densities to the engine and nothing else.
class Withheld : public TargetInstance {
 public:
  explicit Withheld(const TargetInstance& inner) : inner_(inner) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    truth_.mean.assign(inner.dim(), nan);
    truth_.covariance.assign(std::size_t(inner.dim()) * inner.dim(), nan);
    truth_.quantities.assign(inner.quantities().size(), nan);
  }
  int dim() const override { return inner_.dim(); }
  const Truth& truth() const override { return truth_; }
  Tails tails() const override { return inner_.tails(); }
  const std::vector<std::string>& names() const override { return inner_.names(); }
  const std::vector<std::string>& quantities() const override { return inner_.quantities(); }
  void quantities_at(const double* x, double* values) const override { inner_.quantities_at(x, values); }
  const std::vector<std::pair<std::string, double>>& facts() const override { return inner_.facts(); }
  bool can_draw() const override { return false; }
  void draw(ExactDraw&, double*) const override { throw std::logic_error("an exact draw was asked for"); }
  double log_density(const double* x, double* gradient) const override {
    return inner_.log_density(x, gradient);
  }
  double operations_per_gradient() const override { return inner_.operations_per_gradient(); }
  std::unique_ptr<Engine> engine(const EngineSpec& spec) const override { return inner_.engine(spec); }

 private:
  const TargetInstance& inner_;
  Truth truth_;
};

void expect_same(const UnitMoments& a, const UnitMoments& b) {
  EXPECT_EQ(a.iterations, b.iterations);
  EXPECT_EQ(a.sums, b.sums);
  EXPECT_EQ(a.stats, b.stats);
}

TEST(Bytes, NobodyReadsATruth) {
  for (const char* sampler : {"pe", "hmc", "rwm"}) {
    const Job job{.target = "mixture20", .sampler = sampler, .iterations = 200, .chains = 4, .warmup = 200};
    const auto target = build_target(run_of(job));
    const auto open = run_on(*target, job, {0, 1}), withheld = run_on(Withheld(*target), job, {0, 1});
    for (int u : {0, 1}) expect_same(open.units[u], withheld.units[u]);
    for (std::size_t u = 0; u < open.log_z.size(); ++u) {
      EXPECT_EQ(open.log_z[u].estimate, withheld.log_z[u].estimate);
      EXPECT_EQ(open.log_z[u].se, withheld.log_z[u].se);
    }
  }
}

TEST(Bytes, AUnitIsTheSameInAnyCompany) {
  Job job{.target = "mixture20",
          .target_settings = {{"scenario", "b"}},
          .iterations = 300,
          .chains = 5,
          .warmup = 200};
  const auto target = build_target(run_of(job));
  const auto many = run_on(*target, job, {6, 2, 9, 11});
  const auto alone = run_on(*target, job, {9});
  expect_same(many.units[2], alone.units[0]);
  EXPECT_EQ(many.log_z[2].estimate, alone.log_z[0].estimate);
  EXPECT_EQ(many.log_z[2].se, alone.log_z[0].se);
}

TEST(Bytes, BudgetsOfGradientsDoNotDisturbTheNeighbours) {
  // Each unit ends at its own iteration; launches are cut short there for all, batches and evidence are not.
  // Sums are formed launch by launch, so that they agree to rounding; iterations, draws and log Z exactly.
  const Job job{.target = "mixture20", .target_settings = {{"scenario", "b"}}, .chains = 2, .warmup = 200};
  const auto target = build_target(run_of(job));
  const auto with_budget = [&](std::vector<std::uint32_t> units) {
    const RunOptions r = run_of(job);
    ChainRunOptions options{r, std::move(units)};
    options.gradients = 1e6;
    return run_chains(make_context(r, *target, "test"), sampler_config(r, 2, target->tails()), options);
  };
  const auto many = with_budget({0, 1, 2, 3, 4, 5, 6, 7}), alone = with_budget({5});
  EXPECT_GT(alone.units[0].iterations, 8192);  // long enough for launches above the shortest
  EXPECT_EQ(many.units[5].iterations, alone.units[0].iterations);
  ASSERT_EQ(many.units[5].sums.size(), alone.units[0].sums.size());
  for (std::size_t k = 0; k < alone.units[0].sums.size(); ++k)
    ASSERT_NEAR(many.units[5].sums[k], alone.units[0].sums[k], 1e-12 * std::abs(alone.units[0].sums[k])) << k;
  EXPECT_EQ(many.log_z[5].estimate, alone.log_z[0].estimate);
  EXPECT_EQ(many.log_z[5].se, alone.log_z[0].se);
  for (const auto& m : many.units) {
    EXPECT_GE(m.stats[stat_gradients], 1e6);
    EXPECT_LT(m.stats[stat_gradients], 1e6 + 2 * 5 * 1024);  // the first iteration that reaches it
  }
}

TEST(Bytes, StoredDrawsChangeNothing) {
  const Job job{.target = "bimodal", .iterations = 9000, .chains = 2, .warmup = 100};
  const auto target = build_target(run_of(job));
  RunOptions r = run_of(job);
  const auto run_with = [&] {
    return run_chains(make_context(r, *target, "test"), sampler_config(r, 1, target->tails()), {r, {0}});
  };
  const auto without = run_with();
  r.draws = kAllDraws;
  r.thin = 7;
  const auto with = run_with();
  const Estimates a = estimate(without.units[0]), b = estimate(with.units[0]);
  EXPECT_NEAR(a.mean[0], b.mean[0], 1e-12);
  EXPECT_NEAR(a.mean_se[0], b.mean_se[0], 1e-12);
  EXPECT_EQ(without.log_z[0].estimate, with.log_z[0].estimate);
  EXPECT_EQ(without.log_z[0].se, with.log_z[0].se);
  ASSERT_EQ(with.draws.draws, (9000 + 6) / 7);
  EXPECT_EQ(with.draws.x().size(), std::size_t(2 * with.draws.draws));
}

}  // namespace
}  // namespace lockstep
