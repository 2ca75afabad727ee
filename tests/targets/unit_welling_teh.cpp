// SPDX-License-Identifier: Apache-2.0
// Target welling_teh: its density held to the model datum by datum, its truth to a quadrature over a fixed box.
#include "targets/welling_teh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/complaint.hpp"
#include "tests/support/points.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

MemoryInput data(const std::vector<double>& x) {
  MemoryInput in;
  in.arrays["x"] = {x, {int(x.size())}};
  return in;
}
MemoryInput simulated(int observations, int seed) {
  MemoryInput in;
  in.numbers = {{"observations", observations}, {"seed", seed}};
  return in;
}
std::vector<double> values(const WellingTeh& density) {
  return {density.x.get<double>(), density.x.get<double>() + density.observations};
}

double normal(double x, double mean, double variance) {
  return std::exp(-0.5 * (x - mean) * (x - mean) / variance) / std::sqrt(2 * kPi * variance);
}

/// log density and gradient, each datum by itself.
double by_datum(const std::vector<double>& data, const Point& t, Point& g) {
  double value = std::log(normal(t[0], 0, 10)) + std::log(normal(t[1], 0, 1));
  g = {-t[0] / 10, -t[1]};
  for (double x : data) {
    const double a = normal(x, t[0], 2), b = normal(x, t[0] + t[1], 2);
    value += std::log(0.5 * a + 0.5 * b);
    g[0] += (a * (x - t[0]) + b * (x - t[0] - t[1])) / 2 / (a + b);
    g[1] += b * (x - t[0] - t[1]) / 2 / (a + b);
  }
  return value;
}

TEST(WellingTeh, EqualsTheModelDatumByDatum) {
  for (const MemoryInput& in : {simulated(100, 1), simulated(1, 2), simulated(17, 3), data({-3, 0.5, 8})}) {
    const SubjectOf<WellingTehTarget> s(in);
    auto points = typical_points(s, 50, 5);
    for (const Point& x : scaled_points(s, 50, 3, 6)) points.push_back(x);
    for (const Point& x : points) {
      Point g, expected;
      const double f = s.log_density(x, &g);
      ASSERT_NEAR(f, by_datum(values(s.density()), x, expected), 1e-13 * value_condition(f, g, x));
      const Point condition = gradient_condition(s, x);
      for (int i = 0; i < 2; ++i) ASSERT_NEAR(g[i], expected[i], 1e-13 * condition[i]);
    }
  }
}

TEST(WellingTeh, HasTheModesOfThePaper) {
  // Of many data: draws are near (0, 1) or (1, -1), in proportion to the prior's density, the likelihoods being equal.
  const SubjectOf<WellingTehTarget> s(simulated(10000, 4));
  double right[2][2] = {}, count[2] = {};
  for (Point x : typical_points(s, 4000, 7)) {
    const int mode = int(s.density().mode<0, double>(Rows<double>{x.data(), 1}));
    EXPECT_EQ(mode, x[1] < 0 ? 1 : 0);
    count[mode] += 1;
    for (int i = 0; i < 2; ++i) right[mode][i] += x[i];
  }
  // sd 0.14 of theta_2 given the data; 0.1 of the means, four of these.
  EXPECT_NEAR(right[0][0] / count[0], 0, 0.4);
  EXPECT_NEAR(right[0][1] / count[0], 1, 0.6);
  EXPECT_NEAR(right[1][0] / count[1], 1, 0.4);
  EXPECT_NEAR(right[1][1] / count[1], -1, 0.6);
  EXPECT_NEAR(right[0][0] / count[0] + right[0][1] / count[0], right[1][0] / count[1], 0.02);
  Point a(2), b(2);
  const auto x = values(s.density());
  Point t = {0.1, 0.8}, swapped = {0.9, -0.8};
  EXPECT_NEAR(by_datum(x, t, a) + 0.1 * 0.1 / 20, by_datum(x, swapped, b) + 0.9 * 0.9 / 20, 1e-7);
}

TEST(WellingTehTruth, EqualsAQuadratureOverABox) {
  for (const MemoryInput& in : {simulated(100, 1), simulated(1, 2), simulated(40, 9), data({-5, 1, 2, 6})}) {
    const SubjectOf<WellingTehTarget> s(in);
    const auto x = values(s.density());
    // Priors reach no farther: 9 standard deviations. Midpoints, of steps of other size than the target's.
    const double low1 = -29, low2 = -9.1;
    const int n1 = 1900, n2 = 600;
    const double h1 = -2 * low1 / n1, h2 = -2 * low2 / n2;
    double mass = 0, first[2] = {}, second[3] = {};
    const double top = s.target->truth().log_z;
    for (int i = 0; i < n1; ++i)
      for (int j = 0; j < n2; ++j) {
        const double a = low1 + (i + 0.5) * h1, b = low2 + (j + 0.5) * h2;
        double l = -0.5 * (a * a / 10 + b * b) - std::log(2 * kPi * std::sqrt(10.0));
        for (double v : x) {
          if (l < top - 60) break;  // each datum has a density below 1
          const double r1 = v - a, r2 = r1 - b, q1 = r1 * r1 / 4, q2 = r2 * r2 / 4;
          l += -std::min(q1, q2) + std::log1p(std::exp(-std::abs(q1 - q2))) - 0.5 * std::log(16 * kPi);
        }
        const double p = std::exp(l - top);
        mass += p;
        first[0] += p * a;
        first[1] += p * b;
        second[0] += p * a * a;
        second[1] += p * a * b;
        second[2] += p * b * b;
      }
    const Truth& t = s.target->truth();
    EXPECT_NEAR(std::log(mass * h1 * h2), 0, 1e-9);
    for (int i = 0; i < 2; ++i) EXPECT_NEAR(t.mean[i], first[i] / mass, 1e-9);
    EXPECT_NEAR(t.second_moment(0), second[0] / mass, 1e-8 * second[0] / mass);
    EXPECT_NEAR(t.covariance[1] + t.mean[0] * t.mean[1], second[1] / mass, 1e-8);
    EXPECT_NEAR(t.second_moment(1), second[2] / mass, 1e-8 * second[2] / mass);
  }
}

TEST(WellingTehInput, EveryMistakeIsNamed) {
  EXPECT_THAT(build_complaint<WellingTehTarget>(data({})), HasSubstr("x is no plain list"));
  EXPECT_THAT(build_complaint<WellingTehTarget>(data({1, 2e4})), HasSubstr("Rescale"));
  EXPECT_THAT(build_complaint<WellingTehTarget>(data({1, NAN})),
              HasSubstr("entry 2 of x is no finite number"));
  EXPECT_THAT(build_complaint<WellingTehTarget>(data(std::vector<double>(10001, 0.5))),
              HasSubstr("at most 10000"));
  MemoryInput both = data({1, 2});
  both.numbers["seed"] = 3;
  EXPECT_THAT(build_complaint<WellingTehTarget>(both), HasSubstr("beside data"));
}

}  // namespace
}  // namespace lockstep::testing
