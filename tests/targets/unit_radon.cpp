// SPDX-License-Identifier: Apache-2.0
// Target radon: its density held to the model household by household, its truth to dense linear algebra.
#include "targets/radon.hpp"

#include <gtest/gtest.h>

#include "tests/support/points.hpp"
#include "tests/support/radon.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

TEST(Radon, EqualsTheModelHouseholdByHousehold) {
  for (const RadonData& data : {households(1, 1, 1), households(4, 40, 2), households(9, 30, 3, true)}) {
    const SubjectOf<RadonTarget> s(radon_input(data));
    ASSERT_EQ(s.dim(), data.counties + 7);
    auto points = typical_points(s, 50, 5);
    for (const Point& x : scaled_points(s, 50, 5, 6)) points.push_back(x);
    for (const Point& x : points) {
      Point g;
      const double f = s.log_density(x, &g);
      const RadonByHousehold expected = by_household(data, x);
      const Point condition = gradient_condition(s, x);
      ASSERT_NEAR(f, expected.value, 1e-14 * value_condition(f, g, x));
      for (int i = 0; i < s.dim(); ++i)
        ASSERT_NEAR(g[i], expected.gradient[i], 1e-14 * condition[i]) << "coordinate " << i;
      const Point q = s.quantities(x);
      for (int k = 0; k < 3; ++k) ASSERT_DOUBLE_EQ(q[k], std::exp(x[2 + k]));
    }
  }
}

TEST(Radon, HouseholdsThatShareEverythingAreOneCell) {
  RadonData data = households(4, 40, 2);
  const Built<Radon> built = [&] {
    MemoryInput in = radon_input(data);
    return RadonTarget::build(in);
  }();
  EXPECT_LE(built.density.cells, 8);  // county x floor
  EXPECT_EQ(built.density.households, 40);
  // The order of the households is nobody's business.
  for (auto* v : {&data.y, &data.floor, &data.log_uranium}) std::reverse(v->begin(), v->end());
  std::reverse(data.county.begin(), data.county.end());
  MemoryInput in = radon_input(data);
  EXPECT_NEAR(RadonTarget::build(in).truth.log_z, built.truth.log_z, 1e-11);
}

/// The state's coordinate that a coordinate of DenseRadon is.
int row_of(int dense) { return dense < 2 ? dense : dense + 3; }

TEST(RadonTruth, EqualsABruteForceQuadratureByDenseAlgebra) {
  const RadonData data = households(2, 12, 4);
  DenseRadon dense(data);
  const int dim = data.counties + 7;
  // Beyond the grid are less than exp(-22) of the mass below, and exp(-2 * 11) of the integral of s_a above,
  // which falls like exp(-2 log s_a) there.
  const Vector3d low(-25, -25, -3), high(11, 11, 5), step(0.3, 0.3, 0.1);
  double mass = 0, top = -1e300;
  VectorXd first = VectorXd::Zero(dim), mean(dim);
  MatrixXd second = MatrixXd::Zero(dim, dim);
  Vector3d scales = Vector3d::Zero();
  Vector3d x;
  for (x[2] = low[2]; x[2] < high[2]; x[2] += step[2])
    for (x[1] = low[1]; x[1] < high[1]; x[1] += step[1])
      for (x[0] = low[0]; x[0] < high[0]; x[0] += step[0]) {
        const double log_p = dense.solve(x);
        if (top < -1e299) top = log_p;
        const double p = std::exp(log_p + 20);
        if (p < 1e-25) continue;
        for (int i = 0; i < dense.mean.size(); ++i) mean[row_of(i)] = dense.mean[i];
        mean.segment<3>(2) = x;
        mass += p;
        first += p * mean;
        second += p * mean * mean.transpose();
        for (int i = 0; i < dense.mean.size(); ++i)
          for (int j = 0; j < dense.mean.size(); ++j)
            second(row_of(i), row_of(j)) += p * dense.covariance(i, j);
        scales += p * x.array().exp().matrix();
      }
  MemoryInput in = radon_input(data);
  const Truth truth = RadonTarget::build(in).truth;
  EXPECT_NEAR(truth.log_z, std::log(mass * step.prod()) - 20, 1e-8);
  first /= mass;
  second /= mass;
  auto sd = [&](int i) { return std::sqrt(second(i, i) - first[i] * first[i]); };
  for (int i = 0; i < dim; ++i) {
    EXPECT_NEAR(truth.mean[i], first[i], 1e-7 * sd(i)) << i;
    for (int j = 0; j < dim; ++j)
      EXPECT_NEAR(truth.covariance[i * dim + j], second(i, j) - first[i] * first[j], 1e-6 * sd(i) * sd(j))
          << i << ", " << j;
  }
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(truth.quantities[k], scales[k] / mass, 1e-7 * truth.quantities[k]);
}

