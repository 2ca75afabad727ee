// SPDX-License-Identifier: Apache-2.0
// Target eight_schools: its density held to the model school by school, its truth to dense linear algebra and
// to posteriordb's reference draws.
#include "targets/eight_schools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cstdlib>
#include <sstream>

#include "targets/decompositions.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"
#include "tests/support/run_python.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

MemoryInput schools(const std::vector<double>& y, const std::vector<double>& sigma) {
  MemoryInput in;
  in.arrays["y"] = {y, {int(y.size())}};
  in.arrays["sigma"] = {sigma, {int(sigma.size())}};
  return in;
}

/// log density and gradient in x = (mu, log tau, t), each factor by itself.
double by_school(const MemoryInput& in, const Point& x, Point& g) {
  const auto &y = in.arrays.at("y").values, &sigma = in.arrays.at("sigma").values;
  const double tau = std::exp(x[1]), q = tau * tau / 25;
  double value = -0.5 * std::log(2 * kPi * 25) - x[0] * x[0] / 50;
  value += std::log(2 / (kPi * 5 * (1 + q))) + x[1];
  g = {-x[0] / 25, 1 - 2 * q / (1 + q)};
  for (std::size_t j = 0; j < y.size(); ++j) {
    const double t = x[2 + j], z = (y[j] - x[0] - tau * t) / sigma[j];
    value += -0.5 * std::log(2 * kPi) - 0.5 * t * t;
    value += -0.5 * std::log(2 * kPi) - std::log(sigma[j]) - 0.5 * z * z;
    g[0] += z / sigma[j];
    g[1] += tau * t * z / sigma[j];
    g.push_back(tau * z / sigma[j] - t);
  }
  return value;
}

/// Whatever the numbers, the truth is found, unknown or refused, and soon.
TEST(EightSchools, ExtremeDataHaveAnEnd) {
  for (double y : {0.0, 1e-300, 1e10, 1e77, 1e150, 1e154, 1e300})
    for (double sigma : {1e-320, 1e-300, 1e-150, 1e-10, 1e10, 1e150, 1e300})
      for (double other : {0.0, y}) {
        try {
          const Built<EightSchools> built = [&] {
            MemoryInput in = schools({y, other}, {sigma, sigma});
            return EightSchoolsTarget::build(in);
          }();
          EXPECT_EQ(bool(built.draw), std::isfinite(built.truth.log_z)) << y << " " << sigma;
        } catch (const UserError& error) {
          EXPECT_THAT(error.what(), HasSubstr("Rescale"));
        }
      }
}

TEST(EightSchools, EqualsTheModelSchoolBySchool) {
  for (const MemoryInput& in : {eight_schools(), schools({3}, {2}), schools({1, -40, 900}, {0.5, 10, 30})}) {
    const SubjectOf<EightSchoolsTarget> s(in);
    auto points = typical_points(s, 50, 5);
    for (const Point& x : scaled_points(s, 50, 5, 6)) points.push_back(x);
    for (const Point& x : points) {
      Point g, expected;
      const double f = s.log_density(x, &g), value = by_school(in, x, expected);
      const Point condition = gradient_condition(s, x);
      ASSERT_NEAR(f, value, 1e-14 * value_condition(f, g, x));
      for (int i = 0; i < s.dim(); ++i) ASSERT_NEAR(g[i], expected[i], 1e-14 * condition[i]) << i;
      const Point q = s.quantities(x);
      ASSERT_DOUBLE_EQ(q[0], std::exp(x[1]));
      for (int j = 0; j + 2 < s.dim(); ++j)
        ASSERT_NEAR(q[1 + j], x[0] + q[0] * x[2 + j], 1e-14 * (std::abs(x[0]) + q[0] * std::abs(x[2 + j])));
    }
  }
}

TEST(EightSchools, HasRubinsDataByItself) {
  const SubjectOf<EightSchoolsTarget> standard({}), given(eight_schools());
  EXPECT_EQ(standard.dim(), 10);
  EXPECT_EQ(standard.target->truth().log_z, given.target->truth().log_z);
  EXPECT_EQ(standard.value(Point(10, 0.7)), given.value(Point(10, 0.7)));
  EXPECT_EQ(standard.target->quantities()[0], "tau");
  EXPECT_EQ(standard.target->names()[0], "mu");
  EXPECT_EQ(standard.target->names()[1], "log_tau");
  EXPECT_EQ(standard.target->names()[9], "t[7]");
  EXPECT_EQ(standard.target->quantities()[8], "theta[7]");
}

