// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bases made of modes, in two dimensions, as an engine has them: integral, mean and covariance by quadrature, and the
// gradient, with what roundings may make of each.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <numeric>
#include <string>

#include "host/engines/units.hpp"
#include "host/modes/mode_base.hpp"
#include "tests/support/engines.hpp"

namespace lockstep::testing {

/// Of modes on a spiral, each of e^-6 times the mass of the one before: all but two have the least weight, and those beyond
/// the 32nd are left out.
inline BaseDensity spiral_base(int modes, bool tied) {
  ModeLibrary library(2);
  for (int k = 0; k < modes; ++k) {
    const double radius = 0.9 * std::sqrt(k);
    Mode m;
    m.place = {radius * std::cos(2.4 * k), radius * std::sin(2.4 * k)};
    m.factor = {0.7 + 0.05 * (k % 5), 0, 0.3 - 0.1 * (k % 4), 0.8};
    m.laplace_log_mass = m.log_mass = -6 * k;
    library.add(m);
  }
  Eigen::Matrix2d covariance;
  covariance << 4, 1, 1, 3;
  return mode_base(library, Eigen::Vector2d(1, -0.5), covariance, tied);
}

/// Errors in units of roundoff, to first order: of a log density, and of its gradient.
struct Roundings {
  double value = 0;
  Eigen::Vector2d gradient = Eigen::Vector2d::Zero();
};
/// Of kernels/base.hpp at x, counted. Twice as many, for the reference in double has its own.
inline Roundings roundings(const BaseDensity& base, const Eigen::Vector2d& x) {
  using Vector = Eigen::Vector2d;
  const std::size_t count = base.components.size();
  const Vector first = base.components[0].mean;
  std::vector<double> share(count), error(count);
  std::vector<Vector> row(count), row_error(count);
  double top = -INFINITY, most = -INFINITY;
  for (const auto& c : base.components) most = std::max(most, std::log(c.weight) - c.log_det());
  for (std::size_t k = 0; k < count; ++k) {
    const auto& c = base.components[k];
    const Eigen::Matrix2d inverse = c.factor.inverse(), precision = inverse.transpose() * inverse;
    const Vector z = x - c.mean, size = z.cwiseAbs(), mean = c.mean.cwiseAbs();
    row[k] = precision * z;
    // A row of P (x - m): of each number, difference, product and sum one, and that of the mean. A tied one goes by
    // t (Q (x - m_1)) + t Q (m_1 - m), which may be larger, and has one of t and of its sum as well.
    Vector through = 6 * size + mean;
    if (base.tied && k > 0) through += 8 * (size + 2 * (first - c.mean).cwiseAbs()) + first.cwiseAbs();
    row_error[k] = precision.cwiseAbs() * through;
    const double a = std::log(c.weight) - c.log_det() - most;
    share[k] = a - 0.5 * row[k].dot(z);
    // Half of the rows times (x - m), three each and that of the mean; a; their difference.
    error[k] = 0.5 * (row_error[k].dot(size) + row[k].cwiseAbs().dot(3 * size + mean)) + std::abs(a) +
               std::abs(share[k]);
    top = std::max(top, share[k]);
  }
  double sum = 0, through = 0;
  for (std::size_t k = 0; k < count; ++k) {
    error[k] += top - share[k] + 2;  // of exp and its argument
    share[k] = std::exp(share[k] - top);
    sum += share[k];
  }
  for (std::size_t k = 0; k < count; ++k) through += share[k] / sum * error[k];
  const double inner = top + std::log(sum), log_norm = base.log_norm();
  Roundings r;
  r.value = 2 * (through + double(count) + 2 * std::log(sum) + std::abs(inner) + std::abs(log_norm) +
                 std::abs(log_norm + inner));
  // Of shares, which are divided by their sum, and of rows.
  for (std::size_t k = 0; k < count; ++k)
    r.gradient += 2 * share[k] / sum *
                  ((error[k] + through + 2 * double(count) + 4) * row[k].cwiseAbs() + row_error[k]);
  return r;
}

/// A base by an engine's chains on a grid. The numbers of the grid are exact in single precision.
class BaseGrid {
 public:
  static constexpr int kSide = 96, kPoints = kSide * kSide;
  static constexpr double kEdge = -21, kStep = 0.4375;
  /// The trapezium rule's own error, of integrals of 1 and of second moments, which are below 10. Its terms beyond the
  /// first are exp(-2 pi^2 v / step^2) each, with v >= 0.5 the least variance along any direction: 1e-22. Beyond the edge,
  /// 8 standard deviations of the defensive part away, are 1e-15 of it, and 1e-13 of its second moments. Sums of so many
  /// terms in double: 9216 2^-53 10 = 1e-11.
  static constexpr double kRule = 2e-11;

