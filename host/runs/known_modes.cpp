// SPDX-License-Identifier: Apache-2.0
#include "host/runs/known_modes.hpp"

#include <algorithm>
#include <cmath>

#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int kMostSteps = 500;
constexpr double kLeastGain = 1e-9;  // of the log density, at which a climb ends
constexpr double kLeastShare = 0.01;

struct Place {
  Vector x, gradient;
  double value;
};

/// A target that counts what it is asked.
struct Counted {
  const TargetInstance& target;
  double& gradients;
  Place operator()(Vector x) const {
    Place p{std::move(x), Vector(target.dim()), 0};
    p.value = target.log_density(p.x.data(), p.gradient.data());
    ++gradients;
    return p;
  }
};
bool usable(const Place& p) { return std::isfinite(p.value) && p.gradient.allFinite(); }

/// The top of the hill on which `p` stands.
Place climb(const Counted& at, Place p) {
  double step = 1e-3 / std::max(1e-300, p.gradient.norm());
  int small = 0;
  for (int k = 0; k < kMostSteps && usable(p) && small < 3; ++k) {
    Place next = at(p.x + step * p.gradient);
    for (int halving = 0; halving < 60 && !(usable(next) && next.value >= p.value); ++halving)
      next = at(p.x + (step *= 0.3) * p.gradient);
    if (!(usable(next) && next.value >= p.value)) break;
    small = next.value - p.value < kLeastGain ? small + 1 : 0;
    const Vector moved = next.x - p.x;
    const double bend = -moved.dot(next.gradient - p.gradient);  // above zero where the density is concave
    step = bend > 0 ? moved.squaredNorm() / bend : 4 * step;
    p = std::move(next);
  }
  return p;
}

/// Minus the Hessian: central differences of gradients over steps that change the log density by about 1e-4.
Matrix curvature(const Counted& at, const Place& top) {
  const int d = int(top.x.size());
  Matrix h(d, d);
  for (int i = 0; i < d; ++i) {
    double step = 1e-3 * std::max(1.0, std::abs(top.x[i]));
    const auto moved = [&](double by) {
      Vector x = top.x;
      x[i] += by;
      return at(std::move(x));
    };
    for (int k = 0; k < 40; ++k) {
      const double fall = top.value - moved(step).value;
      if (!(fall > 1e-3)) break;
      step *= 0.2;
    }
    h.col(i) = (moved(-step).gradient - moved(step).gradient) / (2 * step);
  }
  return 0.5 * (h + h.transpose());
}

}  // namespace

std::vector<KnownMode> known_modes(const TargetInstance& target, const std::vector<Vector>& points,
                                   double& gradients) {
  const Counted at{target, gradients};
  std::vector<KnownMode> modes;
  std::vector<Matrix> curvatures;
  for (const Vector& point : points) {
    const Place top = climb(at, at(point));
    if (!usable(top)) continue;
    const int number = int(&point - points.data());
    bool known = false;
    for (std::size_t k = 0; k < modes.size() && !known; ++k) {
      const Vector apart = top.x - modes[k].x;
      known = apart.dot(curvatures[k] * apart) < 1;
      if (known) modes[k].points.push_back(number);
    }
    if (known) continue;
    const Matrix h = curvature(at, top);
    const Eigen::LLT<Matrix> llt(h);
    if (!h.allFinite() || llt.info() != Eigen::Success) continue;
    const double log_det = 2 * Matrix(llt.matrixL()).diagonal().array().log().sum();
    modes.push_back({top.x, top.value + 0.5 * target.dim() * std::log(2 * kPi) - 0.5 * log_det, {number}});
    curvatures.push_back(h);
  }
  return modes;
}

std::vector<int> deal_points(const std::vector<KnownMode>& modes, int points, int superchains) {
  std::vector<double> share(points, 0.0);  // a point that leads to no mode is tried once
  double most = -INFINITY, total = 0;
  for (const KnownMode& m : modes) most = std::max(most, m.log_mass);
  for (const KnownMode& m : modes) total += std::exp(m.log_mass - most);
  for (const KnownMode& m : modes)
    for (int p : m.points) share[p] = std::exp(m.log_mass - most) / total / double(m.points.size());
  std::vector<int> dealt, count(points, 0);
  for (int s = 0; s < superchains; ++s) {
    int next = s % points;  // a point of its own, or then the one that lacks most
    if (s >= points)
      for (int p = 0; p < points; ++p)
        if (share[p] * (s + 1) - count[p] > share[next] * (s + 1) - count[next]) next = p;
    dealt.push_back(next);
    ++count[next];
  }
  return dealt;
}

std::vector<int> unvisited_modes(const std::vector<KnownMode>& modes, double log_z,
                                 const WeightedDraws& draws, const std::vector<double>& scale) {
  std::vector<double> weight(modes.size(), 0.0);
  const double most =
      draws.log_weight.empty() ? 0 : *std::max_element(draws.log_weight.begin(), draws.log_weight.end());
  for (std::size_t n = 0; n < draws.log_weight.size(); ++n) {
    const auto distance = [&](const KnownMode& mode) {
      double square = 0;
      for (int i = 0; i < draws.dim; ++i)
        square += std::pow((double(draws.x[n * draws.dim + i]) - mode.x[i]) / scale[i], 2);
      return square;
    };
    std::size_t nearest = 0;
    for (std::size_t k = 1; k < modes.size(); ++k)
      if (distance(modes[k]) < distance(modes[nearest])) nearest = k;
    if (!modes.empty()) weight[nearest] += std::exp(draws.log_weight[n] - most);
  }
  std::vector<int> missing;
  for (std::size_t k = 0; k < modes.size(); ++k)
    if (modes[k].log_mass - log_z > std::log(kLeastShare) && !(weight[k] > 1e-6)) missing.push_back(int(k));
  return missing;
}

}  // namespace lockstep
