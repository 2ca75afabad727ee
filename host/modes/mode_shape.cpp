// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_shape.hpp"

#include <algorithm>
#include <cmath>

#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using ByRows = PointEngine::Rows;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double kLongestCondition = 1e10;  // of a Hessian
constexpr int kNewtonSteps = 8;             // at most
constexpr int kFinerSteps = 6;              // at most
constexpr double kLeastStep = 1e-7;         // of differences

struct Curvature {
  Vector gradient;      // at the point
  Matrix covariance;    // the inverse of minus the Hessian
  Vector step, beside;  // of the differences, and the mean log density one step to either side
};

/// By differences over at most so much of each axis.
std::optional<Curvature> curvature(PointEngine& points, const Vector& x, const Vector& most) {
  const Eigen::Index d = x.size();
  Vector step = most.cwiseMin(1e-4), taken, value;
  ByRows gradient;
  Matrix h(d, d);
  for (int pass = 0; pass < 2; ++pass) {
    ByRows around = x.replicate(1, 2 * d);
    for (int i = 0; i < d; ++i) {
      around(i, i) += step[i];
      around(i, d + i) -= step[i];
    }
    points.evaluate(around, value, gradient);
    if (!value.allFinite()) return {};
    taken = step;
    for (int i = 0; i < d; ++i) h.col(i) = (gradient.col(d + i) - gradient.col(i)) / (2 * step[i]);
    for (int i = 0; i < d; ++i)
      step[i] =
          h(i, i) > 0 ? std::clamp(0.05 / std::sqrt(h(i, i)), kLeastStep, most[i]) : std::min(1e-4, most[i]);
  }
  // In units of each axis' own width: axes may be of very different scales.
  const Vector width = h.diagonal().cwiseInverse().cwiseSqrt();
  if (!h.allFinite() || !width.allFinite()) return {};
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(
      (width.asDiagonal() * (0.5 * (h + h.transpose())) * width.asDiagonal()).eval());
  if (eigen.info() != Eigen::Success) return {};
  const Vector& e = eigen.eigenvalues();
  if (!(e[0] > 0 && e[d - 1] / e[0] < kLongestCondition)) return {};
  const Matrix root = width.asDiagonal() * eigen.eigenvectors() * e.cwiseInverse().cwiseSqrt().asDiagonal();
  return Curvature{(gradient.leftCols(d) + gradient.rightCols(d)).rowwise().mean() / 2,
                   root * root.transpose(), taken, 0.5 * (value.head(d) + value.tail(d))};
}

/// By differences over at most `most` of each axis, which it makes less where the density falls by more than these see.
std::optional<Mode> mode_within(PointEngine& points, Vector x, Vector& most) {
  const Eigen::Index d = x.size();
  Curvature last;
  Vector value;
  ByRows gradient;
  double gain = INFINITY;
  for (int step = 0, near = 0; step < kNewtonSteps && near < 3 && !(gain < 1e-6); ++step) {
    const auto c = curvature(points, x, most);
    if (!c) return {};
    const Vector newton = c->covariance * c->gradient;
    gain = newton.dot(c->gradient);
    if (gain < 1) {
      ++near;
    } else {  // descents stop early where widths are of many scales; the density is to rise by half of gain
      points.evaluate(x, value, gradient);
      const double height = value[0];
      points.evaluate(x + newton, value, gradient);
      if (!(value[0] - height > gain / 8)) return {};
    }
    last = *c;
    x += newton;
  }
  if (!(gain < 1)) return {};
  points.evaluate(x, value, gradient);
  if (!std::isfinite(value[0])) return {};
  for (int i = 0; i < d; ++i) {
    const double fall = value[0] - last.beside[i];
    if (fall > 1) most[i] = std::max(kLeastStep, last.step[i] * 0.05 / std::sqrt(2 * fall));
  }
  const ByRows factor = last.covariance.llt().matrixL();
  Mode mode;
  mode.place.assign(x.begin(), x.end());
  mode.factor.assign(factor.data(), factor.data() + factor.size());
  mode.log_density = value[0];
  mode.laplace_log_mass =
      value[0] + 0.5 * double(d) * std::log(2 * kPi) + factor.diagonal().array().log().sum();
  return mode;
}

/// Whether the log density falls by about a half within one standard deviation, along every axis of the normal: on the flat
/// top of something that then falls steeply differences within less see too little.
bool falls_like_its_normal(PointEngine& points, const Mode& mode) {
  const Eigen::Index d = Eigen::Index(mode.place.size());
  const Eigen::Map<const Vector> place(mode.place.data(), d);
  const Eigen::Map<const ByRows> factor(mode.factor.data(), d, d);
  ByRows around(d, 2 * d), gradient;
  around << factor.colwise() + place, (-factor).colwise() + place;
  Vector value;
  points.evaluate(around, value, gradient);
  const Eigen::ArrayXd fall = mode.log_density - 0.5 * (value.head(d) + value.tail(d)).array();
  return (fall > 0.1).all() && (fall < 2).all();
}

}  // namespace

std::optional<Mode> mode_at(PointEngine& points, const Vector& x) {
  Vector most = Vector::Ones(x.size()), before = most;
  auto first = mode_within(points, x, most);
  auto finer = first;
  for (int again = 0; finer && most != before; ++again) {
    if (again == kFinerSteps) return first;
    before = most;
    finer = mode_within(points, x, most);
  }
  return finer && (most.minCoeff() == 1 || falls_like_its_normal(points, *finer)) ? finer : first;
}

}  // namespace lockstep
