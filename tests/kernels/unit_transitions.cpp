// SPDX-License-Identifier: Apache-2.0
// The leapfrog integrator in double: what Hamiltonian Monte Carlo rests on, for every model, metric and the
// box.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "kernels/driver.hpp"
#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

struct State {
  std::vector<double> x, p;
};

std::vector<double> normals(int count, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v(count);
  for (double& e : v) e = scale * normal(random);
  return v;
}

/// |det| of a square matrix given by columns, by elimination with pivots.
double absolute_determinant(std::vector<std::vector<double>> a) {
  double det = 1;
  for (std::size_t k = 0; k < a.size(); ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < a.size(); ++i)
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    std::swap(a[k], a[pivot]);
    det *= std::abs(a[k][k]);
    for (std::size_t i = k + 1; i < a.size(); ++i)
      for (std::size_t j = a.size(); j-- > k;) a[i][j] -= a[i][k] / a[k][k] * a[k][j];
  }
  return det;
}

/// Calls f(name, model) for every kind of model.
template <class F>
void for_each_model(F&& f) {
  CurvedDensity density;
  density.dim = 3;
  const ParameterLayout diagonal{3, false, false}, dense{3, true, true};
  f("target", ScalarModel(Path<CurvedDensity, 0, false>{density, diagonal}));
  f("target, dense metric", ScalarModel(Path<CurvedDensity, 0, false>{density, dense}));
  f("path", ScalarModel(Path<CurvedDensity, 0, true>{density, diagonal}));
  f("path, dense metric and base", ScalarModel(Path<CurvedDensity, 0, true>{density, dense}));
  f("pseudo-extended", ScalarModel(make_pseudo_extended(density, 3, true, 0, 0.05, 1, 0.5)));
  f("pseudo-extended, fixed beta", ScalarModel(make_pseudo_extended(density, 2, false, 0.3)));
  f("pseudo-extended, dense metric and base",
    ScalarModel(make_pseudo_extended(density, 2, true, 0, 0.1, 1, 0, true)));
  f("pseudo-extended in a box",
    ScalarModel(make_pseudo_extended(density, 2, true, 0, 0.05, 1, 0, false, 0.9)));
}

/// A start inside the box, where there is one.
template <class M>
State start(const M& m, unsigned seed) {
  State s{normals(m.model.rows(), seed, 0.5), normals(m.model.rows(), seed + 1000)};
  for (double& v : s.x)
    if (std::isfinite(m.model.box())) v = std::clamp(v, -0.85, 0.85);
  return s;
}

TEST(Leapfrog, TestsIntegrateAsHmcDoes) {
  for_each_model([](const char* name, const auto& m) {
    const LaunchSpec spec{.key = {3, 4}, .num_leapfrog = 5, .jitter = false};
    const Draw<double> draw{spec.key, 7, 1, 2};
    State s = start(m, 1), t = s;
    auto g = m.gradient(s.x);
    const struct {
      decltype(m.par()) parameters;
      Rows<double> x, p, g;
    } w{m.par(), m.rows(s.x), m.rows(s.p), m.rows(g)};
    const auto proposal = stage_propose<Hmc, double, double>(m.model, spec, draw, w);
    draw.normals(Purpose::momentum, m.model.rows(), [&](int j, double z) { t.p[j] = z; });
    const double before = m.hamiltonian(t.x, t.p);
    m.leapfrog(t.x, t.p, m.parameters[ParameterLayout::step_size], 5);
    EXPECT_EQ(s.x, t.x) << name;
    EXPECT_EQ(s.p, t.p) << name;
    EXPECT_EQ(g, m.gradient(t.x)) << name;
    EXPECT_EQ(proposal.steps, 5);
    // log ratio + change of the log density = H before - H after
    State fresh = start(m, 1);
    EXPECT_NEAR(m.log_density(t.x) - m.log_density(fresh.x) + proposal.log_ratio,
                before - m.hamiltonian(t.x, t.p), 1e-10)
        << name;
  });
}

