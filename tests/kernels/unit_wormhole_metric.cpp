// SPDX-License-Identifier: Apache-2.0
// Wormhole HMC in its metric version against dense algebra and finite differences: the metric and its Hamiltonian, the
// momenta drawn, the step's way back and its volume.
#include "kernels/wormhole_metric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kernels/driver.hpp"
#include "kernels/wormhole_felt.hpp"
#include "kernels/wormhole_geometry.hpp"
#include "targets/decompositions.hpp"
#include "tests/support/scalar_model.hpp"
#include "tests/support/wormholes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using PlainModel = Path<CurvedDensity, 0, false>;

constexpr int kDim = 3;
constexpr double kEpsilon = 0.03;

ScalarModel<PlainModel> curved() {
  CurvedDensity density;
  density.dim = kDim;
  return ScalarModel(PlainModel{density, ParameterLayout{kDim}});
}

/// A chain among so many wormholes, and what a test does to it.
struct Traveller {
  bool worlds;
  Network network;
  ScalarModel<PlainModel> model = curved();
  WormholeChain<PlainModel, WormholeMetric> chain;
  using Lane = decltype(chain)::Lane;
  Lane lane;
  GeometryRows<Lane> rows;
  Traveller(int wormholes, bool two_worlds, double epsilon = kEpsilon)
      : worlds(two_worlds),
        network(network_of(kDim, wormholes, worlds, 1.2)),
        chain(model, network.list(), worlds ? 2 : 1),
        lane(with_epsilon(epsilon)),
        rows(chain.rows<GeometryRows>()) {}
  Lane with_epsilon(double epsilon) {
    chain.settings[WormholeMetric::epsilon] = epsilon;
    return chain.lane();
  }
  int size() const { return worlds ? kDim + 1 : kDim; }
  double count() const { return double(network.a.size()); }
  WormholeGeometry<Lane> geometry() const {
    return {lane, rows, 0, count(), size(), chain.settings[WormholeMetric::epsilon]};
  }
  void place(const VectorXd& x, const VectorXd& p) {
    for (int j = 0; j <= kDim; ++j) {
      rows.position.set(j, x[j]);
      rows.momentum.set(j, p[j]);
      if (j < kDim) chain.x[j] = x[j];
    }
    take_gradient();
    rows.set(rows.cause, -1.0);
  }
  void take_gradient() { std::ranges::copy(model.gradient(chain.x), chain.g.begin()); }
  std::pair<VectorXd, VectorXd> state() const {
    VectorXd x(kDim + 1), p(kDim + 1);
    for (int j = 0; j <= kDim; ++j) x[j] = rows.position[j], p[j] = rows.momentum[j];
    return {x, p};
  }
  /// H but for the density's part, by dense algebra.
  double energy(const VectorXd& x, const VectorXd& p) const {
    const MatrixXd g = network.metric(x, size(), chain.settings[WormholeMetric::epsilon]);
    return 0.5 * (std::log(g.determinant()) + p.dot(g.llt().solve(p)));
  }
  /// A step of the generalised leapfrog.
  std::pair<VectorXd, VectorXd> step(const VectorXd& x, const VectorXd& p, double size) {
    place(x, p);
    Proposal<double, double> r;
    r.step = size;
    r.steps = 1;
    const Draw<double> draw{{3, 4}, 7, 1, 2};
    WormholeMetric::kick<double>(model.model, 0, 0.0, size / 2, lane);
    WormholeMetric::move(model.model, draw, 1.0, r, lane);
    take_gradient();
    WormholeMetric::push(model.model, draw, 1.0, r, lane);
    return state();
  }
  double cause() const { return rows.get(rows.cause); }
  /// All of H.
  double hamiltonian(const VectorXd& x, const VectorXd& p) const {
    const double y = worlds ? x[kDim] : 0;
    return energy(x, p) + 0.5 * y * y - model.log_density({x.data(), x.data() + kDim});
  }
};

