// SPDX-License-Identifier: Apache-2.0
#include "targets/flower.hpp"

#include <gtest/gtest.h>

#include "tests/support/statistics.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

MemoryInput flower(double w, double r, double a, double sigma) {
  MemoryInput in;
  in.numbers = {{"w", w}, {"r", r}, {"A", a}, {"sigma", sigma}};
  return in;
}

/// The formula of the paper (with its square), by way of the angle.
double by_angle(double w, double r, double a, double sigma, double x1, double x2) {
  const double z = (std::hypot(x1, x2) - r - a * std::cos(w * std::atan2(x2, x1))) / sigma;
  return -0.5 * z * z;
}

TEST(Flower, EqualsTheFormulaForEveryNumberOfPetals) {
  for (int w = 1; w <= 32; ++w) {
    const SubjectOf<FlowerTarget> s(flower(w, 10, 6, 1));
    ExactDraw random(100 + w);
    for (int k = 0; k < 50; ++k) {
      const double x1 = 10 * random.normal(), x2 = 10 * random.normal();
      const double expected = by_angle(w, 10, 6, 1, x1, x2);
      EXPECT_NEAR(s.value({x1, x2}), expected, 1e-13 * w * (1 + std::abs(expected))) << "w = " << w;
      EXPECT_NEAR(s.quantities({x1, x2})[0], std::cos(w * std::atan2(x2, x1)), 1e-14 * (w + 1));
    }
  }
}

// Reference numbers: composite Gauss-Legendre along the radius and 4800 angles, computed apart.
struct Reference {
  double w, r, a, sigma, log_z, mean, variance1, variance2, cosine;
};
void PrintTo(const Reference& e, std::ostream* out) {
  *out << "w" << e.w << "_r" << e.r << "_a" << e.a << "_sigma" << e.sigma;
}
class FlowerTruth : public ::testing::TestWithParam<Reference> {};

TEST_P(FlowerTruth, EqualsAnIndependentQuadrature) {
  const Reference& e = GetParam();
  const SubjectOf<FlowerTarget> s(flower(e.w, e.r, e.a, e.sigma));
  const Truth& t = s.target->truth();
  EXPECT_NEAR(t.log_z, e.log_z, 1e-10);
  EXPECT_NEAR(t.mean[0], e.mean, 1e-10);
  EXPECT_EQ(t.mean[1], 0);
  EXPECT_NEAR(t.covariance[0], e.variance1, 1e-10 * e.variance1);
  EXPECT_NEAR(t.covariance[3], e.variance2, 1e-10 * e.variance2);
  EXPECT_EQ(t.covariance[1], 0);
  EXPECT_EQ(t.covariance[2], 0);
  EXPECT_EQ(s.target->quantities(), std::vector<std::string>{"cos_w_theta"});
  EXPECT_NEAR(t.quantities[0], e.cosine, 1e-10);
}

TEST_P(FlowerTruth, IsConfirmedByExactDraws) {
  const Reference& e = GetParam();
  const SubjectOf<FlowerTarget> s(flower(e.w, e.r, e.a, e.sigma));
  ExactDraw random(5);
  RunningMean x1, x2, square1, square2, cosine;
  std::vector<double> x(2);
  for (int k = 0; k < 50000; ++k) {
    s.target->draw(random, x.data());
    x1.add(x[0]);
    x2.add(x[1]);
    square1.add((x[0] - e.mean) * (x[0] - e.mean));
    square2.add(x[1] * x[1]);
    cosine.add(s.quantities(x)[0]);
  }
  const double limit = family_quantile(1e-5, 25);
  EXPECT_LT(std::abs(x1.z(e.mean)), limit);
  EXPECT_LT(std::abs(x2.z(0)), limit);
  EXPECT_LT(std::abs(square1.z(e.variance1)), limit);
  EXPECT_LT(std::abs(square2.z(e.variance2)), limit);
  EXPECT_LT(std::abs(cosine.z(e.cosine)), limit);
}

