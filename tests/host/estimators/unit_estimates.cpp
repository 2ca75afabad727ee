// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "host/estimators/estimates.hpp"
#include "host/runs/gates.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

constexpr int kBatch = 64;

/// The sums a run would have kept of draws x(chain, iteration, axis), with all weight on one sample.
UnitMoments moments_of(int dim, int chains, std::int64_t iterations,
                       const std::function<double(int, std::int64_t, int)>& x) {
  UnitMoments m;
  m.layout = {dim, 1, true};
  m.chains = chains;
  m.iterations = iterations;
  m.batch_length = kBatch;
  m.batches = int((iterations + kBatch - 1) / kBatch);
  m.stats.assign(kStatRows, 0.0);
  m.sums.assign(std::size_t(chains) * m.batches * m.layout.rows(), 0.0);
  std::vector<double> v(dim);
  for (int c = 0; c < chains; ++c)
    for (std::int64_t t = 0; t < iterations; ++t) {
      double* row = m.sums.data() + (std::size_t(c) * m.batches + t / kBatch) * m.layout.rows();
      for (int i = 0; i < dim; ++i) v[i] = x(c, t, i);
      row[MomentLayout::count] += 1;
      row[MomentLayout::weight_square] += 1;
      row[MomentLayout::beta_mean] += 0.5;
      for (int i = 0; i < dim; ++i) {
        row[m.layout.mean() + i] += v[i];
        row[m.layout.second() + i] += v[i] * v[i];
        for (int j = 0; j < i; ++j) row[m.layout.cross() + i * (i - 1) / 2 + j] += v[i] * v[j];
      }
      row[m.layout.quantity()] += v[0] > 0 ? 1 : 0;
    }
  return m;
}

/// Stationary autoregression with unit variance and the given correlation of neighbours, one series per
/// chain.
class Autoregression {
 public:
  Autoregression(double correlation, std::uint64_t seed) : correlation_(correlation), random_(seed) {}
  double operator()(int, std::int64_t t, int) {
    const double z = normal_(random_);
    value_ = t == 0 ? z : correlation_ * value_ + std::sqrt(1 - correlation_ * correlation_) * z;
    return value_;
  }

 private:
  double correlation_, value_ = 0;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

TEST(Estimate, PlainAverages) {
  // Three chains of 70 iterations: one whole batch and a short one each.
  const auto x = [](int c, std::int64_t t, int i) {
    return std::sin(0.7 * t + c) + 0.2 * c + (i == 1 ? std::cos(1.3 * t) : 0);
  };
  const Estimates e = estimate(moments_of(2, 3, 70, x));
  double mean[2] = {0, 0}, second[2] = {0, 0}, cross = 0, positive = 0;
  for (int c = 0; c < 3; ++c)
    for (int t = 0; t < 70; ++t) {
      for (int i = 0; i < 2; ++i) {
        mean[i] += x(c, t, i) / 210;
        second[i] += x(c, t, i) * x(c, t, i) / 210;
      }
      cross += x(c, t, 0) * x(c, t, 1) / 210;
      positive += (x(c, t, 0) > 0) / 210.0;
    }
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(e.mean[i], mean[i], 1e-13);
    EXPECT_NEAR(e.second[i], second[i], 1e-13);
    EXPECT_NEAR(e.covariance[i * 2 + i], second[i] - mean[i] * mean[i], 1e-13);
  }
  EXPECT_NEAR(e.covariance[1], cross - mean[0] * mean[1], 1e-13);
  EXPECT_EQ(e.covariance[1], e.covariance[2]);
  ASSERT_EQ(e.quantity.size(), 1u);
  EXPECT_NEAR(e.quantity[0], positive, 1e-13);
  EXPECT_NEAR(e.weight_ess, 210, 1e-9);
  EXPECT_NEAR(e.beta_mean, 0.5, 1e-13);
}

TEST(Estimate, StatisticsPerIteration) {
  UnitMoments m = moments_of(1, 4, 128, Autoregression(0, 1));
  m.stats[stat_acceptance] = 0.8 * 512;
  m.stats[stat_divergences] = 3;
  m.stats[stat_gradients] = 12345;
  m.stats[stat_switches] = 17;
  const Estimates e = estimate(m);
  EXPECT_DOUBLE_EQ(e.acceptance, 0.8);
  EXPECT_DOUBLE_EQ(e.divergence_rate, 3.0 / 512);
  EXPECT_EQ(e.gradients, 12345);
  EXPECT_EQ(e.switches, 17);
}

