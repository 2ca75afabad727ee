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
constexpr int kMassDegrees = 3;
constexpr double kMassWidening = 2.5;  // of covariances

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

/// A squared Mahalanobis distance that a draw of a normal exceeds once in 10,000 (Wilson & Hilferty 1931).
double farthest(int dim) {
  const double variance = 2.0 / (9 * dim);
  return dim * std::pow(1 - variance + 3.72 * std::sqrt(variance), 3);
}

/// A mode's mass and effective share by its draws' weights; whether any counts.
bool sum_up(Mode& mode, const Vector& log_w) {
  const double most = log_w.maxCoeff();
  if (!std::isfinite(most)) return false;
  const Eigen::ArrayXd w = (log_w.array() - most).exp();
  mode.log_mass = most + std::log(w.mean());
  mode.effective_share = w.sum() * w.sum() / w.square().sum() / kMassDraws;
  return true;
}

void weigh(ModeLibrary& library, int k, PointEngine& points, const RunContext& context, std::uint32_t unit) {
  Mode& mode = library[k];
  const int d = library.dim();
  const ByRows factor = Eigen::Map<const ByRows>(mode.factor.data(), d, d) * std::sqrt(kMassWidening);
  const Eigen::Map<const Vector> place(mode.place.data(), d);
  RandomStream random(Purpose::mode_mass, context.key, (std::uint64_t(unit) << 32) | std::uint64_t(k));
  ByRows x(d, kMassDraws);
  Vector log_q(kMassDraws), distance(kMassDraws), z(d), value;  // distance: squared, Mahalanobis
  const double norm = std::lgamma(0.5 * (kMassDegrees + d)) - std::lgamma(0.5 * kMassDegrees) -
                      0.5 * d * std::log(kMassDegrees * kPi) - factor.diagonal().array().log().sum();
  for (int n = 0; n < kMassDraws; ++n) {
    for (int i = 0; i < d; ++i) z[i] = random.normal();
    double chi = 0;
    for (int i = 0; i < kMassDegrees; ++i) chi += std::pow(random.normal(), 2);
    z *= std::sqrt(kMassDegrees / chi);
    x.col(n) = place + factor.triangularView<Eigen::Lower>() * z;
    distance[n] = kMassWidening * z.squaredNorm();
    log_q[n] = norm - 0.5 * (kMassDegrees + d) * std::log1p(z.squaredNorm() / kMassDegrees);
  }
  ByRows gradient;
  points.evaluate(x, value, gradient);
  Vector log_w = value - log_q;
#pragma omp parallel for num_threads(context.threads) schedule(static)
  for (int n = 0; n < kMassDraws; ++n) {
    const Vector at = x.col(n);
    if (library.home(at.data()) != k) log_w[n] = -INFINITY;
  }
  const double least = kResembles * usual_effective_share(d);
  if (!sum_up(mode, log_w) || library.size() > 1 || mode.effective_share >= least) return;
  // All is home to the only mode. Where it is the core of something wider, a few draws from far out carry the sum.
  log_w = (distance.array() > farthest(d)).select(-INFINITY, log_w);
  Mode core = mode;
  constexpr double kFewDraws = 10;
  if (sum_up(core, log_w) && core.effective_share >= std::max(least, kFewDraws / kMassDraws)) mode = core;
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

void weigh_modes(ModeLibrary& library, PointEngine& points, const RunContext& context, std::uint32_t unit) {
  const auto order = library.by_mass();
  for (int m = 0; m < std::min(kMassModes, int(order.size())); ++m)
    weigh(library, order[m], points, context, unit);
}

std::vector<double> share_errors(const ModeLibrary& library) {
  const std::vector<double> p = library.shares();
  std::vector<double> part(p.size(), 0.0), errors(p.size());  // p_k^2 v_k
  if (library.size() == 1) return {0.0};                      // all of what was found
  double all = 0, guessed = 0;
  const double total = library.log_total();
  for (int k = 0; k < library.size(); ++k) {
    const Mode& m = library[k];
    if (std::isnan(m.log_mass)) continue;  // not weighed
    if (!m.mass_known()) {
      part[k] = NAN;
      guessed += std::exp(std::max(m.log_mass, m.laplace_log_mass) - total);
      continue;
    }
    part[k] = p[k] * p[k] * (1 / m.effective_share - 1) / kMassDraws;
    all += part[k];
  }
  if (guessed > 0.01) all = NAN;
  for (std::size_t k = 0; k < p.size(); ++k)
    errors[k] = std::sqrt((1 - p[k]) * (1 - p[k]) * part[k] + p[k] * p[k] * (all - part[k]));
  return errors;
}

}  // namespace lockstep