/// Points about its wormholes with momenta of its metric.
struct Points {
  std::mt19937 random{3};
  std::normal_distribution<double> normal;
  std::pair<VectorXd, VectorXd> next(const Traveller& t) {
    const std::size_t k = random() % t.network.a.size();
    const double along = std::uniform_real_distribution<>(-0.1, 1.1)(random);
    VectorXd x = t.network.a[k] + along * (t.network.c[k] - t.network.a[k]), z(kDim + 1);
    for (int j = 0; j <= kDim; ++j) x[j] += 0.3 * normal(random), z[j] = normal(random);
    if (!t.worlds) x[kDim] = z[kDim] = 0;
    const MatrixXd g = t.network.metric(x, t.size(), t.chain.settings[WormholeMetric::epsilon]);
    return {x, g.llt().matrixL() * z};
  }
};
template <class Test>
void on_every_network(Test test) {
  for (const int wormholes : {1, 3, 6})
    for (const bool worlds : {false, true}) {
      SCOPED_TRACE(::testing::Message() << wormholes << " wormholes, two worlds: " << worlds);
      test(wormholes, worlds);
    }
}

TEST(WormholeMetric, MetricEnergyAndItsGradient) {
  on_every_network([](int wormholes, bool worlds) {
    Traveller t(wormholes, worlds);
    Points points;
    double most = 0;
    for (int trial = 0; trial < 10; ++trial) {
      const auto [x, p] = points.next(t);
      t.place(x, p);
      auto g = t.geometry();
      g.look(t.rows.position);
      EXPECT_EQ(g.crowd, 0);
      const MatrixXd dense = t.network.metric(x, t.size(), kEpsilon);
      EXPECT_GT(dense.selfadjointView<Eigen::Lower>().eigenvalues().minCoeff(), kEpsilon - 1e-12);
      EXPECT_NEAR(g.log_det, std::log(dense.determinant()), 1e-8);
      EXPECT_NEAR(g.energy(t.rows.momentum), t.energy(x, p), 1e-8);
      g.velocity(t.rows.momentum, t.rows.sum);
      const VectorXd v = dense.llt().solve(p);
      for (int j = 0; j <= kDim; ++j) EXPECT_NEAR(t.rows.sum[j], v[j], 1e-8 * (1 + v.norm()));
      // An explicit kick of size 1 is the gradient.
      g.bend();
      g.kick(t.rows.position, t.rows.momentum, 1.0);
      for (int j = 0; j < t.size(); ++j) {
        const double h = 1e-5;
        VectorXd up = x, down = x;
        up[j] += h;
        down[j] -= h;
        const double slope = (t.energy(up, p) - t.energy(down, p)) / (2 * h);
        EXPECT_NEAR(p[j] - t.rows.momentum[j], slope, 1e-5 * (1 + std::abs(slope)));
        most = std::max(most, std::abs(slope));
      }
    }
    EXPECT_GT(most, 0.3) << "no wormhole was felt";
  });
}

TEST(WormholeMetric, MomentaAreOfTheMetric) {
  Traveller t(3, false);
  Points points;
  const auto [x, p] = points.next(t);
  const MatrixXd metric = t.network.metric(x, kDim, kEpsilon).topLeftCorner(kDim, kDim);
  ASSERT_LT(metric.determinant(), 0.5);
  const MatrixXd to_unit = metric.llt().matrixL().solve(MatrixXd::Identity(kDim, kDim));
  t.place(x, p);
  const int draws = 20000;
  MatrixXd sum = MatrixXd::Zero(kDim, kDim);
  for (int c = 0; c < draws; ++c) {
    for (int j = 0; j < kDim; ++j) t.chain.x[j] = x[j];
    t.model.parameters[ParameterLayout::step_size] = 1e-12;  // the kick that follows is nothing
    WormholeMetric::begin<double, double>(t.model.model, LaunchSpec{.key = {}, .num_leapfrog = 1},
                                          Draw<double>{{3, 4}, 7, std::uint32_t(c), 2}, t.lane);
    VectorXd drawn(kDim);
    for (int j = 0; j < kDim; ++j) drawn[j] = t.rows.momentum[j];
    drawn = to_unit * drawn;
    sum += drawn * drawn.transpose();
  }
  // Of unit normals: variances 2 / n and 1 / n.
  for (int i = 0; i < kDim; ++i)
    for (int j = 0; j < kDim; ++j)
      EXPECT_NEAR(sum(i, j) / draws, i == j, 4.5 * std::sqrt((i == j ? 2.0 : 1.0) / draws));
}