  explicit BaseGrid(const BaseDensity& of) : base(of) {
    for (int k = 0; k < kPoints; ++k) {
      const Eigen::Vector2d x(kEdge + kStep * (k % kSide), kEdge + kStep * (k / kSide));
      points_.push_back(x);
      roundings_.push_back(roundings(base, x));
    }
  }

  struct Quadrature {
    double mass = 0, mass_error = 0;  // what roundings may make of it
    // About the mean that the base states.
    Eigen::Vector2d first = Eigen::Vector2d::Zero(), first_error = first;
    Eigen::Matrix2d second = Eigen::Matrix2d::Zero(), second_error = second;
    double worst = 0;  // the largest error of a log density over what it may be
  };
  Quadrature quadrature(const EngineFactory& make, Precision precision, bool blocks) const {
    Quadrature q;
    const auto cache = chains(make, precision, blocks, true)->cache();
    // The normaliser is a parameter, in the precision of the state.
    const double log_norm = base.log_norm(),
                 shift = (precision == Precision::double_ ? log_norm : double(float(log_norm))) - log_norm,
                 unit = precision == Precision::single ? 0x1p-24 : 0x1p-53;
    const Eigen::Vector2d mean = base.mean();
    for (int k = 0; k < kPoints; ++k) {
      const double l = cache[k] - shift, w = kStep * kStep * std::exp(l), error = unit * roundings_[k].value;
      const Eigen::Vector2d from = points_[k] - mean;
      q.worst = larger(q.worst, std::abs(l - base.log_density(points_[k])) / error);
      q.mass += w;
      q.mass_error += w * error;
      q.first += w * from;
      q.first_error += w * error * from.cwiseAbs();
      q.second += w * from * from.transpose();
      q.second_error += w * error * (from * from.transpose()).cwiseAbs();
    }
    return q;
  }

  struct Gradients {
    double worst = 0;  // the largest error over what it may be
    int seen = 0;
  };
  /// An engine keeps the target's gradient alone. But a leapfrog step e leads the same momenta e^2 / 2 times the base's
  /// farther than where there is no base, unless it is rejected.
  Gradients gradients(const EngineFactory& make, Precision precision, bool blocks) const {
    LaunchSpec launch;
    launch.key = {31, 41};
    launch.end = launch.num_leapfrog = 1;
    launch.jitter = false;
    std::vector<double> to, without;
    for (const bool with_base : {true, false}) {
      const auto engine = chains(make, precision, blocks, with_base);
      engine->advance(launch);
      (with_base ? to : without) = engine->position();
    }
    const double unit = precision == Precision::double_ ? 0x1p-53 : 0x1p-24, far = 0.5 * kLeap * kLeap;
    Gradients g;
    for (int k = 0; k < kPoints; ++k) {
      const Eigen::Vector2d& x = points_[k];
      if (to[k] == x[0] && to[kPoints + k] == x[1]) continue;
      ++g.seen;
      for (int i = 0; i < 2; ++i) {
        const double here = to[std::size_t(i) * kPoints + k], there = without[std::size_t(i) * kPoints + k],
                     slope = difference(x, i), momentum = std::abs(there - x[i]) / kLeap;
        // Of both places, both momenta and their steps; of the gradient and its kick; of the difference.
        const double error = unit * ((std::abs(here) + std::abs(there)) / far +
                                     (4 * momentum + 2 * kLeap * std::abs(slope)) * kLeap / far +
                                     roundings_[k].gradient[i] + 2 * std::abs(slope)) +
                             kDifference;
        g.worst = larger(g.worst, std::abs((here - there) / far - slope) / error);
      }
    }
    return g;
  }

  BaseDensity base;