TEST(RadonTruth, DenseAlgebraIsThatOfTheDensity) {
  // p(x, y) = p(scales, y) p(the rest | scales, y), at any x.
  const RadonData data = households(3, 10, 5);
  const SubjectOf<RadonTarget> s(radon_input(data));
  DenseRadon dense(data);
  for (const Point& x : typical_points(s, 20, 1)) {
    double value = dense.solve(Eigen::Map<const Vector3d>(x.data() + 2));
    VectorXd z(dense.mean.size());
    for (int i = 0; i < z.size(); ++i) z[i] = x[row_of(i)] - dense.mean[i];
    const Eigen::LLT<MatrixXd> factor(dense.covariance);
    value -= 0.5 * double(z.size()) * std::log(2 * kPi) + 0.5 * z.dot(factor.solve(z)) +
             factor.matrixLLT().diagonal().array().log().sum();
    EXPECT_NEAR(s.value(x), value, 1e-9 * std::abs(value));
  }
}

/// Two lattices, one with steps of 0.7 of the other's.
void expect_lattices_agree(const RadonMarginal& marginal, double tolerance) {
  const auto coarse = integrate(marginal), fine = integrate(marginal, 0.35);
  ASSERT_TRUE(coarse && fine);
  EXPECT_NEAR(coarse->truth.log_z, fine->truth.log_z, tolerance);
  for (int i = 0; i < marginal.dim(); ++i) {
    const double sd = std::sqrt(fine->truth.variance(i));
    EXPECT_NEAR(coarse->truth.mean[i], fine->truth.mean[i], tolerance * sd) << i;
    EXPECT_NEAR(coarse->truth.variance(i), fine->truth.variance(i), 3 * tolerance * sd * sd) << i;
  }
}

TEST(RadonTruth, DoesNotDependOnTheLattice) {
  expect_lattices_agree(RadonMarginal(households(8, 60, 7)), 1e-6);
  expect_lattices_agree(RadonMarginal(households(40, 400, 8)), 1e-6);
  expect_lattices_agree(RadonMarginal(households(2, 6, 9)), 1e-6);
}

TEST(RadonTruth, HoldsBeyondTheSizeOfFullCovariances) {
  MemoryInput in;
  in.numbers = {{"counties", 1000}, {"households", 3000}};
  const Built<Radon> built = RadonTarget::build(in);
  const std::size_t dim = 1007;
  ASSERT_EQ(built.truth.covariance.size(), dim);
  std::vector<RunningMean> first(dim), second(dim);
  ExactDraw random(3);
  std::vector<double> x(dim);
  for (int n = 0; n < 300; ++n) {
    built.draw(random, x.data());
    for (std::size_t i = 0; i < dim; ++i) {
      first[i].add(x[i]);
      second[i].add((x[i] - built.truth.mean[i]) * (x[i] - built.truth.mean[i]));
    }
  }
  // Squares of 300 draws are skewed: their z has a tail on one side, and the limit is that of 1e-9.
  const double limit = family_quantile(1e-9, 2 * dim);
  for (std::size_t i = 0; i < dim; ++i) {
    EXPECT_LT(std::abs(first[i].z(built.truth.mean[i])), limit) << i;
    EXPECT_LT(std::abs(second[i].z(built.truth.variance(int(i)))), limit) << i;
  }
}

TEST(Radon, FewOrStrangeHouseholdsHaveATruthOrNone) {
  // What is said to be known is finite, and the density is where chains start.
  RadonData one = households(1, 1, 1), far = households(3, 9, 2), flat = households(3, 9, 2);
  for (double& y : far.y) y = 1e6 * y;
  for (double& u : flat.log_uranium) u = 0;
  flat.floor.assign(9, 0.0);
  for (const RadonData& data : {one, far, flat}) {
    const SubjectOf<RadonTarget> s(radon_input(data));
    const Truth& t = s.target->truth();
    EXPECT_TRUE(std::isfinite(s.value(Point(s.dim(), 0.0))));
    EXPECT_EQ(s.target->can_draw(), std::isfinite(t.log_z));
    if (!s.target->can_draw()) continue;
    for (int i = 0; i < s.dim(); ++i) {
      EXPECT_TRUE(std::isfinite(t.mean[i])) << i;
      EXPECT_GT(t.variance(i), 0) << i;
    }
  }
  // All on one floor over one kind of ground: s_b has its prior, whose mean is infinite; all else is known.
  MemoryInput in = radon_input(flat);
  const Truth t = RadonTarget::build(in).truth;
  EXPECT_TRUE(std::isfinite(t.log_z));
  EXPECT_NEAR(t.mean[3], std::log(2.5), 1e-6);
  EXPECT_NEAR(t.variance(3), kPi * kPi / 4, 1e-6);  // of log s where s is half-Cauchy
  EXPECT_TRUE(std::isnan(t.quantities[1]));
}

}  // namespace
}  // namespace lockstep::testing
