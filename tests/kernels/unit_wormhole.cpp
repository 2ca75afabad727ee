// SPDX-License-Identifier: Apache-2.0
// The step along a network of wormholes against dense algebra: its equation, its way back, its volume by finite differences.
#include "kernels/wormhole.hpp"

#include <gtest/gtest.h>

#include <random>

#include "kernels/driver.hpp"
#include "kernels/wormhole_field.hpp"
#include "tests/support/scalar_model.hpp"
#include "tests/support/wormholes.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Vector = std::vector<double>;

/// x' of one drift of size `step` from x with velocity v, both of d + 1 coordinates; log of its volume, and the causes.
struct Drifted {
  Eigen::VectorXd x;
  double log_volume, lost, strays;
};
Drifted drifted(const Network& network, const Eigen::VectorXd& x, const Eigen::VectorXd& v, double step) {
  const int d = int(x.size()) - 1;
  CurvedDensity density;
  density.dim = d;
  const ScalarModel m(Path<CurvedDensity, 0, false>{density, ParameterLayout{d}});
  WormholeChain chain(m, network.list(), 2);
  const auto rows = chain.rows();
  for (int j = 0; j <= d; ++j) rows.position.set(j, x[j]), rows.velocity.set(j, v[j]);
  const auto lane = chain.lane();
  const WormholeStep<std::remove_cv_t<decltype(lane)>> wormholes(lane, rows, 0, double(network.a.size()));
  double crowd = 0;
  Drifted out;
  out.lost = wormholes.solve(rows.position, rows.next, step / 2);
  out.x.resize(d + 1);
  for (int j = 0; j <= d; ++j) out.x[j] = rows.next[j];
  out.strays = wormholes.strays(rows.position, rows.next, step / 2);
  out.log_volume = wormholes.log_volume(rows.position, step / 2, crowd) -
                   wormholes.log_volume(rows.next, -step / 2, crowd);
  EXPECT_EQ(crowd, 0);
  return out;
}

TEST(Wormhole, AStepSolvesItsEquationAndItsVolumeIsThatOfItsJacobian) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (const int wormholes : {1, 3, 6})
    for (const bool worlds : {false, true}) {
      const int d = 3;
      const Network network = network_of(d, wormholes, worlds, 0.9);
      double most = 0;
      for (int trial = 0; trial < 20; ++trial) {
        Eigen::VectorXd x(d + 1), v(d + 1);
        for (int j = 0; j <= d; ++j) x[j] = normal(random), v[j] = normal(random);
        if (!worlds) x[d] = v[d] = 0;
        const double step = 0.2;
        const Drifted there = drifted(network, x, v, step);
        ASSERT_EQ(there.lost, 0);
        ASSERT_EQ(there.strays, 0);
        const Eigen::VectorXd to =
            x + step * v + step / 2 * (network.field(x, v) + network.field(there.x, v));
        EXPECT_LT((there.x - to).norm(), 1e-9);
        const Drifted back = drifted(network, there.x, -v, step);
        EXPECT_LT((back.x - x).norm(), 1e-7);
        EXPECT_NEAR(back.log_volume, -there.log_volume, 1e-7);
        const int n = worlds ? d + 1 : d;
        Eigen::MatrixXd jacobian(n, n);
        const double e = 1e-5;
        for (int j = 0; j < n; ++j) {
          Eigen::VectorXd up = x, down = x;
          up[j] += e;
          down[j] -= e;
          jacobian.col(j) =
              ((drifted(network, up, v, step).x - drifted(network, down, v, step).x) / (2 * e)).head(n);
        }
        EXPECT_NEAR(std::exp(there.log_volume), std::abs(jacobian.determinant()), 1e-5);
        most = std::max(most, std::abs(there.log_volume));
      }
      EXPECT_GT(most, 0.02) << "no volume to speak of";
    }
}

/// A whole trajectory, back from its end with the momentum turned.
template <class Model>
void expect_reversible(const ScalarModel<Model>& m, double worlds) {
  const int d = m.model.dim(), n = m.model.rows();
  const Network network = network_of(d, 3, worlds > 1.5, 2.5);
  WormholeChain chain(m, network.list(), worlds);
  const Draw<double> draw{{3, 4}, 7, 1, 2};
  for (int j = 0; j < n; ++j) chain.x[j] = 0.4 * std::sin(1.0 + j);
  const Vector start = chain.x;
  chain.position = chain.x;
  chain.g = m.gradient(chain.x);
  const LaunchSpec spec{.key = {}, .num_leapfrog = 5, .jitter = false};
  const auto lane = chain.lane();
  auto r = stage_propose<Wormhole, double, double>(m.model, spec, draw, lane);
  for (int k = 0; k < 4; ++k) ASSERT_EQ(chain.counters[k], 0) << Wormhole::info().counters[k];
  Vector between(m.model.samples(), 0.0);  // the worlds, where it began
  draw.normals(Purpose::worlds, 2 * m.model.samples(), [&](int k, double z) {
    if (k < m.model.samples() && worlds > 1.5) between[k] = z;
  });
  double moved = 0;
  for (int j = 0; j < n; ++j) moved += std::abs(chain.x[j] - start[j]);
  EXPECT_GT(moved, 0.1);
  // Back: as `begin` leaves things, with the momenta turned.
  const auto rows = chain.rows();
  const double volume = rows.get(rows.log_volume);
  EXPECT_GT(std::abs(volume), 1e-5);
  for (double& p : chain.p) p = -p;
  for (int i = 0; i < m.model.samples(); ++i) {
    const int row = rows.at(i, d);
    rows.velocity.set(row, -rows.velocity[row] - 0.5 * r.step * rows.position[row]);
  }
  rows.set(rows.log_volume, 0.0);
  kick(m.model, lane.parameters, 0.5 * r.step, lane.x, lane.g, lane.p);
  for (int s = 1; s <= 5; ++s) {
    Wormhole::move(m.model, draw, double(s), r, lane);
    m.model.template gradient<double>(lane.x, lane.parameters, lane.g);
    Wormhole::push(m.model, draw, double(s), r, lane);
  }
  for (int j = 0; j < n; ++j) EXPECT_NEAR(chain.x[j], start[j], 1e-6);
  for (int i = 0; i < m.model.samples(); ++i) EXPECT_NEAR(rows.position[rows.at(i, d)], between[i], 1e-6);
  EXPECT_NEAR(rows.get(rows.log_volume), -volume, 1e-8);
}

