// SPDX-License-Identifier: Apache-2.0
#include "targets/welling_teh.hpp"

#include <algorithm>
#include <set>

#include "targets/columns.hpp"
#include "targets/lattice.hpp"

namespace lockstep {
namespace {

using Eigen::Vector2d;
constexpr int kMaxObservations = 10000;

/// Points of a lattice where log p is within `depth` of its largest value found, in regions that hold one of the
/// starts: each visited with its neighbours, as long as it is high enough.
template <class LogP>
std::map<std::array<int, 2>, double> flood(const std::vector<Vector2d>& starts, const Vector2d& h,
                                           double depth, const LogP& log_p) {
  std::map<std::array<int, 2>, double> met;
  std::vector<std::array<int, 2>> open;
  double best = -std::numeric_limits<double>::infinity();
  auto visit = [&](std::array<int, 2> at) {
    const auto [place, is_new] = met.emplace(at, 0.0);
    if (!is_new) return;
    place->second = log_p(Vector2d(h[0] * at[0], h[1] * at[1]));
    best = std::max(best, place->second);
    open.push_back(at);
  };
  for (const Vector2d& s : starts) visit({int(std::lround(s[0] / h[0])), int(std::lround(s[1] / h[1]))});
  while (!open.empty()) {
    const auto at = open.back();
    open.pop_back();
    if (!(met.at(at) > best - depth)) continue;
    for (int step : {-1, 1}) {
      visit({at[0] + step, at[1]});
      visit({at[0], at[1] + step});
    }
  }
  return met;
}

/// The modes that Newton's steps find from pairs of quantiles of the data, as the means of the two components.
template <class LogP>
std::vector<Vector2d> find_modes(std::vector<double> x, const LogP& log_p) {
  std::sort(x.begin(), x.end());
  std::vector<double> level;
  for (int q = 0; q <= 4; ++q) level.push_back(x[(x.size() - 1) * std::size_t(q) / 4]);
  std::vector<Vector2d> modes;
  for (double a : level)
    for (double b : level) modes.push_back(find_mode<2>(log_p, Vector2d(a, b - a)).x);
  return modes;
}

/// The trapezoid rule. Multiplied out, the posterior is a sum of 2^n Gaussians, and none has precisions along the axes
/// above n / 2 + 1/10 and n / 2 + 1: with steps of half the standard deviations of these, the rule's error is below
/// exp(-2 pi^2 / 0.5^2) = 5e-35 of it, and the bound that exact draws need holds everywhere. What is left out is 40
/// below the top.
LatticeDraws<2> integrate(const WellingTeh& density, const std::vector<double>& x, Truth& truth) {
  auto log_p = [&](const Vector2d& theta) {
    return density.log_density<0, double>(CommonRows<double>{theta.data()}, NoGradient{});
  };
  const double half = double(x.size()) / WellingTeh::kVariance;
  const Vector2d h(0.5 / std::sqrt(half + 1 / WellingTeh::kVariance1),
                   0.5 / std::sqrt(half + 1 / WellingTeh::kVariance2));
  const auto points = flood(find_modes(x, log_p), h, 40, log_p);
  double best = -std::numeric_limits<double>::infinity(), mass = 0;
  for (const auto& [at, l] : points) best = std::max(best, l);
  LatticeDraws<2> draws{h, 0.5};
  Vector2d first = Vector2d::Zero();
  Eigen::Matrix2d second = Eigen::Matrix2d::Zero();
  for (const auto& [at, l] : points) {
    const Vector2d theta(h[0] * at[0], h[1] * at[1]);
    const double weight = std::exp(l - best);
    draws.add(theta, weight);
    mass += weight;
    first += weight * theta;
    second += weight * theta * theta.transpose();
  }
  first /= mass;
  second = second / mass - first * first.transpose();
  truth.log_z = best + std::log(mass * h.prod());
  truth.mean = {first[0], first[1]};
  truth.covariance = {second(0, 0), second(0, 1), second(1, 0), second(1, 1)};
  return draws;
}

/// From theta = (0, 1), as in the paper.
std::vector<double> simulated(int observations, std::uint64_t seed) {
  ExactDraw random(seed, "observations");
  std::vector<double> x(std::size_t(observations), 0.0);
  for (double& v : x) {
    const double mean = random.uniform() < 0.5 ? 0 : 1;
    v = mean + std::sqrt(WellingTeh::kVariance) * random.normal();
  }
  return x;
}

std::vector<double> read_data(TargetInput& in) {
  if (!in.has_data()) {
    const int observations = in.integer("observations", 100, 1, kMaxObservations);
    return simulated(observations, std::uint64_t(in.integer("seed", 3, 0, std::numeric_limits<int>::max())));
  }
  in.refuse_beside_data({"observations", "seed"});
  std::vector<double> x = read_column(in, "x", "observation");
  if (x.size() > std::size_t(kMaxObservations))
    in.fail("x has " + std::to_string(x.size()) + " entries (target welling_teh takes at most " +
            std::to_string(kMaxObservations) + "). Give fewer");
  for (double v : x)
    if (!(std::abs(v) <= 1e4))
      in.fail("x has an entry beyond 10,000 (the model's components have variance 2). Rescale it");
  return x;
}

}  // namespace

TargetInfo WellingTehTarget::info() {
  return {.name = "welling_teh",
          .summary = "posterior of a mixture's two means, with two modes (Welling & Teh 2011)",
          .formula =
              "x_i ~ N(theta_1, 2) / 2 + N(theta_1 + theta_2, 2) / 2, theta_1 ~ N(0, 10), theta_2 ~ N(0, 1) "
              "(variances)",
          .settings = {{"observations",
                        "number of simulated data, from theta = (0, 1) (default 100; without "
                        "data)"},
                       {"seed",
                        "seed of simulated data (default 3, which puts modes near (0, 1) and (1, -1), as in "
                        "the paper; without "
                        "data)"}},
          .data = "optional: x, a list of numbers",
          .truth = "quadrature: log Z = log p(x), mean, covariance; draws"};
}

Built<WellingTeh> WellingTehTarget::build(TargetInput& in) {
  const std::vector<double> x = read_data(in);
  Built<WellingTeh> built(2);
  built.density.observations = int(x.size());
  built.density.constant = -0.5 * std::log(4 * kPi * kPi * WellingTeh::kVariance1 * WellingTeh::kVariance2) -
                           double(x.size()) * 0.5 * std::log(8 * kPi * WellingTeh::kVariance);
  built.density.x = built.pool.add(x);
  built.names = {"theta_1", "theta_2"};
  const auto draws = std::make_shared<const LatticeDraws<2>>(integrate(built.density, x, built.truth));
  built.draw = [draws, density = built.density](ExactDraw& random, double* theta) {
    const Vector2d found = draws->draw(random, [&](const Vector2d& t) {
      return density.log_density<0, double>(CommonRows<double>{t.data()}, NoGradient{});
    });
    theta[0] = found[0];
    theta[1] = found[1];
  };
  return built;
}

}  // namespace lockstep
