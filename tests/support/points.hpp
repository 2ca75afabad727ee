// SPDX-License-Identifier: Apache-2.0
#pragma once
// Positions at which targets are tested, and how well their gradients can be known there.
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/subject.hpp"

namespace lockstep::testing {

using Point = std::vector<double>;

/// Exact draws; standard normals scaled by 3 where the target has none.
inline std::vector<Point> typical_points(const Subject& s, int count, std::uint64_t seed) {
  ExactDraw random(seed);
  std::vector<Point> points(count, Point(s.dim()));
  for (Point& x : points) {
    if (s.target->can_draw())
      s.target->draw(random, x.data());
    else
      for (double& v : x) v = 3 * random.normal();
  }
  return points;
}

/// Typical points moved away from the mean by `factor`; below one, towards it.
inline std::vector<Point> scaled_points(const Subject& s, int count, double factor, std::uint64_t seed) {
  auto points = typical_points(s, count, seed);
  for (Point& x : points)
    for (int i = 0; i < s.dim(); ++i) {
      const double m = s.target->truth().mean[i], centre = std::isfinite(m) ? m : 0;
      x[i] = centre + factor * (x[i] - centre);
    }
  return points;
}

/// Rounded to float, so that every precision starts from the same numbers.
inline std::vector<Point> as_float(std::vector<Point> points) {
  for (Point& x : points)
    for (double& v : x) v = static_cast<float>(v);
  return points;
}

/// [row][chain], as engines take positions.
inline std::vector<double> as_rows(const std::vector<Point>& points) {
  std::vector<double> rows(points.size() * points[0].size());
  for (std::size_t c = 0; c < points.size(); ++c)
    for (std::size_t i = 0; i < points[c].size(); ++i) rows[i * points.size() + c] = points[c][i];
  return rows;
}

/// |g_i| + sum_j |d g_i / d x_j| (1 + |x_j|): what a relative change of 1 in every input, with inputs below 1
/// in size moved by 1, does to each component of the gradient, to first order. A stable evaluation with unit
/// roundoff eps is off by a small multiple of eps times this.
inline std::vector<double> gradient_condition(const Subject& s, const Point& x) {
  Point g, up, down;
  s.log_density(x, &g);
  std::vector<double> condition(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) condition[i] = std::abs(g[i]);
  for (std::size_t j = 0; j < x.size(); ++j) {
    Point y = x;
    const double h = 1e-6 * (1 + std::abs(x[j]));
    y[j] = x[j] + h;
    s.log_density(y, &up);
    y[j] = x[j] - h;
    s.log_density(y, &down);
    for (std::size_t i = 0; i < g.size(); ++i)
      condition[i] += std::abs(up[i] - down[i]) / (2 * h) * (1 + std::abs(x[j]));
  }
  return condition;
}

/// The same for the log density: |f| + sum_i |g_i| (1 + |x_i|).
inline double value_condition(double f, const Point& g, const Point& x) {
  double condition = 1 + std::abs(f);
  for (std::size_t i = 0; i < x.size(); ++i) condition += std::abs(g[i]) * (1 + std::abs(x[i]));
  return condition;
}

/// A central difference in coordinate i with a bound on its error: truncation as the change under halving the
/// step, twice (it should fall fourfold each time), and rounding as a multiple of eps times the condition of
/// f, over the step. Of five steps, the one with the smallest bound.
struct Difference {
  double value = 0, error = std::numeric_limits<double>::infinity();
};
inline Difference central_difference(const Subject& s, const Point& x, const Point& g, int i) {
  const double noise =
      8 * std::numeric_limits<double>::epsilon() * s.lost(x) * value_condition(s.value(x), g, x);
  auto quotient = [&](double h) {
    Point up = x, down = x;
    up[i] += h;
    down[i] -= h;
    return (s.value(up) - s.value(down)) / (up[i] - down[i]);
  };
  Difference best;
  for (double h = 1e-2 * (1 + std::abs(x[i])); h > 1e-7 * (1 + std::abs(x[i])); h *= 0.1) {
    const double wide = quotient(h), middle = quotient(h / 2), narrow = quotient(h / 4);
    const double error = std::abs(wide - middle) + std::abs(middle - narrow) + noise / (h / 4);
    if (error < best.error) best = {narrow, error};
  }
  return best;
}

}  // namespace lockstep::testing
