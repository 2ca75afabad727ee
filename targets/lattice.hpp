// SPDX-License-Identifier: Apache-2.0
#pragma once
// For truths of hierarchical models, whose scales are integrated by the trapezoid rule on a lattice: the mode
// to put it around, the walk over the points that carry mass, and exact draws from what it integrates.
#include <Eigen/Dense>
#include <algorithm>
#include <limits>

#include "targets/target.hpp"

namespace lockstep {

/// The mode of a smooth density on D dimensions, and how sharply it falls along each axis.
template <int D>
struct Mode {
  using Vector = Eigen::Matrix<double, D, 1>;
  Vector x;
  double value;
  Vector curvature;  // -d^2 f / dx_i^2
};
/// Newton's step with the absolute values of the eigenvalues, so that it leads uphill from anywhere.
Eigen::VectorXd step_uphill(const Eigen::MatrixXd& hessian, const Eigen::VectorXd& gradient);
/// By such steps on central differences.
template <int D, class F>
Mode<D> find_mode(const F& f, typename Mode<D>::Vector x) {
  using Vector = typename Mode<D>::Vector;
  using Matrix = Eigen::Matrix<double, D, D>;
  constexpr double h = 1e-3;
  double value = f(x);
  Matrix hessian;
  auto at = [&](int i, double di, int j, double dj) {
    Vector y = x;
    y[i] += di * h;
    y[j] += dj * h;
    return f(y);
  };
  for (int iteration = 0; iteration < 100; ++iteration) {
    Vector gradient;
    for (int i = 0; i < D; ++i) {
      const double up = at(i, 1, i, 0), down = at(i, -1, i, 0);
      gradient[i] = (up - down) / (2 * h);
      hessian(i, i) = (up - 2 * value + down) / (h * h);
      for (int j = 0; j < i; ++j)
        hessian(i, j) = hessian(j, i) =
            (at(i, 1, j, 1) - at(i, 1, j, -1) - at(i, -1, j, 1) + at(i, -1, j, -1)) / (4 * h * h);
    }
    Vector step = step_uphill(hessian, gradient);
    if (step.norm() > 1) step.normalize();
    double next = f(x + step);
    for (int halving = 0; halving < 30 && !(next >= value); ++halving) {
      step *= 0.5;
      next = f(x + step);
    }
    if (!(next >= value)) break;
    x += step;
    value = next;
    if (step.norm() < 1e-5) break;
  }
  return {x, value, -hessian.diagonal()};
}

/// Visits start, then outwards both ways while height(k) is above `floor` or still rises; `start` becomes the
/// index of the largest height, where the walk along a neighbouring line does well to begin. `height` may
/// walk lines itself and then returns their largest height. NaN ends the walk.
template <class Height>
double walk(int& start, double floor, const Height& height) {
  const int middle = start;
  const double at_middle = height(middle);
  double best = at_middle;
  for (int direction : {1, -1}) {
    double before = at_middle;
    for (int k = middle + direction;; k += direction) {
      const double h = height(k);
      if (h > best) {
        best = h;
        start = k;
      }
      if (!(h >= floor || h > before)) break;
      before = h;
    }
  }
  return best;
}

/// Exact draws from a density p on D dimensions that was summed on a lattice: a point by its weight, moved
/// along each axis by the difference of two uniforms, has for density the multilinear interpolation of p
/// between lattice points, and rejection makes that p. log p(x) - log(interpolated p) is at most sum_i h_i^2
/// / 8 max(-d^2 log p / dx_i^2): with steps h_i of at most `step` conditional standard deviations, the bound
/// D step^2 holds wherever the curvatures are on average no more than 8 times those at the mode. What lies
/// beyond the lattice is never drawn.
template <int D>
class LatticeDraws {
 public:
  using Vector = Eigen::Matrix<double, D, 1>;

  LatticeDraws() = default;
  LatticeDraws(const Vector& steps, double step) : steps_(steps), bound_(std::exp(D * step * step)) {}
  void add(const Vector& x, double weight) {
    points_.push_back(x);
    cumulative_.push_back(weight + (cumulative_.empty() ? 0 : cumulative_.back()));
  }
  std::size_t size() const { return points_.size(); }

  template <class LogP>
  Vector draw(ExactDraw& random, const LogP& log_p) const {
    for (;;) {
      const double u = random.uniform() * cumulative_.back();
      const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u);
      const Vector& corner = points_[std::size_t(found - cumulative_.begin())];
      Vector move;
      for (double& v : move) {  // which of the two comes first is not the compiler's choice
        v = random.uniform();
        v -= random.uniform();
      }
      const double here = log_p(Vector(corner + steps_.cwiseProduct(move)));
      double proposed = 0;  // over p(here)
      for (int k = 0; k < 1 << D; ++k) {
        Vector x = corner;
        double share = 1;
        for (int i = 0; i < D; ++i) {
          const double size = std::abs(move[i]);
          share *= k >> i & 1 ? size : 1 - size;
          if (k >> i & 1) x[i] += std::copysign(steps_[i], move[i]);
        }
        proposed += share * std::exp(log_p(x) - here);
      }
      if (random.uniform() * bound_ * proposed < 1) return corner + steps_.cwiseProduct(move);
    }
  }

 private:
  Vector steps_;
  double bound_ = 1;
  std::vector<Vector> points_;
  std::vector<double> cumulative_;
};

}  // namespace lockstep
