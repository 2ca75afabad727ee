// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "host/estimators/pe_evidence.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

/// log int_0^1 beta^a exp(-beta delta) d beta with beta = 1 / (1 + exp(-t)) and t = (pi / 2) sinh(s): the
/// doubly exponential rule, in logarithms so that nothing overflows. Its error falls below rounding at h =
/// 1/256.
double quadrature(double a, double delta) {
  const double h = 1.0 / 256;
  std::vector<double> terms;
  const auto log_sigmoid = [](double t) { return std::min(t, 0.0) - std::log1p(std::exp(-std::abs(t))); };
  for (int k = -9 * 256; k <= 9 * 256; ++k) {
    const double s = k * h, t = M_PI_2 * std::sinh(s);
    const double log_beta = log_sigmoid(t), log_rest = log_sigmoid(-t);  // of beta and 1 - beta
    const double exponent = (a + 1) * log_beta + log_rest + std::log(M_PI_2 * std::cosh(s));
    // For delta < 0 the value at beta = 1 is taken out: exp(-beta delta) = exp(-delta) exp((1 - beta) delta).
    terms.push_back(exponent + (delta >= 0 ? -std::exp(log_beta) * delta : std::exp(log_rest) * delta));
  }
  const double top = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (double v : terms) sum += std::exp(v - top);
  return top + std::log(sum * h) + (delta < 0 ? -delta : 0);
}

TEST(LogTiltedIntegral, QuadratureOfKnownIntegrals) {
  for (double a : {-0.5, 0.0, 1.5}) EXPECT_NEAR(quadrature(a, 0), -std::log(a + 1), 1e-12);
  EXPECT_NEAR(quadrature(0, 3), std::log((1 - std::exp(-3.0)) / 3), 1e-12);
  EXPECT_NEAR(quadrature(0, -3), std::log((std::exp(3.0) - 1) / 3), 1e-12);
  EXPECT_NEAR(quadrature(-0.5, 2), std::log(std::sqrt(M_PI / 2) * std::erf(std::sqrt(2.0))), 1e-12);
  EXPECT_NEAR(quadrature(-0.5, 1e5), 0.5 * std::log(M_PI / 1e5), 1e-12);
}

TEST(LogTiltedIntegral, AgreesWithQuadrature) {
  std::vector<double> sizes = {0, 1e-300, 1e-8, 1e-3, 100.4, 100.6, 699.9, 700.1, 102.4, 102.6};
  for (double x = 0.01; x <= 1.01e5; x *= std::pow(10.0, 0.25)) sizes.push_back(x);
  // -0.99 and 1000 are the ends of what sampler.g_exponent takes.
  for (double a : {-0.99, -0.5, 0.0, 1.5, 40.0, 1000.0})
    for (double x : sizes)
      for (double delta : {x, -x}) {
        const double expected = quadrature(a, delta);
        EXPECT_NEAR(log_tilted_integral(a, delta), expected, 1e-10 * std::max(1.0, std::abs(expected)))
            << "a " << a << ", delta " << delta;
      }
}

TEST(LogTiltedIntegral, FallsWithDelta) {
  for (double a : {-0.5, 0.0, 1.5}) {
    double last = std::numeric_limits<double>::infinity();
    for (double delta = -1200; delta <= 1200; delta += 0.37) {  // across every change of method
      const double value = log_tilted_integral(a, delta);
      ASSERT_LT(value, last) << "a " << a << ", delta " << delta;
      last = value;
    }
  }
}

/// Exact pairs (x, beta) of q(x, beta) ~ gamma_beta(x) beta^a, gamma_beta = (target / zeta)^beta base^(1 -
/// beta), in one dimension: base N(0, 1), target exp(log_z) N(0.5, 1 / 2).
class Pairs {
 public:
  Pairs(double a, double log_z, double log_zeta) : a_(a), shift_(log_z - log_zeta) {
    cumulative_.push_back(0);
    for (int k = 0; k < kCells; ++k) cumulative_.push_back(cumulative_.back() + density((k + 0.5) / kCells));
  }
  /// Delta = base - (target - log zeta) of one pair.
  double operator()(std::mt19937_64& random) const {
    const double u = std::uniform_real_distribution<double>(0, cumulative_.back())(random);
    const auto cell = std::upper_bound(cumulative_.begin(), cumulative_.end(), u) - cumulative_.begin() - 1;
    const double inside = (u - cumulative_[cell]) / (cumulative_[cell + 1] - cumulative_[cell]);
    const double beta = std::pow((double(cell) + inside) / kCells, 1 / (a_ + 1));
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
  /// Of v = beta^(a + 1), which takes the factor beta^a away: int gamma_beta(x) dx.
  double density(double v) const {
    const double beta = std::pow(v, 1 / (a_ + 1)), precision = beta * kTarget + (1 - beta) * kBase;
    // The exponent is a parabola in x with this curvature; its top is at x = beta kTarget kMean / precision.
    const double top = beta * kTarget * kMean / precision;
    return std::exp(beta * (log_normal(top, kMean, kTarget) + shift_) +
                    (1 - beta) * log_normal(top, 0, kBase) + 0.5 * std::log(2 * M_PI / precision));
  }
  double a_, shift_;
  std::vector<double> cumulative_;
};

class EvidenceOfPairs : public ::testing::TestWithParam<double> {};

TEST_P(EvidenceOfPairs, UnbiasedWithHonestErrors) {
  constexpr int kReplicates = 200, kBlocks = 64, kPairs = 80;
  constexpr double kLogZ = -7.25, kLogZeta = -7;
  const Pairs pairs(GetParam(), kLogZ, kLogZeta);
  std::mt19937_64 random(20260201);
  std::uniform_real_distribution<double> uniform;
  testing::RunningMean z;
  for (int r = 0; r < kReplicates; ++r) {
    PseudoExtendedEvidence evidence(GetParam(), kBlocks);
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
INSTANTIATE_TEST_SUITE_P(Exponents, EvidenceOfPairs, ::testing::Values(-0.5, 0.0, 1.5));

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