TEST(Estimate, WeightsAndTheirEffectiveSize) {
  // Two samples with weights 3/4 and 1/4 throughout: sum of squares 10/16.
  UnitMoments m = moments_of(1, 2, 128, Autoregression(0, 1));
  for (int k = 0; k < m.chains * m.batches; ++k)
    m.sums[std::size_t(k) * m.layout.rows() + MomentLayout::weight_square] *= 0.625;
  EXPECT_NEAR(estimate(m).weight_ess, 256 / 0.625, 1e-9);
}

struct CoverageCase {
  double correlation;
  int chains;
  std::int64_t iterations;
};
void PrintTo(const CoverageCase& c, std::ostream* out) {
  *out << "correlation" << c.correlation << "_chains" << c.chains << "_iterations" << c.iterations;
}
class StandardErrors : public ::testing::TestWithParam<CoverageCase> {};

TEST_P(StandardErrors, MatchTheScatter) {
  const auto [correlation, chains, iterations] = GetParam();
  constexpr int kReplicates = 300;
  testing::RunningMean z, z_second;
  for (int r = 0; r < kReplicates; ++r) {
    const Estimates e = estimate(moments_of(1, chains, iterations, Autoregression(correlation, 100 + r)));
    z.add(e.mean[0] / e.mean_se[0]);
    z_second.add((e.second[0] - 1) / e.second_se[0]);
    EXPECT_NEAR(e.ess_min, e.variance(0) / (e.mean_se[0] * e.mean_se[0]), 1e-6);
  }
  // Chains are independent blocks. Batches of one chain are not: their means understate the variance by the
  // factor 1 - 2 rho (1 - rho^b) / (b (1 - rho^2)) (rho: correlation; squares have correlation rho^2).
  const auto factor = [&](double rho) {
    return chains >= 32 ? 1
                        : std::sqrt(1 - 2 * rho * (1 - std::pow(rho, kBatch)) / (kBatch * (1 - rho * rho)));
  };
  // Blocks' degrees of freedom widen z: its variance is df / (df - 2).
  const double df = (chains >= 32 ? chains : chains * double(iterations / kBatch)) - 1,
               t = std::sqrt(df / (df - 2));
  const double limit = testing::family_quantile(1e-4, 4);
  EXPECT_LT(std::abs(z.mean()), limit * t / factor(correlation) / std::sqrt(kReplicates));
  EXPECT_NEAR(std::sqrt(z.variance()) * factor(correlation) / t, 1, limit / std::sqrt(2.0 * kReplicates));
  // Second moments are skewed, so that the errors' own scatter counts: a wider limit.
  EXPECT_NEAR(std::sqrt(z_second.variance()) * factor(correlation * correlation) / t, 1, 0.25);
}
INSTANTIATE_TEST_SUITE_P(Batches, StandardErrors,
                         ::testing::Values(CoverageCase{0, 1, 6400}, CoverageCase{0, 64, 128},
                                           CoverageCase{0.9, 1, 12800}, CoverageCase{0.9, 64, 512},
                                           CoverageCase{0.9, 8, 3200}));

TEST(StandardErrors, OneBlockHasNone) {
  EXPECT_TRUE(std::isnan(estimate(moments_of(1, 1, 50, Autoregression(0, 1))).mean_se[0]));
}

TEST(StandardErrors, ChainsThatDisagreeAreSeen) {
  // 64 frozen chains: batches of a chain agree perfectly, chains do not.
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> at(64);
  for (double& v : at) v = normal(random);
  const Estimates e = estimate(moments_of(1, 64, 640, [&](int c, std::int64_t, int) { return at[c]; }));
  EXPECT_NEAR(e.mean_se[0], std::sqrt(testing::running_mean(at).variance() / 64), 1e-12);
}

