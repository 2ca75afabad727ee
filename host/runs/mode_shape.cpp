// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_shape.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

using ByRows = PointEngine::Rows;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr double kLongestCondition = 1e10;  // of a Hessian
constexpr int kNewtonSteps = 8;             // at most

struct Curvature {
  Vector gradient;    // at the point
  Matrix covariance;  // the inverse of minus the Hessian
};

std::optional<Curvature> curvature(PointEngine& points, const Vector& x) {
  const Eigen::Index d = x.size();
  Vector step = Vector::Constant(d, 1e-4), value;
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
    for (int i = 0; i < d; ++i) h.col(i) = (gradient.col(d + i) - gradient.col(i)) / (2 * step[i]);
    for (int i = 0; i < d; ++i)
      step[i] = h(i, i) > 0 ? std::clamp(0.05 / std::sqrt(h(i, i)), 1e-7, 1.0) : 1e-4;
  }
  // In units of each axis' own width: axes may be of very different scales.
  const Vector width = h.diagonal().cwiseInverse().cwiseSqrt();
  if (!h.allFinite() || !width.allFinite()) return {};
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(width.asDiagonal() * (0.5 * (h + h.transpose())) *
                                                    width.asDiagonal());
  if (eigen.info() != Eigen::Success) return {};
  const Vector& e = eigen.eigenvalues();
  if (!(e[0] > 0 && e[d - 1] / e[0] < kLongestCondition)) return {};
  const Matrix root = width.asDiagonal() * eigen.eigenvectors() * e.cwiseInverse().cwiseSqrt().asDiagonal();
  return Curvature{(gradient.leftCols(d) + gradient.rightCols(d)).rowwise().mean() / 2,
                   root * root.transpose()};
}

}  // namespace

std::optional<Mode> mode_at(PointEngine& points, Vector x) {
  const Eigen::Index d = x.size();
  Matrix covariance;
  Vector value;
  ByRows gradient;
  double gain = INFINITY;
  for (int step = 0, near = 0; step < kNewtonSteps && near < 3 && !(gain < 1e-6); ++step) {
    const auto c = curvature(points, x);
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
    covariance = c->covariance;
    x += newton;
  }
  if (!(gain < 1)) return {};
  points.evaluate(x, value, gradient);
  if (!std::isfinite(value[0])) return {};
  const ByRows factor = covariance.llt().matrixL();
  Mode mode;
  mode.place.assign(x.begin(), x.end());
  mode.factor.assign(factor.data(), factor.data() + factor.size());
  mode.log_density = value[0];
  mode.laplace_log_mass =
      value[0] + 0.5 * double(d) * std::log(2 * kPi) + factor.diagonal().array().log().sum();
  return mode;
}

}  // namespace lockstep
