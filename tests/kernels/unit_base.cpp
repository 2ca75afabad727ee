// SPDX-License-Identifier: Apache-2.0
// The mixture of normals as a base, in lanes: the formula, its gradient, its bits.
#include "kernels/base.hpp"

#include <gtest/gtest.h>

#include "host/engines/base_density.hpp"
#include "host/engines/units.hpp"
#include "targets/bases.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/scalar_model.hpp"

namespace lockstep {
namespace {

using namespace testing;

BaseDensity mixture(int dim, int components) {
  BaseDensity base;
  for (int k = 0; k < components; ++k) {
    NormalComponent c{(k + 1) * 2.0 / (components * (components + 1)), Eigen::VectorXd(dim),
                      Eigen::MatrixXd::Zero(dim, dim)};
    for (int i = 0; i < dim; ++i) {
      c.mean[i] = 2 * k - 0.3 * i;
      for (int j = 0; j < i; ++j) c.factor(i, j) = 0.3 / (1 + i - j) - 0.1 * k;
      c.factor(i, i) = 0.6 + 0.1 * k + 0.05 * (i % 3);
    }
    base.components.push_back(c);
  }
  return base;
}

/// The first component of its own covariance, the others of one that is as wide as it should be.
BaseDensity tied(int dim, int components) {
  BaseDensity base = mixture(dim, components);
  base.tied = true;
  for (int k = 2; k < components; ++k)
    base.components[k].factor = (0.4 + 0.3 * k) * base.components[1].factor;
  return base;
}

/// By the kernel, in double, one chain.
double evaluate(const BaseDensity& base, const std::vector<double>& x,
                std::vector<double>* gradient = nullptr) {
  const auto numbers = base.numbers();
  ParameterLayout layout{base.dim(), false, base.number()};
  std::vector<double> rows(layout.rows());
  rows[ParameterLayout::base_log_norm] = base.log_norm();
  const ParameterRows<double, double, Rows<double>> par{{rows.data(), 1}, numbers.data(), 1};
  const Rows<double> at{const_cast<double*>(x.data()), 1};
  if (gradient == nullptr) return base_log_density<0, double>(layout, at, par, NoBaseGradient{});
  gradient->resize(x.size());
  return base_log_density<0, double>(layout, at, par, [&](int i, double v) { (*gradient)[i] = v; });
}

/// Of components of their own shapes each, and tied.
class Mixtures : public ::testing::TestWithParam<bool> {
 protected:
  static BaseDensity make(int dim, int components) {
    return GetParam() ? tied(dim, components) : mixture(dim, components);
  }
};
INSTANTIATE_TEST_SUITE_P(Bases, Mixtures, ::testing::Bool());

TEST_P(Mixtures, IsTheFormulaWithItsGradient) {
  for (int d : {1, 2, 7, 8, 9, 19})
    for (int components : {1, 2, 5}) {
      const auto base = make(d, components);
      std::vector<double> x(d), g;
      for (int i = 0; i < d; ++i) x[i] = 0.7 + 0.2 * i - 0.05 * i * i;
      const double value = evaluate(base, x, &g);
      EXPECT_EQ(value, evaluate(base, x));
      EXPECT_NEAR(value, base.log_density(Eigen::Map<const Eigen::VectorXd>(x.data(), d)),
                  1e-11 * (1 - value));
      for (int i = 0; i < d; ++i) {
        const auto moved = [&](double h) {
          auto y = x;
          y[i] += h;
          return evaluate(base, y);
        };
        const double h = 1e-4,
                     slope = (4 * (moved(h) - moved(-h)) / 2 - (moved(2 * h) - moved(-2 * h)) / 4) / (3 * h);
        EXPECT_NEAR(g[i], slope, 1e-7 * (1 + std::abs(slope) + std::abs(value)))
            << d << " " << components << " " << i;
      }
    }
}

/// On packs it stands behind a call, the gradient behind another for blocks of rows: of the lanes' own numbers or of common ones.
TEST_P(Mixtures, IsTheSameOnPacks) {
  using L = MachinePack<double>;
  constexpr int W = lane_width<L>;
  for (int d : {1, 7, 8, 9, 19})
    for (int components : {1, 5}) {
      const auto base = make(d, components);
      const auto numbers = base.numbers();
      const ParameterLayout layout{d, false, base.number()};
      std::vector<double> rows(std::size_t(layout.rows()) * kTile), of_lanes(numbers.size() * kTile),
          x(d * W), gradient(d * W);
      std::fill_n(&rows[std::size_t(ParameterLayout::base_log_norm) * kTile], kTile, base.log_norm());
      for (std::size_t k = 0; k < of_lanes.size(); ++k) of_lanes[k] = numbers[k / kTile];
      for (int i = 0; i < d * W; ++i) x[i] = 0.7 + 0.2 * std::sin(1.3 * i) * (i % 5);
      for (bool common : {true, false}) {
        const double* of_unit = common ? numbers.data() : of_lanes.data();
        const ParameterRows<L> par{{rows.data()}, of_unit, common ? 1 : kTile};
        const GroupRows<L> at{x.data()}, to{gradient.data()};
        double values[W], alone[W];
        store(values, base_log_density<0, L>(layout, at, par, [&](int i, L v) { to.set(i, v); }));
        store(alone, base_log_density<0, L>(layout, at, par, NoBaseGradient{}));
        for (int lane = 0; lane < W; ++lane) {
          std::vector<double> of_lane(d), expected;
          for (int i = 0; i < d; ++i) of_lane[i] = x[i * W + lane];
          const double value = evaluate(base, of_lane, &expected);
          EXPECT_NEAR(values[lane], value, 1e-12 * (1 + std::abs(value))) << d << " " << components;
          EXPECT_EQ(alone[lane], values[lane]);
          for (int i = 0; i < d; ++i)
            EXPECT_NEAR(gradient[i * W + lane], expected[i], 1e-12 * (1 + std::abs(value))) << d << " " << i;
        }
      }
    }
}

TEST_P(Mixtures, IntegratesToOne) {
  const auto base = make(2, 3);
  double sum = 0;
  const double h = 0.05;
  for (double a = -10; a < 16; a += h)
    for (double b = -10; b < 16; b += h) sum += std::exp(evaluate(base, {a, b}));
  EXPECT_NEAR(sum * h * h, 1, 1e-10);  // a trapezium rule of what falls off on all sides
}

/// log base and its gradient (that of beta = 0) in the chains of units, by an engine of packs.
struct Evaluated {
  std::vector<double> cache, position;
};
Evaluated by_engine(const std::vector<std::pair<std::uint32_t, const BaseDensity*>>& units, int per,
                    Precision precision) {
  const int d = units[0].second->dim();
  const auto target = build_target(run_of({.target = "gaussian", .target_settings = {{"dim", d}}}));
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.model.base = units[0].second->number();
  spec.precision = precision;
  std::vector<std::uint32_t> numbers;
  std::vector<BaseDensity> bases;
  std::vector<double> log_norm;
  for (const auto& [unit, base] : units) {
    numbers.push_back(unit);
    bases.push_back(*base);
    log_norm.push_back(base->log_norm());
  }
  number_chains(spec, numbers, per);
  const auto engine = target->engine(spec);
  const int n = engine->chains();
  for (const int row : {int(ParameterLayout::step_size), int(ParameterLayout::trajectory_time)})
    engine->set_parameters(row, std::vector<double>(n, 0.3));
  engine->set_parameters(ParameterLayout::beta, std::vector<double>(n, 0.25));
  set_axis(*engine, engine->layout().scale(), std::vector<double>(d, 1), d);
  write_bases(*engine, numbers, bases, log_norm);
  std::vector<double> x(std::size_t(d) * n);
  for (int c = 0; c < n; ++c)
    for (int i = 0; i < d; ++i)
      x[std::size_t(i) * n + c] = 3 * std::sin(spec.chain[c] + 10.0 * spec.unit[c] + 3 * i);
  engine->set_position(x);
  engine->initialize();
  LaunchSpec launch;
  launch.end = 5;
  launch.num_leapfrog = 4;
  engine->advance(launch);
  return {engine->cache(), engine->position()};
}

/// Of the chains [first, first + count) of n.
std::vector<double> some(const std::vector<double>& rows, int n, int first, int count) {
  std::vector<double> out;
  for (std::size_t r = 0; r < rows.size(); r += n)
    out.insert(out.end(), rows.begin() + r + first, rows.begin() + r + first + count);
  return out;
}

TEST_P(Mixtures, BitsDoNotDependOnWhoIsInTheTile) {
  // 40 chains of each: tiles of one unit, whose numbers are read once for all, and of two.
  const auto one = make(9, 1), two = make(9, 2), five = make(9, 5);
  for (const Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
    const auto all = by_engine({{3, &one}, {5, &two}, {6, &five}, {9, &one}}, 40, precision);
    int k = 0;
    for (const auto& [unit, base] : {std::pair{3u, &one}, {5u, &two}, {6u, &five}, {9u, &one}}) {
      const auto alone = by_engine({{unit, base}}, 40, precision);
      EXPECT_EQ(some(all.cache, 160, 40 * k, 40), alone.cache) << unit;
      EXPECT_EQ(some(all.position, 160, 40 * k, 40), alone.position) << unit;
      ++k;
    }
    // Thirty-two chains stand in one tile alone, and beside others.
    const auto aligned = by_engine({{5, &two}, {6, &five}}, 32, precision),
               shifted = by_engine({{3, &one}, {5, &two}, {6, &five}}, 20, precision);
    EXPECT_EQ(some(aligned.cache, 64, 0, 20), some(shifted.cache, 60, 20, 20));
    EXPECT_EQ(some(aligned.position, 64, 32, 20), some(shifted.position, 60, 40, 20));
  }
}

}  // namespace
}  // namespace lockstep