/// z = (mu / 5, t) ~ N(0, I), y = H z + noise: log p(y, log tau), and the rest given both, by dense algebra.
struct DenseSchools {
  VectorXd y, sigma, mean;
  MatrixXd covariance;  // of (mu, t)
  explicit DenseSchools(const MemoryInput& in)
      : y(Eigen::Map<const VectorXd>(in.arrays.at("y").values.data(), in.arrays.at("y").shape[0])),
        sigma(Eigen::Map<const VectorXd>(in.arrays.at("sigma").values.data(), y.size())) {}
  double solve(double log_tau) {
    const Eigen::Index n = y.size();
    MatrixXd h(n, n + 1);
    h << VectorXd::Constant(n, 5), std::exp(log_tau) * MatrixXd::Identity(n, n);
    MatrixXd marginal = h * h.transpose();
    marginal.diagonal() += sigma.cwiseAbs2();
    const Eigen::LLT<MatrixXd> factor(marginal);
    const MatrixXd gain = factor.solve(h).transpose();
    mean = gain * y;
    covariance = MatrixXd::Identity(n + 1, n + 1) - gain * h;
    mean[0] *= 5;
    covariance.row(0) *= 5;
    covariance.col(0) *= 5;
    const double tau = std::exp(log_tau);
    return -0.5 * double(n) * std::log(2 * kPi) - factor.matrixLLT().diagonal().array().log().sum() -
           0.5 * y.dot(factor.solve(y)) + std::log(2 / (kPi * 5 * (1 + tau * tau / 25))) + log_tau;
  }
};

TEST(EightSchoolsTruth, DenseAlgebraIsThatOfTheDensity) {
  // p(x, y) = p(log tau, y) p(mu, t | log tau, y), at any x.
  const SubjectOf<EightSchoolsTarget> s(eight_schools());
  DenseSchools dense(s.input);
  for (const Point& x : typical_points(s, 20, 1)) {
    double value = dense.solve(x[1]);
    VectorXd z(9);
    for (int i = 0; i < 9; ++i) z[i] = x[i == 0 ? 0 : i + 1] - dense.mean[i];
    const Eigen::LLT<MatrixXd> factor(dense.covariance);
    value -= 4.5 * std::log(2 * kPi) + 0.5 * z.dot(factor.solve(z)) +
             factor.matrixLLT().diagonal().array().log().sum();
    EXPECT_NEAR(s.value(x), value, 1e-9 * std::abs(value));
  }
}

TEST(EightSchoolsTruth, EqualsAQuadratureByDenseAlgebra) {
  for (const MemoryInput& in : {schools({3}, {2}), schools({-4, 9}, {1, 3}), eight_schools()}) {
    DenseSchools dense(in);
    const int n = int(dense.y.size()), dim = n + 2;
    double mass = 0, tau_sum = 0;
    VectorXd first = VectorXd::Zero(dim), mean(dim), theta = VectorXd::Zero(n);
    MatrixXd second = MatrixXd::Zero(dim, dim);
    constexpr double step = 0.05;
    // The density falls at least like exp(log tau) below, exp(-2 log tau) above; beyond are 1e-13 of it, and
    // 1e-7 of the integral of tau of one school, which falls like exp(-log tau) only.
    for (double l = -30; l < 16; l += step) {
      const double tau = std::exp(l), p = std::exp(dense.solve(l));
      mean << dense.mean[0], l, dense.mean.tail(n);
      MatrixXd square = mean * mean.transpose();
      for (int i = 0; i <= n; ++i)
        for (int j = 0; j <= n; ++j) square(i + (i > 0), j + (j > 0)) += dense.covariance(i, j);
      mass += p;
      tau_sum += p * tau;
      first += p * mean;
      second += p * square;
      for (int j = 0; j < n; ++j) theta[j] += p * (mean[0] + tau * mean[2 + j]);
    }
    MemoryInput copy = in;
    const Truth truth = EightSchoolsTarget::build(copy).truth;
    EXPECT_NEAR(truth.log_z, std::log(mass * step), 1e-10);
    auto sd = [&](int i) { return std::sqrt(truth.variance(i)); };
    for (int i = 0; i < dim; ++i) {
      EXPECT_NEAR(truth.mean[i], first[i] / mass, 1e-9 * sd(i)) << i;
      for (int j = 0; j < dim; ++j)
        EXPECT_NEAR(truth.covariance[i * dim + j], second(i, j) / mass - first[i] / mass * first[j] / mass,
                    1e-8 * sd(i) * sd(j))
            << i << ", " << j;
    }
    EXPECT_NEAR(truth.quantities[0], tau_sum / mass, 1e-6 * truth.quantities[0]);
    for (int j = 0; j < n; ++j) EXPECT_NEAR(truth.quantities[1 + j], theta[j] / mass, 1e-8 * dense.y.norm());
  }
}

