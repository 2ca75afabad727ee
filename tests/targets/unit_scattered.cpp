// SPDX-License-Identifier: Apache-2.0
// Target scattered: its components are what its description says, its density theirs.
#include "targets/scattered.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "targets/decompositions.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"

namespace lockstep::testing {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using ::testing::HasSubstr;

MemoryInput scattered(int modes, int dim, int seed = 1, double ratio = 4, double distance = 20) {
  MemoryInput in;
  in.numbers = {{"modes", modes}, {"dim", dim}, {"seed", seed}, {"ratio", ratio}, {"distance", distance}};
  return in;
}

/// Its components, as the density holds them.
struct Components {
  std::vector<VectorXd> mean;
  std::vector<MatrixXd> precision;
  explicit Components(const Scattered& density) {
    const int d = density.dim;
    for (int k = 0; k < density.components; ++k) {
      mean.push_back(Eigen::Map<const VectorXd>(density.mean.get<double>() + k * d, d));
      precision.push_back(Eigen::Map<const MatrixXd>(density.precision.get<double>() + k * d * d, d, d));
    }
  }
};

TEST(Scattered, EqualsTheSumOfItsComponentsInEveryDimension) {
  for (int dim : {1, 2, 3, 4, 5, 11, 20}) {
    const SubjectOf<ScatteredTarget> s(scattered(5, dim, 3));
    const Components c(s.density());
    auto points = typical_points(s, 40, 5);
    for (double factor : {0.1, 0.5, 3.0})
      for (const Point& x : scaled_points(s, 20, factor, 6)) points.push_back(x);
    for (const Point& x : points) {
      std::vector<double> logs;
      VectorXd expected = VectorXd::Zero(dim);
      const VectorXd at = Eigen::Map<const VectorXd>(x.data(), dim);
      for (int k = 0; k < 5; ++k) {
        const VectorXd z = at - c.mean[k];
        logs.push_back(std::log(0.2) - 0.5 * dim * std::log(2 * kPi) +
                       0.5 * std::log(c.precision[k].determinant()) - 0.5 * z.dot(c.precision[k] * z));
      }
      const double top = *std::max_element(logs.begin(), logs.end());
      double sum = 0;
      for (double l : logs) sum += std::exp(l - top);
      for (int k = 0; k < 5; ++k)
        expected -= std::exp(logs[k] - top) / sum * (c.precision[k] * (at - c.mean[k]));
      Point g;
      const double f = s.log_density(x, &g);
      ASSERT_NEAR(f, top + std::log(sum), 1e-13 * value_condition(f, g, x)) << dim;
      for (int i = 0; i < dim; ++i) ASSERT_NEAR(g[i], expected[i], 1e-12 * (1 + expected.norm())) << dim;
      const Point q = s.quantities(x);
      for (int k = 0; k < 5; ++k) ASSERT_NEAR(q[k], std::exp(logs[k] - top) / sum, 1e-11) << dim;
    }
  }
}

TEST(Scattered, ComponentsAreAsDescribed) {
  for (const auto& [modes, dim, ratio, distance] :
       {std::tuple(2, 1, 4.0, 20.0), {5, 20, 4.0, 20.0}, {20, 20, 9.0, 7.5}, {64, 10, 1.0, 20.0}}) {
    const SubjectOf<ScatteredTarget> s(scattered(modes, dim, 1, ratio, distance));
    const Components c(s.density());
    double distances = 0, low = 1e9, high = 0, apart = 0;
    for (int k = 0; k < modes; ++k) {
      const VectorXd precisions = Eigen::SelfAdjointEigenSolver<MatrixXd>(c.precision[k]).eigenvalues();
      low = std::min(low, 1 / std::sqrt(precisions.maxCoeff()));
      high = std::max(high, 1 / std::sqrt(precisions.minCoeff()));
      for (int j = 0; j < k; ++j) {
        distances += (c.mean[k] - c.mean[j]).norm();
        apart = std::max(apart, (c.precision[k] - c.precision[j]).cwiseAbs().maxCoeff());
      }
    }
    EXPECT_NEAR(distances / (0.5 * modes * (modes - 1)), distance, 1e-12 * distance);
    EXPECT_GE(low, (1 - 1e-9) / std::sqrt(ratio));
    EXPECT_LE(high, (1 + 1e-9) * std::sqrt(ratio));
    if (ratio == 1) {
      EXPECT_LT(apart, 1e-12);
    } else {
      EXPECT_GT(apart, 0.05);
    }
    if (dim * modes > 50 && ratio > 1) {  // of so many, some are near either end
      EXPECT_LT(low, 1.1 / std::sqrt(ratio));
      EXPECT_GT(high, 0.9 * std::sqrt(ratio));
    }
    EXPECT_EQ(s.target->truth().log_z, 0);
    EXPECT_EQ(s.target->quantities().size(), std::size_t(modes));
  }
}

TEST(Scattered, KnowsTheComponentAPositionBelongsTo) {
  const SubjectOf<ScatteredTarget> s(scattered(20, 7, 2));
  const Components c(s.density());
  for (int k = 0; k < 20; ++k) {
    Point x(c.mean[k].begin(), c.mean[k].end());
    EXPECT_EQ((s.density().mode<0, double>(Rows<double>{x.data(), 1})), k);
    EXPECT_GT(s.quantities(x)[k], 0.99);
  }
}

TEST(Scattered, ASeedIsATarget) {
  const SubjectOf<ScatteredTarget> a(scattered(3, 4, 1)), again(scattered(3, 4, 1)), b(scattered(3, 4, 2));
  EXPECT_EQ(a.value({1, 2, 3, 4}), again.value({1, 2, 3, 4}));
  EXPECT_NE(a.value({1, 2, 3, 4}), b.value({1, 2, 3, 4}));
}

TEST(Scattered, RefusesWhatNoMemoryHolds) {
  EXPECT_THAT(build_complaint<ScatteredTarget>(scattered(17, 1000)), HasSubstr("above 2^24"));
  for (const auto& [key, bad] : {std::pair("modes", 1.0), {"modes", 65.0}, {"dim", 1001.0}, {"ratio", 0.5}}) {
    MemoryInput in;
    in.numbers[key] = bad;
    EXPECT_THROW(ScatteredTarget::build(in), UserError) << key;
  }
}

}  // namespace
}  // namespace lockstep::testing
