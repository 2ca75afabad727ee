// SPDX-License-Identifier: Apache-2.0
// Target ark: its density held to the model term by term, its truth to quadrature by dense algebra and to posteriordb's
// reference draws.
#include "targets/ark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"
#include "tests/support/posteriordb.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

MemoryInput series(const std::vector<double>& y, int order) {
  MemoryInput in;
  in.arrays["y"] = {y, {int(y.size())}};
  in.arrays["K"] = {{double(order)}, {1}};
  return in;
}
std::vector<double> noisy(int length, std::uint64_t seed) {
  ExactDraw random(seed);
  std::vector<double> y = {0};
  while (int(y.size()) < length) y.push_back(0.3 + 0.8 * y.back() + 0.4 * random.normal());
  return y;
}

/// log density and gradient, each term by itself.
double by_term(const MemoryInput& in, const Point& x, Point& g) {
  const auto& y = in.arrays.at("y").values;
  const int order = int(in.arrays.at("K").values[0]), n = order + 1;
  const double sigma = std::exp(x[n]), q = sigma * sigma / 6.25;
  double value = std::log(2 / (kPi * 2.5 * (1 + q))) + x[n];
  g.assign(x.size(), 0.0);
  g[n] = 1 - 2 * q / (1 + q);
  for (int i = 0; i < n; ++i) {
    value += -0.5 * std::log(2 * kPi * 100) - x[i] * x[i] / 200;
    g[i] -= x[i] / 100;
  }
  for (std::size_t t = order; t < y.size(); ++t) {
    double z = y[t] - x[0];
    for (int k = 1; k <= order; ++k) z -= x[k] * y[t - k];
    z /= sigma;
    value += -0.5 * std::log(2 * kPi) - x[n] - 0.5 * z * z;
    g[0] += z / sigma;
    for (int k = 1; k <= order; ++k) g[k] += z / sigma * y[t - k];
    g[n] += z * z - 1;
  }
  return value;
}

TEST(Ark, EqualsTheModelTermByTerm) {
  for (const MemoryInput& in :
       {series(noisy(60, 1), 5), series(noisy(9, 2), 3), series({1, 3, 2}, 2), short_series()}) {
    const SubjectOf<ArkTarget> s(in);
    auto points = typical_points(s, 50, 5);
    for (const Point& x : scaled_points(s, 50, 4, 6)) points.push_back(x);
    for (const Point& x : points) {
      Point g, expected;
      const double f = s.log_density(x, &g), value = by_term(in, x, expected);
      const Point condition = gradient_condition(s, x);
      ASSERT_NEAR(f, value, 1e-13 * value_condition(f, g, x));
      for (int i = 0; i < s.dim(); ++i) ASSERT_NEAR(g[i], expected[i], 1e-12 * condition[i]) << i;
      ASSERT_DOUBLE_EQ(s.quantities(x)[0], std::exp(x[s.dim() - 1]));
    }
  }
}