 private:
  static double larger(double a, double b) { return std::isnan(a) || a >= b ? a : b; }
  static constexpr double kLeap = 0.25;

  /// At the base's end of the path; or of no base at all. Of three tiles two are of one unit, the other of two.
  std::unique_ptr<Engine> chains(const EngineFactory& make, Precision precision, bool blocks,
                                 bool with_base) const {
    constexpr int kPer = 48;
    EngineSpec spec;
    spec.model.kind = ModelKind::path;
    spec.model.base = with_base ? base.number() : 0;
    spec.precision = precision;
    spec.blocks = blocks;
    std::vector<std::uint32_t> units(kPoints / kPer);
    std::iota(units.begin(), units.end(), 0);
    number_chains(spec, units, kPer);
    auto engine = make(spec);
    set_per_unit(*engine, ParameterLayout::beta, {0});
    set_per_unit(*engine, ParameterLayout::log_zeta, {0});
    set_per_unit(*engine, ParameterLayout::step_size, {kLeap});
    set_axis(*engine, engine->layout().scale(), {1, 1}, 2);
    if (with_base)
      write_bases(*engine, units, {base}, {base.log_norm()});
    else
      write_bases(*engine, BaseAxes{{}, {}, {0}});
    std::vector<double> rows(2 * kPoints);
    for (int k = 0; k < 2 * kPoints; ++k) rows[k] = points_[k % kPoints][k / kPoints];
    engine->set_position(rows);
    engine->initialize();
    return engine;
  }
  /// Of the reference, by four points 1e-3 apart: 4e-14 of its fifth derivative, and 1e3 roundings of numbers up to 500.
  static constexpr double kDifference = 1e-9;
  double difference(const Eigen::Vector2d& x, int i) const {
    constexpr double h = 1e-3;
    const auto moved = [&](double by) {
      Eigen::VectorXd y = x;
      y[i] += by;
      return base.log_density(y);
    };
    return (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
  }

  std::vector<Eigen::Vector2d> points_;
  std::vector<Roundings> roundings_;
};

inline std::string case_of(const BaseGrid& grid, Precision precision, bool blocks) {
  return "base " + std::to_string(grid.base.number()) + " of " + std::to_string(grid.base.components.size()) +
         ", precision " + std::to_string(int(precision)) + (blocks ? ", blocks" : "");
}

/// Density, integral, moments and gradient are what the base states of itself, within roundings.
inline void check_base(const EngineFactory& make, const BaseGrid& grid, Precision precision, bool blocks) {
  const std::string what = case_of(grid, precision, blocks);
  const auto q = grid.quadrature(make, precision, blocks);
  EXPECT_LE(q.worst, 1) << what;
  EXPECT_LE(std::abs(q.mass - 1), q.mass_error + BaseGrid::kRule) << what;
  EXPECT_LE(q.mass_error, precision == Precision::single ? 2e-5 : 1e-13) << what << ": says nothing";
  const Eigen::MatrixXd covariance = grid.base.covariance();
  for (int i = 0; i < 2; ++i) {
    EXPECT_LE(std::abs(q.first[i]), q.first_error[i] + BaseGrid::kRule) << what;
    for (int j = 0; j < 2; ++j)
      EXPECT_LE(std::abs(q.second(i, j) - covariance(i, j)), q.second_error(i, j) + BaseGrid::kRule) << what;
  }
  const auto g = grid.gradients(make, precision, blocks);
  EXPECT_LE(g.worst, 1) << what;
  EXPECT_GT(g.seen, 0.9 * BaseGrid::kPoints) << what;
}

/// A weight that is a thousandth too large makes the integral larger by as much as that is, which is no rounding.
inline void check_too_heavy(const EngineFactory& make, BaseDensity base) {
  const double more = 1e-3 * base.components[0].weight;
  base.components[0].weight += more;
  const BaseGrid grid(base);
  for (const Precision precision : {Precision::double_, Precision::single, Precision::mixed}) {
    const auto q = grid.quadrature(make, precision, false);
    const double error = q.mass_error + BaseGrid::kRule;
    EXPECT_LE(std::abs(q.mass - 1 - more), error) << case_of(grid, precision, false);
    EXPECT_GT(q.mass - 1, 2 * error) << case_of(grid, precision, false);
  }
}

}  // namespace lockstep::testing
