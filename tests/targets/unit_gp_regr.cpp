// SPDX-License-Identifier: Apache-2.0
// Target gp_regr: its density held to dense linear algebra, its truth to posteriordb's reference draws.
#include "targets/gp_regr.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "targets/decompositions.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"
#include "tests/support/posteriordb.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

MemoryInput points(const std::vector<double>& x, const std::vector<double>& y) {
  MemoryInput in;
  in.arrays["x"] = {x, {int(x.size())}};
  in.arrays["y"] = {y, {int(y.size())}};
  return in;
}
/// As many as are taken.
MemoryInput most_points() {
  ExactDraw random(2);
  std::vector<double> x, y;
  for (int i = 0; i < 32; ++i) {
    x.push_back(6 * random.normal());
    y.push_back(std::sin(x.back() / 4) + random.normal());
  }
  return points(x, y);
}

/// log density and gradient by explicit matrices.
double by_matrices(const MemoryInput& in, const Point& t, Point& g) {
  const auto &x = in.arrays.at("x").values, &y = in.arrays.at("y").values;
  const Eigen::Index n = Eigen::Index(x.size());
  const double rho = std::exp(t[0]), alpha = std::exp(t[1]), sigma = std::exp(t[2]);
  MatrixXd smooth(n, n), by_rho(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j) {
      const double d = x[i] - x[j];
      smooth(i, j) = alpha * alpha * std::exp(-d * d / (2 * rho * rho));
      by_rho(i, j) = smooth(i, j) * d * d / (rho * rho);
    }
  const MatrixXd k = smooth + sigma * MatrixXd::Identity(n, n);
  const Eigen::LLT<MatrixXd> factor(k);
  const VectorXd b = factor.solve(Eigen::Map<const VectorXd>(y.data(), n));
  const MatrixXd half = 0.5 * (b * b.transpose() - factor.solve(MatrixXd::Identity(n, n)));
  g = {(half * by_rho).trace() + 25 - 4 * rho, 2 * (half * smooth).trace() + 1 - alpha * alpha / 4,
       sigma * half.trace() + 1 - sigma * sigma};
  double value = -0.5 * double(n) * std::log(2 * kPi) - factor.matrixLLT().diagonal().array().log().sum() -
                 0.5 * b.dot(k * b);
  value += 25 * std::log(4.0) - std::lgamma(25.0) + 24 * t[0] - 4 * rho + t[0];  // Gamma(25, 4)
  value += std::log(2 / (2 * std::sqrt(2 * kPi))) - alpha * alpha / 8 + t[1];    // N+(0, 2)
  return value + std::log(2 / std::sqrt(2 * kPi)) - sigma * sigma / 2 + t[2];    // N+(0, 1)
}

TEST(GpRegr, EqualsDenseLinearAlgebra) {
  for (const MemoryInput& in : {six_points(), points({0, 1}, {2, 3}), most_points()}) {
    const SubjectOf<GpRegrTarget> s(in);
    auto all = typical_points(s, 50, 5);
    for (const Point& x : scaled_points(s, 30, 2, 6)) all.push_back(x);
    for (const Point& x : all) {
      Point g, expected;
      const double f = s.log_density(x, &g), value = by_matrices(in, x, expected);
      // Factors of K lose what its condition, at most 1 + n alpha^2 / sigma, takes.
      const double lost = 1e-15 * (1 + double(in.arrays.at("x").values.size()) * std::exp(2 * x[1] - x[2]));
      ASSERT_NEAR(f, value, 20 * lost * value_condition(f, g, x));
      const Point condition = gradient_condition(s, x);
      for (int i = 0; i < 3; ++i) ASSERT_NEAR(g[i], expected[i], 20 * lost * condition[i]) << i;
      const Point q = s.quantities(x);
      for (int i = 0; i < 3; ++i) ASSERT_DOUBLE_EQ(q[i], std::exp(x[i]));
    }
  }
}

TEST(GpRegrTruth, EqualsAQuadratureOfTheDensityOverABox) {
  const MemoryInput in = six_points();
  const SubjectOf<GpRegrTarget> s(in);
  const Truth& t = s.target->truth();
  double mass = 0, first[3] = {}, second[9] = {}, scales[3] = {};
  // rho's prior alone is 1e-12 of its top at the ends; alpha and sigma fall like themselves below, faster above.
  const double low[] = {0.5, -12, -14}, high[] = {2.9, 2.7, 2.1};
  const int n[] = {60, 120, 120};
  double cell = 1;
  for (int i = 0; i < 3; ++i) cell *= (high[i] - low[i]) / n[i];
  Point x(3), unused;
  for (int a = 0; a < n[0]; ++a)
    for (int b = 0; b < n[1]; ++b)
      for (int c = 0; c < n[2]; ++c) {
        const int at[] = {a, b, c};
        for (int i = 0; i < 3; ++i) x[i] = low[i] + (at[i] + 0.5) * (high[i] - low[i]) / n[i];
        const double p = std::exp(s.value(x) - t.log_z) * cell;
        mass += p;
        for (int i = 0; i < 3; ++i) {
          first[i] += p * x[i];
          scales[i] += p * std::exp(x[i]);
          for (int j = 0; j < 3; ++j) second[3 * i + j] += p * x[i] * x[j];
        }
      }
  EXPECT_NEAR(mass, 1, 2e-5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(t.mean[i], first[i] / mass, 2e-4 * std::sqrt(t.variance(i)));
    EXPECT_NEAR(t.quantities[i], scales[i] / mass, 1e-4 * t.quantities[i]);
    for (int j = 0; j < 3; ++j)
      EXPECT_NEAR(t.covariance[3 * i + j], second[3 * i + j] / mass - first[i] * first[j] / mass / mass,
                  2e-3 * std::sqrt(t.variance(i) * t.variance(j)));
  }
}

TEST(GpRegrInput, EveryMistakeIsNamed) {
  EXPECT_THAT(build_complaint<GpRegrTarget>(points({1, 2}, {1, 2, 3})),
              HasSubstr("x has 2 entries and y has 3"));
  EXPECT_THAT(build_complaint<GpRegrTarget>(points({1}, {1})), HasSubstr("y has one entry"));
  EXPECT_THAT(build_complaint<GpRegrTarget>(points({}, {})), HasSubstr("y is no plain list"));
  EXPECT_THAT(build_complaint<GpRegrTarget>(points(std::vector<double>(33, 1), std::vector<double>(33, 1))),
              HasSubstr("at most 32"));
  EXPECT_THAT(build_complaint<GpRegrTarget>(points({1, 1e7}, {1, 2})),
              HasSubstr("entry 2 of x or y is beyond"));
  MemoryInput both = six_points();
  both.numbers["points"] = 5;
  EXPECT_THAT(build_complaint<GpRegrTarget>(both), HasSubstr("beside data"));
}

// --- shared data (posteriordb: 10,000 nearly independent draws by NUTS) ----------------------------------

TEST(GpRegrTruth, AgreesWithReferenceDraws) {
  MemoryInput in = posteriordb_input("gp_pois_regr", {"x", "y"});
  if (in.arrays.empty()) GTEST_SKIP() << "the reference draws are not compared: see $LOCKSTEP_DATA";
  expect_reference_draws(GpRegrTarget::build(in).truth, "gp_pois_regr-gp_regr", [](Point& x) {
    x = {std::log(x[1]), std::log(x[0]), std::log(x[2])};  // names sort as alpha, rho, sigma
  });
}

}  // namespace
}  // namespace lockstep::testing
