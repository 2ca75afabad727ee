// SPDX-License-Identifier: Apache-2.0
// Where chains at the base of a path go: to draws of it, and no others.
#include "kernels/mode_jump.hpp"

#include <gtest/gtest.h>

#include "host/paths/path_base.hpp"
#include "host/runs/mode_base.hpp"
#include "host/runs/mode_jumps.hpp"
#include "host/runs/run_context.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// Two modes of different shapes, and a base that is not what they are.
struct Redrawn {
  RunOptions run = run_of({.target = "gaussian", .target_settings = {{"dim", 3}}});
  std::unique_ptr<TargetInstance> target = build_target(run);
  ModeLibrary library{3};
  PathBase base = PathBase::from_moments(Eigen::Vector3d::Zero(), Eigen::Matrix3d::Identity(), 1, 0, "given");

  Redrawn() {
    for (int k = 0; k < 2; ++k) {
      Mode m;
      m.place = {3.0 * k, -1.0 * k, 0.5};
      m.factor = {1.0 + k, 0, 0, 0.4, 0.7, 0, -0.3, 0.2 * k, 0.9};
      m.laplace_log_mass = m.log_mass = -k;
      library.add(m);
    }
    base.density = mode_base(library, Eigen::Vector3d(1, 0, 0), 4 * Eigen::Matrix3d::Identity(), false);
  }
  /// x [axis][chain] after an iteration of chains that begin at one point, at this beta.
  std::vector<double> after(double beta, int chains, Control control = Control::none) {
    const RunContext context = with_jumps(make_context(run, *target, "redrawn"), library, &base.density);
    const auto engine = base.path_engine(context, {0}, chains, false, 0, control);
    set_per_unit(*engine, ParameterLayout::beta, {beta});
    set_per_unit(*engine, ParameterLayout::step_size, {1e-9});  // the other transition stays where it is
    const int rows = engine->rows();
    std::vector<double> x(std::size_t(rows) * chains, 40.0);
    if (rows > 3) std::fill(x.begin() + std::ptrdiff_t(3) * chains, x.end(), beta > 0 ? 0.0 : 1.9);
    engine->set_position(x);
    engine->initialize();
    LaunchSpec launch;
    launch.key = context.key;
    launch.end = 1;
    launch.num_leapfrog = 1;
    engine->advance(launch);
    return engine->position();
  }
};

TEST(ModeJump, ChainsAtTheBaseAreDrawnAnew) {
  Redrawn r;
  const int n = 40000;
  for (const Control control : {Control::none, Control::plateaus}) {
    const auto x = r.after(0, n, control);
    const Eigen::Vector3d mean = r.base.density.mean();
    const Eigen::Matrix3d covariance = r.base.density.covariance();
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j <= i; ++j) {
        double sum = 0, product = 0, square = 0;
        for (int c = 0; c < n; ++c) {
          const double a = x[std::size_t(i) * n + c] - mean[i], b = x[std::size_t(j) * n + c] - mean[j];
          sum += a;
          product += a * b;
          square += a * b * a * b;
        }
        EXPECT_LT(std::abs(sum / n), 4 * std::sqrt(covariance(i, i) / n)) << i;
        const double error = std::sqrt((square / n - std::pow(product / n, 2)) / n);
        EXPECT_LT(std::abs(product / n - covariance(i, j)), 4 * error) << i << j;
      }
    // Independent of one another, and each another one the next time: no two are the same.
    for (int c = 1; c < n; ++c) ASSERT_NE(x[c], x[c - 1]);
  }
}

TEST(ModeJump, OthersAreNot) {
  Redrawn r;
  const int n = 64;
  for (const Control control : {Control::none, Control::plateaus, Control::logistic}) {
    const auto x = r.after(0.5, n, control);
    for (int i = 0; i < 3; ++i)  // the other mode is where all jump to, or none
      for (int c = 1; c < n; ++c) EXPECT_EQ(x[std::size_t(i) * n + c], x[std::size_t(i) * n]);
  }
}

}  // namespace
}  // namespace lockstep
