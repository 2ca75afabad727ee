// SPDX-License-Identifier: Apache-2.0
// The contact flow of adiabatic Monte Carlo: its energy, its way back, its volume by finite differences, its one direction,
// where it halts, and HMC where its speed is naught.
#include "kernels/adiabatic.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>

#include "kernels/driver.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Vector = std::vector<double>;

/// One trajectory of one chain: x and u, momenta, the direction, log volume, and whether it halted.
struct State {
  Vector x, p;
  double direction, log_volume = 0, halted = 0;
};

template <class Density>
struct Flow {
  using Model = Path<Density, 0, true>;
  using R = Adiabatic;
  ScalarModel<Model> m;
  double rate = 1;
  explicit Flow(const Density& density, Control control = Control::logistic)
      : m(Model{density, ParameterLayout{density.dim}, control}) {}

  struct Lane {
    decltype(std::declval<const ScalarModel<Model>&>().par()) parameters;
    Rows<double> position, x, p, g, cache, fields;
    const double* settings;
    double* halted;
    void count(int, double value) const { *halted += value; }
  };
  /// From x with momenta p, as `begin` leaves them but for the draw.
  State run(State s, double step, int steps) const {
    Vector g = m.gradient(s.x), fields = {s.direction, 0, 0}, from = s.x, cache = m.cache(s.x);
    const int n = m.model.dim();
    s.halted = 0;
    const Lane w{m.par(),       m.rows(from),   m.rows(s.x), m.rows(s.p), m.rows(g),
                 m.rows(cache), m.rows(fields), &rate,       &s.halted};
    const Draw<double> draw{{3, 4}, 7, 1, 2};
    Proposal<double, double> r;
    r.step = step;
    r.steps = steps;
    // A push after no move, in the place of the half kick of `begin`: steps of one has it halved.
    Proposal<double, double> first = r;
    first.steps = 1;
    R::push(m.model, draw, 1.0, first, w);
    for (int k = 1; k <= steps; ++k) {
      R::move(m.model, draw, double(k), r, w);
      const Vector there = m.gradient(s.x);
      std::copy(there.begin(), there.end(), g.begin());
      R::push(m.model, draw, double(k), r, w);
    }
    R::end(m.model, r, w);
    const double after = m.hamiltonian(s.x, s.p) + m.log_density(s.x);
    EXPECT_NEAR(r.log_ratio, fields[R::log_volume] - after, 1e-12);
    s.log_volume = fields[R::log_volume];
    EXPECT_EQ(s.p[n], 0);
    return s;
  }
  double energy(const State& s) const { return m.hamiltonian(s.x, s.p); }
};

Flow<CurvedDensity> curved(int d, Control control) {
  CurvedDensity density;
  density.dim = d;
  return Flow<CurvedDensity>(density, control);
}
State start(int d, double direction) {
  State s{Vector(d + 1), Vector(d + 1, 0.0), direction};
  for (int j = 0; j < d; ++j) s.x[j] = 0.5 * std::sin(1 + 2 * j), s.p[j] = std::cos(2 + 3 * j);
  s.x[d] = -0.8;
  return s;
}

class ContactFlow : public ::testing::TestWithParam<std::tuple<int, Control, double>> {
 protected:
  const int d = std::get<0>(GetParam());
  const double direction = std::get<2>(GetParam());
  const Flow<CurvedDensity> flow = curved(d, std::get<1>(GetParam()));
};