/// p(y, log sigma) and theta given both, from y = Z theta + noise by dense algebra in the space of y.
TEST(ArkTruth, EqualsAQuadratureByDenseAlgebra) {
  for (const MemoryInput& in : {series(noisy(60, 1), 5), short_series(), series({1, 3, 2}, 2)}) {
    const auto& y = in.arrays.at("y").values;
    const int order = int(in.arrays.at("K").values[0]), n = order + 1, rows = int(y.size()) - order;
    MatrixXd z(rows, n);
    VectorXd v(rows);
    for (int t = 0; t < rows; ++t) {
      v[t] = y[t + order];
      for (int k = 0; k < n; ++k) z(t, k) = k == 0 ? 1 : y[t + order - k];
    }
    double mass = 0, sigma_sum = 0;
    VectorXd first = VectorXd::Zero(n + 1), mean(n + 1);
    MatrixXd second = MatrixXd::Zero(n + 1, n + 1);
    constexpr double step = 0.02;
    for (double l = -40; l < 40; l += step) {
      MatrixXd marginal = 100 * z * z.transpose();
      marginal.diagonal().array() += std::exp(2 * l);
      const Eigen::LDLT<MatrixXd> factor(marginal);
      const MatrixXd gain = 100 * factor.solve(z).transpose();
      const double s = std::exp(l) / 2.5;
      const double log_p =
          -0.5 * (rows * std::log(2 * kPi) + factor.vectorD().array().log().sum() + v.dot(factor.solve(v))) +
          std::log(2 / kPi / (1 + s * s)) + std::log(s);
      // Below, the matrix loses sigma; the density falls like sigma or faster there.
      if (l < -8 && rows > n) continue;
      if (!std::isfinite(log_p)) continue;
      const double p = std::exp(log_p);
      mean << gain * v, l;
      mass += p;
      sigma_sum += p * std::exp(l);
      first += p * mean;
      second += p * mean * mean.transpose();
      second.topLeftCorner(n, n) += p * (100 * MatrixXd::Identity(n, n) - gain * (100 * z));
    }
    MemoryInput copy = in;
    const Truth truth = ArkTarget::build(copy).truth;
    EXPECT_NEAR(truth.log_z, std::log(mass * step), 1e-6);
    auto sd = [&](int i) { return std::sqrt(truth.variance(i)); };
    for (int i = 0; i <= n; ++i) {
      EXPECT_NEAR(truth.mean[i], first[i] / mass, 1e-5 * sd(i)) << i;
      for (int j = 0; j <= n; ++j)
        EXPECT_NEAR(truth.covariance[i * (n + 1) + j],
                    second(i, j) / mass - first[i] / mass * first[j] / mass, 1e-5 * sd(i) * sd(j))
            << i << ", " << j;
    }
    if (rows > n) {
      EXPECT_NEAR(truth.quantities[0], sigma_sum / mass, 1e-6 * truth.quantities[0]);
    }
  }
}

TEST(Ark, NamesAndSimulatedSeries) {
  MemoryInput in;
  in.numbers["length"] = 2000;
  const auto built = ArkTarget::build(in);
  EXPECT_EQ(built.names, (std::vector<std::string>{"alpha", "beta[1]", "beta[2]", "beta[3]", "beta[4]",
                                                   "beta[5]", "log_sigma"}));
  const double truth[] = {0.1, 0.4, 0.2, 0.1, 0.05, 0.025, std::log(0.5)};
  for (int i = 0; i < 7; ++i)
    EXPECT_NEAR(built.truth.mean[i], truth[i], 4 * std::sqrt(built.truth.variance(i))) << i;
}

TEST(ArkInput, EveryMistakeIsNamed) {
  auto complaint = [](const std::vector<double>& y, double order) {
    MemoryInput in;
    in.arrays["y"] = {y, {int(y.size())}};
    in.arrays["K"] = {{order}, {1}};
    return build_complaint<ArkTarget>(in);
  };
  EXPECT_THAT(complaint({1, 2, 3}, 3), HasSubstr("y has 3 entries"));
  EXPECT_THAT(complaint({1, 2, 3}, 1.5), HasSubstr("K is no whole number"));
  EXPECT_THAT(complaint({1, 2, 3}, 101), HasSubstr("from 1 to 100"));
  EXPECT_THAT(complaint({}, 2), HasSubstr("y is no plain list"));
  EXPECT_THAT(complaint({1, NAN}, 1), HasSubstr("entry 2 of y is no finite number"));
  // Fitted exactly: a constant, zeros, a geometric series.
  EXPECT_THAT(complaint({3, 3, 3, 3, 3, 3}, 2), HasSubstr("fitted exactly"));
  EXPECT_THAT(complaint({0, 0, 0, 0, 0}, 1), HasSubstr("fitted exactly"));
  EXPECT_THAT(complaint({1, 2, 4, 8, 16, 32}, 1), HasSubstr("fitted exactly"));
  MemoryInput both = short_series();
  both.numbers["length"] = 30;
  EXPECT_THAT(build_complaint<ArkTarget>(both), HasSubstr("beside data"));
}

// --- shared data (posteriordb: 10,000 nearly independent draws by NUTS) ----------------------------------

TEST(ArkTruth, AgreesWithReferenceDraws) {
  MemoryInput in = posteriordb_input("arK", {"y", "K"});
  if (in.arrays.empty()) GTEST_SKIP() << "the reference draws are not compared: see $LOCKSTEP_DATA";
  // Names sort as alpha, beta[1], .., sigma: the order of the state.
  expect_reference_draws(ArkTarget::build(in).truth, "arK-arK", [](Point& x) { x[6] = std::log(x[6]); });
}

}  // namespace
}  // namespace lockstep::testing