TEST(WormholeMetric, AStepIsReversibleAndKeepsVolume) {
  on_every_network([](int wormholes, bool worlds) {
    Traveller t(wormholes, worlds, 0.2);
    Points points;
    const double size = 0.05;
    int made = 0;
    for (int trial = 0; trial < 20; ++trial) {
      const auto [x, p] = points.next(t);
      const auto [to, q] = t.step(x, p, size);
      if (t.cause() >= 0) continue;
      ++made;
      const auto [back, turned] = t.step(to, -q, size);
      EXPECT_EQ(t.cause(), -1);
      EXPECT_LT((back - x).norm(), 1e-6);
      EXPECT_LT((turned + p).norm(), 1e-6);
      const int n = t.size();
      MatrixXd jacobian(2 * n, 2 * n);
      const double h = 1e-5;
      for (int k = 0; k < 2 * n; ++k) {
        VectorXd x_up = x, x_down = x, p_up = p, p_down = p;
        (k < n ? x_up : p_up)[k % n] += h;
        (k < n ? x_down : p_down)[k % n] -= h;
        const auto [a, a_p] = t.step(x_up, p_up, size);
        const auto [b, b_p] = t.step(x_down, p_down, size);
        jacobian.col(k).head(n) = ((a - b) / (2 * h)).head(n);
        jacobian.col(k).tail(n) = ((a_p - b_p) / (2 * h)).head(n);
      }
      EXPECT_NEAR(jacobian.determinant(), 1, 1e-4);
    }
    EXPECT_GE(made, 15);
  });
}

/// The error of H over a fixed time is of second order in the size of steps.
TEST(WormholeMetric, EnergyIsKeptToSecondOrder) {
  Traveller t(3, false, 0.2);
  Points points;
  double order = 0, square = 0;
  const int trials = 60;
  for (int trial = 0; trial < trials; ++trial) {
    const auto start = points.next(t);
    double error[2];
    for (int halved = 0; halved < 2; ++halved) {
      auto at = start;
      const int steps = halved ? 80 : 40;
      for (int s = 0; s < steps; ++s) at = t.step(at.first, at.second, 0.2 / steps);
      error[halved] = std::abs(t.hamiltonian(at.first, at.second) - t.hamiltonian(start.first, start.second));
    }
    order += std::log2(error[0] / error[1]) / trials;
    square += std::pow(std::log2(error[0] / error[1]), 2) / trials;
  }
  EXPECT_NEAR(order, 2, 3 * std::sqrt((square - order * order) / trials) + 0.05);
  EXPECT_GT(order, 1.7);
}