INSTANTIATE_TEST_SUITE_P(Settings, FlowerTruth,
                         ::testing::Values(Reference{6, 10, 6, 1, 5.059400747240554, 0, 78.49999571845462,
                                                     78.49999571845462, 0.2999999299515483},
                                           Reference{1, 3, 2, 0.5, 3.16244873053011, 1.9997166461233618,
                                                     5.37458150531974, 6.373930669555398, 0.3331163103962917},
                                           Reference{2, 2, 4, 0.7, 3.2999349153713466, 0, 22.370295498342514,
                                                     2.3456449420513183, 0.6494829210374373},
                                           Reference{32, 0, 5, 0.3, 2.0193508297343743, 0, 8.45322533191302,
                                                     8.45322533191302, 0.783985712121918},
                                           Reference{3, 0, 0, 2, 3.2241714275292366, 0, 4, 4, 0}));

TEST(FlowerTruth, HoldsForAThinRidgeWithLongPetals) {
  // As sigma falls, the mass at an angle is sqrt(2 pi) sigma (r + A cos), where positive: closed form for A <
  // r.
  const SubjectOf<FlowerTarget> s(flower(6, 900, 600, 0.01));
  EXPECT_NEAR(s.target->truth().log_z, std::log(std::sqrt(2 * kPi) * 0.01 * 2 * kPi * 900), 1e-10);
  EXPECT_NEAR(s.target->truth().quantities[0], 300.0 / 900, 1e-9);
}

TEST(Flower, NothingIsNanNearTheOriginAndChainsLeaveIt) {
  const SubjectOf<FlowerTarget> s({});
  std::vector<double> g;
  for (double x : {0.0, 1e-300, -1e-200, 1e-160, 1e-20}) {
    EXPECT_TRUE(std::isfinite(s.log_density({x, 0}, &g))) << x;
    EXPECT_TRUE(std::isfinite(g[0]) && std::isfinite(g[1])) << x;
    EXPECT_TRUE(std::isfinite(s.log_density({x, -x}, &g))) << x;
    EXPECT_TRUE(std::isfinite(g[0]) && std::isfinite(g[1])) << x;
  }
  constexpr int n = 32;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    EngineSpec spec;
    spec.precision = precision;
    spec.transition = find_transition("rwm");
    for (std::uint32_t c = 0; c < n; ++c) {
      spec.chain.push_back(c);
      spec.unit.push_back(0);
    }
    auto e = s.target->engine(spec);
    auto start = [&](double step_size, double x1, double x2) {
      for (int row = 0; row < e->layout().rows(); ++row) e->set_parameters(row, std::vector<double>(n, 1.0));
      e->set_parameters(ParameterLayout::step_size, std::vector<double>(n, step_size));
      std::vector<double> x(2 * n, x1);
      std::fill(x.begin() + n, x.end(), x2);
      e->set_position(x);
      e->initialize();
    };
    for (const auto& [x1, x2] : {std::pair{1e-19, 1e-19}, {1e-30, 0.0}, {-1e-12, 1e-13}}) {
      start(0.1, x1, x2);
      for (double v : e->gradient()) EXPECT_TRUE(std::isfinite(v));
      for (double v : e->cache()) EXPECT_TRUE(std::isfinite(v));
    }
    // The origin itself is no trap. (By random walk: the force around the ring grows as 1 / rho, so that
    // leapfrog steps from so close are mostly refused, as they should be.)
    start(1, 0, 0);
    LaunchSpec launch;
    launch.key = make_stream_key(4, "flower");
    launch.end = 200;
    e->advance(launch);
    const auto x = e->position();
    for (int c = 0; c < n; ++c) EXPECT_GT(std::hypot(x[c], x[n + c]), 2) << "chain " << c;
  }
}

TEST(Flower, RefusesSettingsOutOfRange) {
  for (const auto& [key, value] : {std::pair{"w", 0.0},
                                   {"w", 33.0},
                                   {"w", 2.5},
                                   {"sigma", 0.0},
                                   {"r", -1.0},
                                   {"A", -1.0},
                                   {"A", std::numeric_limits<double>::quiet_NaN()}}) {
    MemoryInput in;
    in.numbers[key] = value;
    EXPECT_THROW(FlowerTarget::build(in), UserError) << key << " = " << value;
  }
}

}  // namespace
}  // namespace lockstep::testing