TEST(Leapfrog, IsReversible) {
  for_each_model([](const char* name, const auto& m) {
    int reflected = 0;
    for (unsigned seed = 1; seed <= 20; ++seed) {
      const State a = start(m, seed);
      State b = a;
      m.leapfrog(b.x, b.p, 0.12, 10);
      double distance = 0;
      for (std::size_t j = 0; j < b.x.size(); ++j) distance += std::abs(b.x[j] - a.x[j]);
      ASSERT_GT(distance, 0.1) << name;
      for (int j = 0; j < m.model.samples() * 3 && std::isfinite(m.model.box()); ++j) {
        ASSERT_LE(std::abs(b.x[j]), m.model.box());
        reflected += std::abs(a.x[j] + 1.2 * a.p[j]) > m.model.box();
      }
      for (double& v : b.p) v = -v;
      m.leapfrog(b.x, b.p, 0.12, 10);
      for (std::size_t j = 0; j < b.x.size(); ++j) {
        EXPECT_NEAR(b.x[j], a.x[j], 1e-10) << name;
        EXPECT_NEAR(-b.p[j], a.p[j], 1e-10) << name;
      }
    }
    EXPECT_EQ(reflected > 0, std::isfinite(m.model.box())) << name;
  });
}

TEST(Leapfrog, PreservesVolume) {
  for_each_model([](const char* name, const auto& m) {
    for (unsigned seed : {2u, 3u}) {
      const State a = start(m, seed);
      const int n = m.model.rows();
      auto moved = [&](int j, double h) {
        State s = a;
        (j < n ? s.x[j] : s.p[j - n]) += h;
        m.leapfrog(s.x, s.p, 0.15, 4);
        s.x.insert(s.x.end(), s.p.begin(), s.p.end());
        return s.x;
      };
      std::vector<std::vector<double>> jacobian;
      const double h = 1e-5;
      double off_diagonal = 0;
      for (int j = 0; j < 2 * n; ++j) {
        const auto up = moved(j, h), down = moved(j, -h);
        jacobian.emplace_back();
        for (int i = 0; i < 2 * n; ++i) jacobian[j].push_back((up[i] - down[i]) / (2 * h));
        for (int i = 0; i < 2 * n; ++i) off_diagonal += i == j ? 0 : std::abs(jacobian[j][i]);
      }
      EXPECT_NEAR(absolute_determinant(jacobian), 1, 1e-6) << name;
      EXPECT_GT(off_diagonal, 0.5) << name;  // not a standstill
    }
  });
}

/// The energy error of a trajectory of fixed length falls with the square of the step size.
TEST(Leapfrog, EnergyErrorIsOfSecondOrder) {
  for_each_model([](const char* name, const auto& m) {
    if (std::isfinite(m.model.box())) return;  // a reflection is of first order
    auto error = [&](int steps) {
      double squares = 0;
      for (unsigned seed = 1; seed <= 30; ++seed) {
        State s = start(m, seed);
        const double before = m.hamiltonian(s.x, s.p);
        m.leapfrog(s.x, s.p, 0.8 / steps, steps);
        squares += std::pow(m.hamiltonian(s.x, s.p) - before, 2);
      }
      return std::sqrt(squares / 30);
    };
    const double coarse = error(16), fine = error(32);
    EXPECT_GT(coarse, 1e-6) << name;
    EXPECT_NEAR(std::log2(coarse / fine), 2, 0.15) << name;
  });
}

TEST(Leapfrog, DenseMetricEqualsDiagonalOne) {
  CurvedDensity density;
  density.dim = 3;
  ScalarModel diagonal(Path<CurvedDensity, 0, false>{density, {3, false, false}});
  ScalarModel dense(Path<CurvedDensity, 0, false>{density, {3, true, false}});
  for (int i = 0, t = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j, ++t)
      dense.parameters[dense.model.layout.metric_factor() + t] =
          i == j ? diagonal.parameters[diagonal.model.layout.scale() + i] : 0;
  State a = start(diagonal, 5), b = a;
  diagonal.leapfrog(a.x, a.p, 0.1, 20);
  dense.leapfrog(b.x, b.p, 0.1, 20);
  for (int j = 0; j < 3; ++j) {
    EXPECT_NEAR(a.x[j], b.x[j], 1e-12);
    EXPECT_NEAR(a.p[j], b.p[j], 1e-12);
  }
}