/// Whole trajectories, as the drivers make them: of samples with temperatures too.
template <class Model>
void expect_trajectory(const ScalarModel<Model>& m, double worlds) {
  WormholeChain<Model, WormholeMetric> chain(m, network_of(kDim, 3, worlds > 1.5, 1.2).list(), worlds);
  chain.settings[WormholeMetric::epsilon] = 0.2;
  for (int j = 0; j < m.model.rows(); ++j) chain.x[j] = 0.4 * std::sin(1.0 + j);
  const std::vector<double> start = chain.x;
  chain.position = start;
  chain.g = m.gradient(start);
  const double before = m.log_density(start);
  const auto r = stage_propose<WormholeMetric, double, double>(
      m.model, LaunchSpec{.key = {}, .num_leapfrog = 20, .jitter = false}, Draw<double>{{3, 4}, 7, 1, 2},
      chain.lane());
  for (int k = 0; k < 4; ++k) ASSERT_EQ(chain.counters[k], 0) << WormholeMetric::info().counters[k];
  double moved = 0;
  for (int j = 0; j < m.model.rows(); ++j) moved += std::abs(chain.x[j] - start[j]);
  EXPECT_GT(moved, 0.1);
  EXPECT_NEAR(m.log_density(chain.x) - before + r.log_ratio, 0, 0.05);
  EXPECT_GT(std::abs(r.log_ratio), 0.05) << "H is kept because nothing happens";
}

TEST(WormholeMetric, TrajectoriesKeepH) {
  CurvedDensity density;
  density.dim = kDim;
  const auto with = [](auto model) {
    ScalarModel m(std::move(model));
    m.parameters[ParameterLayout::step_size] = 0.02;
    return m;
  };
  for (const double worlds : {1.0, 2.0}) {
    expect_trajectory(with(PlainModel{density, ParameterLayout{kDim}}), worlds);
    expect_trajectory(with(Path<CurvedDensity, 0, true>{density, ParameterLayout{kDim, true, true}}), worlds);
    expect_trajectory(with(make_pseudo_extended(density, kDim, true, 0, 0.05, 1, 0.5)), worlds);
  }
}

TEST(WormholeMetric, WithoutANetworkItIsHamiltonianMonteCarloWithUnitMetric) {
  auto m = curved();
  for (int j = 0; j < kDim; ++j) m.parameters[m.model.layout.scale() + j] = 1;
  const std::vector<double> start = {0.4, -0.7, 0.2};
  const auto end_of = [&]<class Transition>() {
    WormholeChain<PlainModel, Transition> chain(m, {}, 1);
    chain.x = chain.position = start;
    chain.g = m.gradient(start);
    const auto r = stage_propose<Transition, double, double>(
        m.model, LaunchSpec{.key = {}, .num_leapfrog = 5}, Draw<double>{{3, 4}, 7, 1, 2}, chain.lane());
    return std::make_pair(chain.x, double(r.log_ratio));
  };
  const auto own = end_of.operator()<WormholeMetric>(), hmc = end_of.operator()<Wormhole>();
  EXPECT_NE(own.first, start);
  for (int j = 0; j < kDim; ++j) EXPECT_NEAR(own.first[j], hmc.first[j], 1e-12);
  EXPECT_NEAR(own.second, hmc.second, 1e-12);
}

TEST(WormholeMetric, WhatCannotBeSolvedIsRejectedAndCounted) {
  std::vector<double> counters(5);
  Points points;
  for (std::uint32_t c = 0; c < 300; ++c) {
    Traveller t(6, false);
    t.model.parameters[ParameterLayout::step_size] = 0.3;
    const auto [x, p] = points.next(t);
    t.place(x, p);
    t.chain.position = t.chain.x;
    const auto r = stage_propose<WormholeMetric, double, double>(
        t.model.model, LaunchSpec{.key = {}, .num_leapfrog = 3}, Draw<double>{{3, 4}, 7, c, 2}, t.lane);
    double refused = 0;
    for (int k = 0; k < 4; ++k) counters[k] += t.chain.counters[k], refused += t.chain.counters[k];
    EXPECT_EQ(refused == 1, r.log_ratio == -INFINITY);
    EXPECT_EQ(r.diverged, refused == 1 ? 0 : -1);
  }
  EXPECT_GT(counters[WormholeMetric::unsolved], 0);
  EXPECT_GT(counters[WormholeMetric::no_way_back], 0);
}

}  // namespace