TEST_P(ContactFlow, ConservesItsEnergyToTheSquareOfTheStep) {
  const State from = start(d, direction);
  const auto error = [&](int steps) {
    return std::abs(flow.energy(flow.run(from, 0.8 / steps, steps)) - flow.energy(from));
  };
  EXPECT_LT(error(200), 1e-3);
  EXPECT_NEAR(error(200) / error(400), 4, 0.4);
}
TEST_P(ContactFlow, IsTheEquationsOfItsDocumentation) {
  const State from = start(d, direction);
  const double h = 1e-4;
  const State end = flow.run(from, h, 1);
  const Vector force = flow.m.force(from.x);  // -dh/dx, and -dh/du in the last row
  double square = 0;
  for (int j = 0; j < d; ++j) square += from.p[j] * from.p[j];
  for (int j = 0; j < d; ++j) {
    const double scale = flow.m.parameters[flow.m.model.layout.scale() + j];
    EXPECT_NEAR((end.x[j] - from.x[j]) / h, scale * from.p[j], 1e-3);
    EXPECT_NEAR((end.p[j] - from.p[j]) / h, scale * force[j] - direction / d * force[d] * from.p[j], 2e-3);
  }
  EXPECT_NEAR((end.x[d] - from.x[d]) / h, -direction / d * square, 1e-3);
  EXPECT_NEAR(end.log_volume / h, -direction * force[d], 2e-3);
}
TEST_P(ContactFlow, MovesInOneDirectionAndGoesBack) {
  const State from = start(d, direction);
  State back = from;
  for (int steps = 1; steps <= 60; ++steps) {
    const double u = back.x[d];
    back = flow.run(from, 0.05, steps);
    EXPECT_LE((back.x[d] - u) * direction, 0);
  }
  const double there = back.log_volume;
  for (double& p : back.p) p = -p;
  back.direction = -direction;
  back = flow.run(back, 0.05, 60);
  for (int j = 0; j <= d; ++j) EXPECT_NEAR(back.x[j], from.x[j], 1e-10);
  for (int j = 0; j < d; ++j) EXPECT_NEAR(-back.p[j], from.p[j], 1e-10);
  EXPECT_NEAR(back.log_volume, -there, 1e-10);
}
/// The volume that is claimed, which the published algorithm takes to be none.
TEST_P(ContactFlow, HasTheVolumeThatItSays) {
  const auto map = [&](const Eigen::VectorXd& z) {
    State s = start(d, direction);
    for (int j = 0; j <= d; ++j) s.x[j] = z[j];
    for (int j = 0; j < d; ++j) s.p[j] = z[d + 1 + j];
    s = flow.run(s, 0.1, 8);
    Eigen::VectorXd out(2 * d + 1);
    for (int j = 0; j <= d; ++j) out[j] = s.x[j];
    for (int j = 0; j < d; ++j) out[d + 1 + j] = s.p[j];
    return std::pair(out, s.log_volume);
  };
  const State s = start(d, direction);
  Eigen::VectorXd z(2 * d + 1);
  for (int j = 0; j <= d; ++j) z[j] = s.x[j];
  for (int j = 0; j < d; ++j) z[d + 1 + j] = s.p[j];
  Eigen::MatrixXd jacobian(2 * d + 1, 2 * d + 1);
  for (int k = 0; k < 2 * d + 1; ++k) {
    Eigen::VectorXd up = z, down = z;
    up[k] += 1e-5;
    down[k] -= 1e-5;
    jacobian.col(k) = (map(up).first - map(down).first) / 2e-5;
  }
  const double volume = map(z).second;
  EXPECT_NEAR(std::log(std::abs(jacobian.determinant())), volume, 1e-7);
  EXPECT_GT(std::abs(volume), 0.01) << "a volume of one proves nothing";
}
INSTANTIATE_TEST_SUITE_P(Adiabatic, ContactFlow,
                         ::testing::Combine(::testing::Values(2, 3, 5),
                                            ::testing::Values(Control::logistic, Control::plateaus),
                                            ::testing::Values(-1.0, 1.0)));

/// Without speed it is the leapfrog integrator at fixed beta.
TEST(Adiabatic, IsLeapfrogWithoutSpeed) {
  auto flow = curved(3, Control::logistic);
  flow.rate = 0;
  const State from = start(3, 1), end = flow.run(from, 0.1, 7);
  Vector x = from.x, p = from.p;
  Vector g = flow.m.gradient(x);
  const auto kicked = [&](double step) {
    kick(flow.m.model, flow.m.par(), step, flow.m.rows(x), flow.m.rows(g), flow.m.rows(p));
    p[3] = 0;
  };
  kicked(0.05);
  for (int s = 1; s <= 7; ++s) {
    drift(flow.m.model, flow.m.par(), 0.1, flow.m.rows(x), flow.m.rows(p));
    g = flow.m.gradient(x);
    kicked(s < 7 ? 0.1 : 0.05);
  }
  EXPECT_EQ(end.x, x);
  EXPECT_EQ(end.p, p);
  EXPECT_EQ(end.log_volume, 0);
}

/// A metastability: from a base of sd 1 to a target of sd 3, both normalised, the density at the mode falls as beta rises,
/// so that a level of little energy, h < -log p(0 | beta*), has no state beyond beta*: the flow halts there. Towards the
/// base it has all the room there is.
TEST(Adiabatic, HaltsWhereItsLevelEnds) {
  ParameterPool pool;
  Gaussian target;
  target.dim = 1;
  target.log_norm = -std::log(3.0) - 0.5 * std::log(2 * kPi);
  target.mean = pool.add({0});
  target.inv_sd = pool.add({1 / 3.0});
  Flow<Gaussian> flow(target, Control::plateaus);  // without a density of u of its own
  auto& m = flow.m;
  m.parameters[ParameterLayout::log_zeta] = 0;
  m.parameters[ParameterLayout::base_log_norm] = -0.5 * std::log(2 * kPi);
  m.parameters[m.model.layout.scale()] = 1;
  m.parameters[m.model.layout.base_mean()] = 0;
  m.parameters[m.model.layout.base_inv_sd()] = 1;
  const State from{{0.3, -1.3}, {0.3, 0}, -1};  // beta = 0.10, and u rises to 0, where beta is 1
  const double level = flow.energy(from);
  const auto lowest = [&](double u) { return -m.log_density({0, u}); };
  const State halfway = flow.run(from, 0.01, 4000), end = flow.run(halfway, 0.01, 4000);
  EXPECT_NEAR(flow.energy(end), level, 1e-3);
  EXPECT_GT(end.x[1], from.x[1] + 0.05) << "it did not set off";
  EXPECT_LT(end.x[1], -0.6) << "it came through";
  EXPECT_NEAR(lowest(end.x[1]), level, 2e-3) << "not where its level ends";
  EXPECT_EQ(end.halted, 1);
  State other = from;
  other.direction = 1;
  other = flow.run(other, 0.01, 100);
  EXPECT_EQ(other.halted, 0);
  EXPECT_LT(other.x[1], -1.33);
  EXPECT_LT(lowest(-1.5), level - 0.05);
}

}  // namespace
