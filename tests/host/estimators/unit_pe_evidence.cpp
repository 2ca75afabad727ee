// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "host/estimators/pe_evidence.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

double log_tilted_integral(double a, double delta) { return TiltedIntegral(a).log(delta); }

/// log int_0^1 beta^a exp(bend(beta^(1/4)) - beta delta) d beta with beta = v^4, by the midpoint rule: the integrand is
/// smooth in v where 4 a + 3 is a whole number.
double by_midpoints(double a, const std::vector<double>& bend, double delta) {
  constexpr int kCells = 200000;
  const double top = std::max(0.0, -delta);
  double sum = 0;
  for (int k = 0; k < kCells; ++k) {
    const double v = (k + 0.5) / kCells, beta = std::pow(v, 4);
    double bent = 0;
    for (std::size_t j = 0; j < bend.size(); ++j) bent += bend[j] * std::pow(v, double(j + 1));
    sum += 4 * std::pow(v, 4 * a + 3) * std::exp(bent - beta * delta - top) / kCells;
  }
  return top + std::log(sum);
}

TEST(TiltedIntegral, AgreesWithClosedForms) {
  for (double a :
       {-0.99, -0.5, 0.0, 1.5, 40.0, 1000.0})  // the first and the last: ends of sampler.g_exponent
    EXPECT_NEAR(log_tilted_integral(a, 0), -std::log(a + 1), 1e-12 * (a + 2));
  for (double x : {1e-8, 1e-3, 0.4, 3.0, 30.0, 699.0, 1e5, 1e6}) {
    EXPECT_NEAR(log_tilted_integral(0, x), std::log(-std::expm1(-x) / x), 1e-11);
    EXPECT_NEAR(log_tilted_integral(0, -x), x + std::log(-std::expm1(-x) / x), 1e-11 * (1 + x));
    EXPECT_NEAR(log_tilted_integral(-0.5, x), std::log(std::sqrt(M_PI / x) * std::erf(std::sqrt(x))), 1e-11);
  }
  for (double a : {-0.99, -0.5, 1.5, 40.0, 1000.0})  // the tail beyond 1 is nothing
    EXPECT_NEAR(log_tilted_integral(a, 1e5), std::lgamma(a + 1) - (a + 1) * std::log(1e5), 1e-10 * (a + 2));
}

TEST(TiltedIntegral, AgreesWithMidpointsWhereGIsBent) {
  for (double a : {-0.5, 0.0, 1.5})
    for (const std::vector<double>& bend :
         std::vector<std::vector<double>>{{}, {0.5, -8, 3, 2}, {6.3, -49.9, 139, -95.5}, {1, 2}})
      for (double delta : {0.0, 1e-3, 0.7, 25.0, 100.0, -0.7, -25.0, -100.0}) {
        const double expected = by_midpoints(a, bend, delta);
        EXPECT_NEAR(TiltedIntegral(a, bend).log(delta), expected, 1e-6) << "a " << a << ", delta " << delta;
      }
}

TEST(TiltedIntegral, FallsWithDelta) {
  for (double a : {-0.5, 0.0, 1.5}) {
    double last = std::numeric_limits<double>::infinity();
    for (double delta = -1200; delta <= 1200; delta += 0.37) {
      const double value = log_tilted_integral(a, delta);
      ASSERT_LT(value, last) << "a " << a << ", delta " << delta;
      last = value;
    }
  }
}

/// g(beta) = beta^a exp(sum_k bend_k beta^(k/4)).
struct Prior {
  double a;
  std::vector<double> bend = {};
  double log_bent(double beta) const {
    double sum = 0;
    for (std::size_t k = 0; k < bend.size(); ++k) sum += bend[k] * std::pow(beta, 0.25 * double(k + 1));
    return sum;
  }
};