TEST(RHat, NearOneWhereChainsAgree) {
  for (int chains : {1, 4, 64}) {
    const Estimates e = estimate(moments_of(2, chains, 1024, Autoregression(0.5, 7)));
    EXPECT_FALSE(e.nested);
    EXPECT_LT(e.rhat_max, 1.02) << chains;
    EXPECT_GT(e.rhat_max, 0.99) << chains;
  }
}

TEST(RHat, TheWorstAxisCounts) {
  // Axis 1 of one chain in four is off by 2 sd: of 8 half chains 2 are 1.5 above the mean, 6 are 0.5 below.
  Autoregression noise(0, 8);
  const auto m = moments_of(
      2, 4, 1024, [&](int c, std::int64_t, int i) { return noise(c, 0, i) + (i == 1 && c == 0 ? 2 : 0); });
  EXPECT_NEAR(estimate(m).rhat_max, std::sqrt(1 + (2 * 1.5 * 1.5 + 6 * 0.5 * 0.5) / 7), 0.05);
}

TEST(RHat, ADriftWithinOneChainIsSeen) {
  Autoregression noise(0, 9);
  const auto m =
      moments_of(1, 1, 1024, [&](int c, std::int64_t t, int) { return noise(c, 0, 0) + t / 512.0; });
  // Half chains' means are 1 apart: B = 1 / 2, and each half has the variance 1 + 1 / 12.
  EXPECT_NEAR(estimate(m).rhat_max, std::sqrt(1 + 0.5 / (1 + 1.0 / 12)), 0.05);
}

TEST(RHat, ShortBatchAtTheEndIsLeftOut) {
  Autoregression noise(0, 10);
  const auto x = [&](int, std::int64_t t, int) { return t >= 1024 ? 1000.0 : noise(0, 0, 0); };
  EXPECT_LT(estimate(moments_of(1, 1, 1030, x)).rhat_max, 1.02);
}

TEST(RHat, NestedForShortChains) {
  UnitMoments m = moments_of(1, 16, 128, Autoregression(0, 11));
  for (int c = 0; c < 16; ++c) m.superchain.push_back(c / 4);
  const Estimates good = estimate(m);
  EXPECT_TRUE(good.nested);
  EXPECT_GE(good.rhat_max, 1);
  EXPECT_LT(good.rhat_max, 1.05);

  // One superchain of four is 3 sd away: B = 9 / 4 of unit W.
  Autoregression noise(0, 12);
  UnitMoments stuck =
      moments_of(1, 16, 128, [&](int c, std::int64_t, int) { return noise(c, 0, 0) + (c < 4 ? 3 : 0); });
  stuck.superchain = m.superchain;
  EXPECT_NEAR(estimate(stuck).rhat_max, std::sqrt(1 + 9.0 / 4), 0.05);
  // Chains of one superchain that disagree among themselves have not forgotten their start, but know no
  // better.
  UnitMoments inside =
      moments_of(1, 16, 128, [&](int c, std::int64_t, int) { return noise(c, 0, 0) + (c % 4 == 0 ? 3 : 0); });
  inside.superchain = m.superchain;
  EXPECT_LT(estimate(inside).rhat_max, 1.05);

  // But chains that the user began at two points are each to have been at both.
  inside.known_starts = 2;
  EXPECT_FALSE(estimate(inside).nested);
  EXPECT_GT(estimate(inside).rhat_max, 1.5);
  stuck.known_starts = 2;
  EXPECT_NEAR(worst_rhat(stuck), std::sqrt(1 + 9.0 / 5), 0.1);  // chain by chain: B = 16 / 15 * 9 * 3 / 16
  m.known_starts = 2;
  EXPECT_LT(estimate(m).rhat_max, 1.05);
  // Of one batch, which cannot be split, too.
  UnitMoments one_batch =
      moments_of(1, 16, 100, [&](int c, std::int64_t, int) { return noise(c, 0, 0) + (c % 4 == 0 ? 3 : 0); });
  one_batch.superchain = m.superchain;
  one_batch.known_starts = 2;
  EXPECT_NEAR(estimate(one_batch).rhat_max, std::sqrt(1 + 9.0 / 5), 0.1);
  one_batch = moments_of(1, 16, 100, Autoregression(0, 11));
  one_batch.known_starts = 2;
  EXPECT_LT(estimate(one_batch).rhat_max, 1.05);
}