/// Drift uses C, kick its transpose: with velocity C p and force C' g.
TEST(Leapfrog, DenseMetricIsTheCholeskyFactorAndItsTranspose) {
  CurvedDensity density;
  density.dim = 3;
  const ScalarModel m(make_pseudo_extended(density, 2, true, 0, 0.1, 1, 0, true));
  double factor[3][3] = {};
  for (int i = 0, t = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j, ++t) factor[i][j] = m.parameters[m.model.layout.metric_factor() + t];
  State s{normals(8, 1), normals(8, 2)}, moved = s, kicked = s;
  std::vector<double> g = normals(8, 3);
  drift(m.model, m.par(), 0.3, m.rows(moved.x), m.rows(moved.p));
  kick(m.model, m.par(), 0.3, m.rows(s.x), m.rows(g), m.rows(kicked.p));
  for (int block = 0; block < 2; ++block) {
    for (int i = 0; i < 3; ++i) {
      double v = 0, f = 0;
      for (int j = 0; j < 3; ++j) {
        v += factor[i][j] * s.p[3 * block + j];
        f += factor[j][i] * g[3 * block + j];
      }
      EXPECT_NEAR(moved.x[3 * block + i] - s.x[3 * block + i], 0.3 * v, 1e-14);
      EXPECT_NEAR(kicked.p[3 * block + i] - s.p[3 * block + i], 0.3 * f, 1e-14);
    }
  }
  for (int u : {6, 7}) {
    EXPECT_NEAR(moved.x[u] - s.x[u], 0.3 * 1.3 * s.p[u], 1e-14);
    EXPECT_NEAR(kicked.p[u] - s.p[u], 0.3 * 1.3 * g[u], 1e-14);
  }
}

TEST(Reflect, TurnsBackOnceAndRejectsLongerSteps) {
  CurvedDensity density;
  density.dim = 2;
  const ScalarModel m(make_pseudo_extended(density, 2, true, 0, 0, 1, 0, false, 1.0));
  std::vector<double> x = {0.5, 1.25, -1.5, 3.5, 7, -9}, p = {1, 2, -3, 4, 5, -6};
  reflect<double>(m.model, m.rows(x), m.rows(p));
  EXPECT_EQ((std::vector<double>{x[0], x[1], x[2]}), (std::vector<double>{0.5, 0.75, -0.5}));
  EXPECT_TRUE(std::isnan(x[3]));  // longer than the box: the trajectory must be rejected
  EXPECT_EQ(x[4], 7);             // logits know no box
  EXPECT_EQ(x[5], -9);
  EXPECT_EQ((std::vector<double>{p[0], p[1], p[2], p[4], p[5]}), (std::vector<double>{1, -2, 3, 5, -6}));
}

TEST(NumSteps, FollowsTrajectoryTimeOrTheNumber) {
  std::vector<double> par(ParameterLayout::first);
  const Rows<double> rows{par.data(), 1};
  auto steps = [&](int num_leapfrog, double step) {
    LaunchSpec spec;
    spec.jitter = false;
    spec.num_leapfrog = num_leapfrog;
    spec.max_leapfrog = 50;
    par[ParameterLayout::step_size] = step;
    par[ParameterLayout::trajectory_time] = 1;
    double jitter;
    return num_steps<double>(spec, 5, rows, jitter);
  };
  EXPECT_EQ(steps(0, 0.1), 10);
  EXPECT_EQ(steps(7, 0.1), 7);
  EXPECT_EQ(steps(0, 10), 1);     // at least one
  EXPECT_EQ(steps(0, 1e-9), 50);  // at most the cap
  EXPECT_EQ(steps(70, 0.1), 50);
  for (double bad : {std::nan(""), 0.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(steps(0, bad) >= 1 && steps(0, bad) <= 50) << bad;
  }
}

}  // namespace