TEST(EightSchoolsTruth, HoldsBeyondTheSizeOfFullCovariances) {
  // 1000 schools alike have one variance, that of 999 schools in the full matrix but for one in a thousand.
  const int sizes[] = {998, 1000};
  double variance[2], log_tau[2];
  for (int k = 0; k < 2; ++k) {
    std::vector<double> y(std::size_t(sizes[k]), 0.0);
    for (std::size_t j = 0; j < y.size(); ++j) y[j] = j % 2 == 0 ? 3 : -3;
    MemoryInput in = schools(y, std::vector<double>(y.size(), 2.0));
    const Truth truth = EightSchoolsTarget::build(in).truth;
    EXPECT_EQ(truth.covariance.size(), k == 0 ? 1000u * 1000u : 1002u);
    variance[k] = truth.variance(5);
    log_tau[k] = truth.variance(1);
  }
  EXPECT_NEAR(variance[1], variance[0], 5e-3 * variance[0]);
  EXPECT_NEAR(log_tau[1], log_tau[0], 5e-3 * log_tau[0]);
}

TEST(EightSchoolsInput, EveryMistakeIsNamed) {
  const MemoryInput good = eight_schools();
  auto complaint = [&](const std::string& name, DataArray array) {
    MemoryInput in = good;
    in.arrays[name] = std::move(array);
    return build_complaint<EightSchoolsTarget>(in);
  };
  EXPECT_THAT(complaint("sigma", {{1, 2}, {2}}), HasSubstr("sigma has 2 entries and y has 8"));
  EXPECT_THAT(complaint("sigma", {{1, 2, 3, 4, 5, 6, 7, 0}, {8}}),
              HasSubstr("entry 8 of sigma is not positive"));
  EXPECT_THAT(complaint("sigma", {{1, 2, 3, 4, 5, 6, -7, 1}, {8}}), HasSubstr("entry 7 of sigma"));
  EXPECT_THAT(complaint("y", {{1, 2, 3, 4}, {2, 2}}), HasSubstr("y is no plain list"));
  // A density that is zero everywhere once had a lattice without an end.
  for (double huge : {1e308, -1e308, 1e200})
    EXPECT_THAT(complaint("y", {{huge, 2, 3, 4, 5, 6, 7, 8}, {8}}), HasSubstr("zero in double precision"));
  EXPECT_THAT(complaint("sigma", {{1e300, 2, 3, 4, 5, 6, 7, 8}, {8}}), HasSubstr("Rescale"));
  EXPECT_THAT(complaint("y", {{}, {0}}), HasSubstr("y is no plain list"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(complaint("y", {{1, nan}, {2}}), HasSubstr("entry 2 of y is no finite number"));
  MemoryInput in = good;
  in.arrays.erase("sigma");
  EXPECT_THROW(EightSchoolsTarget::build(in), UserError);
}

// --- shared data (posteriordb: 10,000 nearly independent draws by NUTS) ----------------------------------

TEST(EightSchoolsTruth, AgreesWithReferenceDraws) {
  const char* root = std::getenv("LOCKSTEP_DATA");
  if (root == nullptr) GTEST_SKIP() << "LOCKSTEP_DATA is not set: the reference draws are not compared";
  const auto file =
      std::filesystem::path(root) / "posteriordb" / "eight_schools-eight_schools_noncentered.draws.json.zip";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " does not exist";
  const SubjectOf<EightSchoolsTarget> s({});
  const Truth& truth = s.target->truth();
  std::istringstream text(run_python("posteriordb_draws.py", file));
  std::string header;
  std::getline(text, header);
  ASSERT_EQ(header, "mu tau theta[1] theta[2] theta[3] theta[4] theta[5] theta[6] theta[7] theta[8]");
  std::vector<RunningMean> mean(10), covariance(100), quantity(9);
  double mu, tau, theta;
  Point x(10);
  while (text >> mu >> tau) {
    x[0] = mu;
    x[1] = std::log(tau);
    for (int j = 0; j < 8; ++j) {
      text >> theta;
      x[2 + j] = (theta - mu) / tau;
    }
    for (int i = 0; i < 10; ++i) {
      mean[i].add(x[i]);
      for (int j = 0; j <= i; ++j)
        covariance[i * 10 + j].add((x[i] - truth.mean[i]) * (x[j] - truth.mean[j]));
    }
    const Point q = s.quantities(x);
    for (int k = 0; k < 9; ++k) quantity[k].add(q[k]);
  }
  ASSERT_EQ(mean[0].count(), 10000u);
  // Their file claims effective sample sizes of 8939 and more (tails included).
  const double limit = family_quantile(1e-5, 10 + 55 + 9) * std::sqrt(10000 / 8939.0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_LT(std::abs(mean[i].z(truth.mean[i])), limit) << i;
    for (int j = 0; j <= i; ++j)
      EXPECT_LT(std::abs(covariance[i * 10 + j].z(truth.covariance[i * 10 + j])), limit) << i << ", " << j;
  }
  for (int k = 0; k < 9; ++k) EXPECT_LT(std::abs(quantity[k].z(truth.quantities[k])), limit) << k;
}

}  // namespace
}  // namespace lockstep::testing