/// Mean inverse temperatures of chains that begin at several and move to the mean by 1 - correlation an iteration.
double beta_spread_of(double correlation, std::int64_t iterations = 960, int chains = 64) {
  UnitMoments m = moments_of(1, chains, iterations, Autoregression(0, 21));
  Autoregression moves(correlation, 22);
  for (int c = 0; c < chains; ++c)
    for (int b = 0; b < m.batches; ++b)
      m.sums[(std::size_t(c) * m.batches + b) * m.layout.rows() + MomentLayout::beta_mean] = 0;
  for (int c = 0; c < chains; ++c)
    for (std::int64_t t = 0; t < iterations; ++t)
      m.sums[(std::size_t(c) * m.batches + t / kBatch) * m.layout.rows() + MomentLayout::beta_mean] +=
          0.5 + 0.1 * moves(c, t, 0);
  return estimate(m).beta_spread;
}

TEST(BetaSpread, SaysWhetherChainsMoveBetweenTemperatures) {
  EXPECT_NEAR(beta_spread_of(0), 1, 4 * std::sqrt(2.0 / 63));
  EXPECT_LT(beta_spread_of(0.95), kMostSpread);
  EXPECT_LT(beta_spread_of(0.998, 8192), kMostSpread);  // eight times as long as beta remembers
  EXPECT_GT(beta_spread_of(0.9999), kMostSpread);
  EXPECT_GT(beta_spread_of(0.99999, 960, 8), kMostSpread);
  EXPECT_TRUE(std::isnan(beta_spread_of(0.9999, 192)));  // three batches
  EXPECT_TRUE(std::isnan(beta_spread_of(0.9999, 960, 7)));
  EXPECT_TRUE(std::isnan(estimate(moments_of(1, 8, 960, Autoregression(0, 23))).beta_spread));  // fixed
}

/// Gates of a long run of a sampler without a base that gave these estimates.
std::vector<std::string> gates_of(const Estimates& e) {
  ChainRunResult run;
  run.units.resize(1);
  run.units[0].iterations = 1000;
  return failed_gates(e, run, 0, SamplerConfig());
}

TEST(RHat, OneShortChainIsHeldAgainstItself) {
  UnitMoments m = moments_of(1, 1, 256, Autoregression(0, 13));
  m.superchain = {0};
  EXPECT_LT(estimate(m).rhat_max, 1.05);
  m = moments_of(1, 1, 64, Autoregression(0, 13));  // a single batch: nothing to hold it against
  m.superchain = {0};
  const Estimates e = estimate(m);
  EXPECT_TRUE(std::isnan(e.rhat_max));
  const auto failed = gates_of(e);
  EXPECT_NE(std::find(failed.begin(), failed.end(), "rhat"), failed.end());
}

TEST(Gates, EachFailsForItsOwnReason) {
  Estimates e;
  e.rhat_max = 1.01;
  e.acceptance = 0.7;
  e.divergence_rate = 0.001;
  e.weight_ess = 1000;
  e.mean.assign(10, 0.0);
  EXPECT_TRUE(gates_of(e).empty());
  const auto only = [&](auto change) {
    Estimates other = e;
    change(other);
    return gates_of(other);
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(only([](Estimates& o) { o.rhat_max = 1.06; }), Names{"rhat"});
  EXPECT_EQ(only([](Estimates& o) { o.rhat_max = NAN; }), Names{"rhat"});
  EXPECT_EQ(only([](Estimates& o) { o.rhat_max = 1.06, o.nested = true; }), Names{"nested_rhat"});
  EXPECT_EQ(only([](Estimates& o) { o.acceptance = 0.19; }), Names{"acceptance"});
  EXPECT_EQ(only([](Estimates& o) { o.acceptance = 0.995; }), Names{"acceptance"});
  EXPECT_EQ(only([](Estimates& o) { o.divergence_rate = 0.01; }), Names{"divergences"});
  EXPECT_EQ(only([](Estimates& o) { o.weight_ess = 99; }), Names{"weight_ess"});
  EXPECT_EQ(only([](Estimates& o) { o.weight_ess = NAN; }), Names{"weight_ess"});
}

}  // namespace
}  // namespace lockstep