TEST(Wormhole, ATrajectoryIsReversible) {
  CurvedDensity density;
  density.dim = 3;
  for (const double worlds : {1.0, 2.0}) {
    expect_reversible(ScalarModel(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}}), worlds);
    expect_reversible(ScalarModel(Path<CurvedDensity, 0, true>{density, ParameterLayout{3, true, true}}),
                      worlds);
    expect_reversible(ScalarModel(make_pseudo_extended(density, 3, true, 0, 0.05, 1, 0.5)), worlds);
  }
}

TEST(Wormhole, WithoutANetworkItIsHamiltonianMonteCarlo) {
  CurvedDensity density;
  density.dim = 3;
  const ScalarModel m(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
  const Draw<double> draw{{3, 4}, 7, 1, 2};
  const Vector start = {0.4, -0.7, 0.2};
  const LaunchSpec spec{.key = {}, .num_leapfrog = 5};
  const auto end_of = [&]<class Transition>() {
    WormholeChain chain(m, {}, 1);
    chain.x = chain.position = start;
    chain.g = m.gradient(start);
    const auto r = stage_propose<Transition, double, double>(m.model, spec, draw, chain.lane());
    return std::make_pair(chain.x, double(r.log_ratio));
  };
  EXPECT_EQ(end_of.operator()<Wormhole>(), end_of.operator()<Hmc>());
}

/// With log densities where `end` reads them, as the drivers have it.
struct Evaluated : Wormhole {
  static constexpr bool kEnergies = true;
};

/// However short the steps, the flow changes H: the ratio does not come to 1, what step sizes follow does, by a quarter where
/// steps are halved.
TEST(Wormhole, StepSizesFollowWhatStepsDoWrong) {
  CurvedDensity density;
  density.dim = 3;
  ScalarModel m(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
  const Network network = network_of(3, 3, false, 2.5);
  double lost[2] = {}, refused[2] = {};
  const int chains = 200;
  for (int halved = 0; halved < 2; ++halved)
    for (int c = 0; c < chains; ++c) {
      m.parameters[ParameterLayout::step_size] = halved ? 0.02 : 0.04;
      WormholeChain chain(m, network.list(), 1);
      const Draw<double> draw{{3, 4}, 7, std::uint32_t(c), 2};
      for (int j = 0; j < 3; ++j) chain.x[j] = 0.7 * std::sin(1.0 + j + c);
      chain.position = chain.x;
      chain.g = m.gradient(chain.x);
      chain.cache[0] = m.log_density(chain.x);
      const LaunchSpec spec{.key = {}, .num_leapfrog = halved ? 50 : 25, .jitter = false};
      const auto r = stage_propose<Evaluated, double, double>(m.model, spec, draw, chain.lane());
      ASSERT_GE(r.statistic, 0);
      lost[halved] += (1 - r.statistic) / chains;
      refused[halved] += (1 - std::exp(std::min(0.0, chain.ce[0] - chain.cache[0] + r.log_ratio))) / chains;
    }
  EXPECT_NEAR(lost[0] / lost[1], 4, 1) << lost[0] << " " << lost[1];
  EXPECT_LT(lost[0], 0.02);
  EXPECT_NEAR(refused[0], refused[1], 0.01);
  EXPECT_GT(refused[1], 10 * lost[0]);
}

TEST(Wormhole, WhatCannotBeSolvedIsRejectedAndCounted) {
  CurvedDensity density;
  density.dim = 3;
  ScalarModel m(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
  m.parameters[ParameterLayout::step_size] = 0.7;
  Network network;  // so narrow that a step out of an end is no contraction
  network.width = 0.03;
  for (int k = 0; k < 4; ++k) {
    const Eigen::VectorXd c = Eigen::Vector4d(std::sin(1 + 3 * k), std::cos(2 + k), std::sin(2.0 * k), 0);
    network.add(-c, c);
  }
  Vector counters(5);
  for (std::uint32_t c = 0; c < 400; ++c) {
    WormholeChain chain(m, network.list(), 1);
    const Draw<double> draw{{3, 4}, 7, c, 2};
    draw.normals(Purpose::start, 3,
                 [&](int j, double z) { chain.x[j] = 0.6 * network.c[c % 4][j] + 0.03 * z; });
    chain.position = chain.x;
    chain.g = m.gradient(chain.x);
    const auto r = stage_propose<Wormhole, double, double>(m.model, LaunchSpec{.key = {}, .num_leapfrog = 3},
                                                           draw, chain.lane());
    double refused = 0;
    for (int k = 0; k < 4; ++k) counters[k] += chain.counters[k], refused += chain.counters[k];
    EXPECT_EQ(refused == 1, r.log_ratio == -INFINITY);
    EXPECT_EQ(r.diverged, refused == 1 ? 0 : -1);
  }
  EXPECT_GT(counters[Wormhole::unsolved], 0);
}

}  // namespace
