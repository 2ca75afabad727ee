// SPDX-License-Identifier: Apache-2.0
#include "host/engines/base_density.hpp"

#include "host/engines/units.hpp"
#include "kernels/base.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

constexpr int kPer = 40;  // more than one tile of 32
const std::vector<std::uint32_t> kUnits = {0, 1};

BaseDensity two_components() {
  Eigen::Matrix2d a, b;
  a << 0.8, 0, 0.3, 0.5;
  b << 1.5, 0, -0.4, 0.7;
  BaseDensity base;
  base.components = {{0.3, Eigen::Vector2d(-2, 1), a}, {0.7, Eigen::Vector2d(3, -1), b}};
  return base;
}

/// log base at x of the first and the second unit, read off the cached log density at beta = 0.
template <class Write>
std::vector<double> log_base(int number, const std::vector<double>& x, Write&& write) {
  const auto target = build_target(run_of({.target = "gaussian", .target_settings = {{"dim", 2}}}));
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.model.base = number;
  spec.precision = Precision::double_;
  number_chains(spec, kUnits, kPer);
  const auto engine = target->engine(spec);
  set_per_unit(*engine, ParameterLayout::beta, {0});
  write(*engine);
  std::vector<double> rows;
  for (double v : x) rows.insert(rows.end(), 2 * kPer, v);
  engine->set_position(rows);
  engine->initialize();
  const auto cache = engine->cache();
  for (int c = 0; c < 2 * kPer; ++c) EXPECT_EQ(cache[c], cache[c / kPer * kPer]) << c;
  return {cache[0], cache[kPer]};
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  for (int u = 0; u < 2; ++u) EXPECT_NEAR(a[u], b[u], 1e-12) << u;
}

TEST(BaseDensity, ReachesItsUnits) {
  const std::vector<double> x = {0.5, -1};
  const auto axes = [&](const BaseAxes& b) {
    return log_base(base_number<NormalAxes>(), x, [&](Engine& e) { write_bases(e, b); });
  };
  expect_near(axes({{1, 2, 3, 4}, {1, 2, 1, 0.5}, {0.75, 0}}),
              {0.75 - 0.5 * (0.25 + 2.25), -0.5 * (6.25 + 100)});
  // One for all.
  const double one = -3 - 0.5 * (0.25 + 2.25);
  expect_near(axes({{1, 2}, {1, 2}, {-3}}), {one, one});
  // None at all.
  expect_near(axes({{}, {}, {0, 0}}), {0, 0});
  // Normals by their axes, and mixtures, are what they say.
  const auto two = two_components();
  Eigen::Matrix2d factor;
  factor << 2, 0, 1, 1;
  const auto normal = BaseDensity::normal(Eigen::Vector2d(1, 2), factor, false),
             diagonal = BaseDensity::normal(Eigen::Vector2d(1, 2),
                                            Eigen::Vector2d(2, 3).asDiagonal().toDenseMatrix(), true);
  const auto written = [&](const BaseDensity& first, const BaseDensity& second) {
    return log_base(first.number(), x, [&](Engine& e) {
      write_bases(e, kUnits, {first, second}, {first.log_norm(), second.log_norm()});
    });
  };
  const Eigen::Vector2d at(x[0], x[1]);
  expect_near(written(normal, two), {normal.log_density(at), two.log_density(at)});
  expect_near(written(diagonal, diagonal), {diagonal.log_density(at), diagonal.log_density(at)});
  const double z = 0.5 * (0.0625 + 1) + std::log(2 * kPi) + std::log(6);
  EXPECT_NEAR(diagonal.log_density(at), -z, 1e-12);
}

TEST(BaseDensity, NumbersThatAreNoneAreRefused) {
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.model.base = base_number<NormalMixture>();
  number_chains(spec, kUnits, 4);
  const auto target = build_target(run_of({.target = "gaussian", .target_settings = {{"dim", 2}}}));
  const auto engine = target->engine(spec);
  const auto good = two_components().numbers();
  spec.model.base = base_number<TiedMixture>();
  EXPECT_THROW(target->engine(spec)->set_base({{0, good}, {1, good}}), std::invalid_argument);
  auto shorter = good, many = std::vector<double>(NormalMixture::length(65, 2), 1.0);
  shorter.pop_back();
  many[0] = 65;
  engine->set_base({{0, good}, {1, good}});
  for (const UnitList& bad :
       {UnitList{{0, good}, {1, shorter}}, {{0, good}, {1, many}}, {{0, good}, {1, {}}}, {{0, good}}})
    EXPECT_THROW(engine->set_base(bad), std::invalid_argument);
}

TEST(BaseDensity, DrawsHaveItsMoments) {
  const auto base = two_components();
  const int n = 200000;
  Eigen::Vector2d sum = Eigen::Vector2d::Zero();
  Eigen::Matrix2d squares = Eigen::Matrix2d::Zero(), fourth = Eigen::Matrix2d::Zero();
  double left = 0;
  const Eigen::Vector2d mean = base.mean();
  for (int c = 0; c < n; ++c) {
    const Eigen::VectorXd x = base.draw({{7, 8}, 3, std::uint32_t(c), 1});
    sum += x;
    const Eigen::Matrix2d s = (x - mean) * (x - mean).transpose();
    squares += s;
    fourth += s.cwiseAbs2();
    left += x[0] < 0.2;
  }
  EXPECT_NEAR(mean[0], 1.5, 1e-12);
  const Eigen::Matrix2d covariance = base.covariance(), found = squares / n;
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(std::abs(sum[i] / n - mean[i]), 4 * base.sd()[i] / std::sqrt(n));
    for (int j = 0; j < 2; ++j)
      EXPECT_LT(std::abs(found(i, j) - covariance(i, j)),
                4 * std::sqrt((fourth(i, j) / n - found(i, j) * found(i, j)) / n));
  }
  const auto below = [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2)); };
  const double share = 0.3 * below(2.2 / 0.8) + 0.7 * below(-2.8 / 1.5);
  EXPECT_LT(std::abs(left / n - share), 4 * std::sqrt(share * (1 - share) / n));
}

}  // namespace
}  // namespace lockstep