/// Exact pairs (x, beta) of q(x, beta) ~ gamma_beta(x) g(beta), gamma_beta = (target / zeta)^beta base^(1 -
/// beta), in one dimension: base N(0, 1), target exp(log_z) N(0.5, 1 / 2).
class Pairs {
 public:
  Pairs(Prior g, double log_z, double log_zeta) : g_(std::move(g)), shift_(log_z - log_zeta) {
    cumulative_.push_back(0);
    for (int k = 0; k < kCells; ++k) cumulative_.push_back(cumulative_.back() + density((k + 0.5) / kCells));
  }
  /// Delta = base - (target - log zeta) of one pair.
  double operator()(std::mt19937_64& random) const {
    const double u = std::uniform_real_distribution<double>(0, cumulative_.back())(random);
    const auto cell = std::upper_bound(cumulative_.begin(), cumulative_.end(), u) - cumulative_.begin() - 1;
    const double inside = (u - cumulative_[cell]) / (cumulative_[cell + 1] - cumulative_[cell]);
    const double beta = std::pow((double(cell) + inside) / kCells, 1 / (g_.a + 1));
    const double precision = beta * kTarget + (1 - beta) * kBase;
    const double x = beta * kTarget * kMean / precision +
                     std::normal_distribution<double>()(random) / std::sqrt(precision);
    return log_normal(x, 0, kBase) - (log_normal(x, kMean, kTarget) + shift_);
  }

 private:
  static constexpr int kCells = 1 << 14;
  static constexpr double kBase = 1, kTarget = 2, kMean = 0.5;  // precisions, and the target's mean
  static double log_normal(double x, double mean, double precision) {
    return 0.5 * std::log(precision / (2 * M_PI)) - 0.5 * precision * (x - mean) * (x - mean);
  }
  /// Of v = beta^(a + 1), which takes the factor beta^a away: int gamma_beta(x) dx, bent.
  double density(double v) const {
    const double beta = std::pow(v, 1 / (g_.a + 1)), precision = beta * kTarget + (1 - beta) * kBase;
    // The exponent is a parabola in x with this curvature; its top is at x = beta kTarget kMean / precision.
    const double top = beta * kTarget * kMean / precision;
    return std::exp(beta * (log_normal(top, kMean, kTarget) + shift_) +
                    (1 - beta) * log_normal(top, 0, kBase) + g_.log_bent(beta) +
                    0.5 * std::log(2 * M_PI / precision));
  }
  Prior g_;
  double shift_;
  std::vector<double> cumulative_;
};

class EvidenceOfPairs : public ::testing::TestWithParam<Prior> {};

TEST_P(EvidenceOfPairs, UnbiasedWithHonestErrors) {
  constexpr int kReplicates = 200, kBlocks = 64, kPairs = 80;
  constexpr double kLogZ = -7.25, kLogZeta = -7;
  const Pairs pairs(GetParam(), kLogZ, kLogZeta);
  std::mt19937_64 random(20260201);
  std::uniform_real_distribution<double> uniform;
  testing::RunningMean z;
  for (int r = 0; r < kReplicates; ++r) {
    PseudoExtendedEvidence evidence({GetParam().a, GetParam().bend}, kBlocks);
    // A weight that does not depend on the pair changes nothing but the variance.
    for (int b = 0; b < kBlocks; ++b)
      for (int p = 0; p < kPairs; ++p) evidence.add(b, 0.25 + 0.75 * uniform(random), pairs(random));
    const LogZ value = evidence.value(kLogZeta);
    ASSERT_TRUE(std::isfinite(value.estimate));
    ASSERT_GT(value.se, 0);
    ASSERT_LT(value.se, 0.2);
    z.add((value.estimate - kLogZ) / value.se);
  }
  const double limit = testing::family_quantile(1e-4, 2);
  EXPECT_LT(std::abs(z.mean()), limit / std::sqrt(kReplicates));
  // The sd of n normals has standard error 1 / sqrt(2 n); 63 degrees of freedom in each se add 1/126 to it.
  EXPECT_NEAR(std::sqrt(z.variance()), 1, limit / std::sqrt(2.0 * kReplicates) + 0.01);
}
INSTANTIATE_TEST_SUITE_P(Exponents, EvidenceOfPairs,
                         ::testing::Values(Prior{-0.5}, Prior{0}, Prior{1.5}, Prior{0, {1, -6, 2, 4}}));

TEST(PseudoExtendedEvidence, KnownRatioOfEqualPairs) {
  // Every pair has the same Delta, so that log Z = log zeta - Delta without error, however large Delta is.
  for (double delta : {0.0, 3.0, -3.0, 2000.0, -2000.0}) {
    PseudoExtendedEvidence evidence(-0.5, 4);
    for (int k = 0; k < 40; ++k) evidence.add(k % 4, 0.1 + 0.01 * k, delta);
    EXPECT_NEAR(evidence.value(2).estimate, 2 - delta, 1e-9 * (1 + std::abs(delta)));
    EXPECT_NEAR(evidence.value(2).se, 0, 1e-9 * (1 + std::abs(delta)));
  }
}

TEST(PseudoExtendedEvidence, WeightsCountAsMultiplicities) {
  PseudoExtendedEvidence weighted(0, 2), repeated(0, 2);
  for (int b = 0; b < 2; ++b) {
    weighted.add(b, 3, 0.5 + b);
    weighted.add(b, 1, -2);
    for (int k = 0; k < 3; ++k) repeated.add(b, 1, 0.5 + b);
    repeated.add(b, 1, -2);
  }
  EXPECT_NEAR(weighted.value(0).estimate, repeated.value(0).estimate, 1e-14);
  EXPECT_NEAR(weighted.value(0).se, repeated.value(0).se, 1e-14);
}

TEST(PseudoExtendedEvidence, IgnoresWhatIsNoPair) {
  PseudoExtendedEvidence clean(0, 2), dirty(0, 2);
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 10; ++k) {
    clean.add(k % 2, 1, 0.1 * k);
    dirty.add(k % 2, 1, 0.1 * k);
    dirty.add(k % 2, 0, 5);
    dirty.add(k % 2, nan, 5);
    dirty.add(k % 2, 1, nan);
    dirty.add(k % 2, 1, inf);
    dirty.add(k % 2, 1, -inf);
  }
  EXPECT_EQ(clean.value(0).estimate, dirty.value(0).estimate);
  EXPECT_EQ(clean.value(0).se, dirty.value(0).se);
}

/// Of a base a share p lies where the target is as high, and the rest where it is nothing, which pairs never meet.
TEST(PseudoExtendedEvidence, BridgeCountsWhatPairsNeverMeet) {
  constexpr int kReplicates = 400, kDraws = 500;
  constexpr double kShare = 0.6, kNothing = 1e12, kLogZeta = 2;
  const TiltedIntegral integral(-0.5);
  std::mt19937_64 random(20261130);
  std::bernoulli_distribution inside(kShare);
  testing::RunningMean z;
  for (int r = 0; r < kReplicates; ++r) {
    std::vector<double> deltas;
    for (int n = 0; n < kDraws; ++n) deltas.push_back(inside(random) ? 0 : kNothing);
    PseudoExtendedEvidence evidence(integral, 4, BaseBridge(integral, deltas));
    for (int k = 0; k < 40; ++k) evidence.add(k % 4, 1, 0);
    const LogZ value = evidence.value(kLogZeta);
    z.add((value.estimate - kLogZeta - std::log(kShare)) / value.se);
  }
  const double limit = testing::family_quantile(1e-4, 2);
  EXPECT_LT(std::abs(z.mean()), limit / std::sqrt(kReplicates));
  EXPECT_NEAR(std::sqrt(z.variance()), 1, limit / std::sqrt(2.0 * kReplicates));
}

TEST(PseudoExtendedEvidence, BridgeAddsNextToNothingWherePairsAreEverywhere) {
  const TiltedIntegral integral(-0.5);
  std::vector<double> deltas;
  for (int n = 0; n < 4096; ++n) deltas.push_back(3 * std::sin(n));
  const BaseBridge bridge(integral, deltas);
  EXPECT_NEAR(bridge.log_share, -0.01, 0.01);
  const double least = 1 / (1 + std::exp(bridge.log_least - integral.log(3)));  // of all shares
  EXPECT_LT(bridge.se, 0.5 * (1 - least) / least / std::sqrt(4095.0));
  // Where all draws are behind the wall nobody knows how much of the base is not.
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::isnan(BaseBridge(integral, std::vector{nan, inf}).log_share));
}

TEST(PseudoExtendedEvidence, EmptyBlocksDoNotCount) {
  // A short run of one chain fills a few of its blocks only; the error is that of the blocks it fills.
  PseudoExtendedEvidence few(0, 4), many(0, 64);
  for (int k = 0; k < 40; ++k) {
    few.add(k % 4, 1, std::sin(k));
    many.add(16 * (k % 4), 1, std::sin(k));
  }
  EXPECT_NEAR(many.value(0).estimate, few.value(0).estimate, 1e-13);
  EXPECT_NEAR(many.value(0).se, few.value(0).se, 1e-13);
  PseudoExtendedEvidence one(0, 4);
  one.add(2, 1, 0.5);
  EXPECT_TRUE(std::isnan(one.value(0).se));  // one block has no scatter
}

}  // namespace
}  // namespace lockstep
