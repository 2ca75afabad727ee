// SPDX-License-Identifier: Apache-2.0
// Chains that go to draws of their base: at its end of the path always, elsewhere by Metropolis and Hastings.
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
using Vector = Eigen::Vector2d;
using Matrix = Eigen::Matrix2d;

struct Moments {
  Vector mean = Vector::Zero();
  Matrix second = Matrix::Zero();
};

/// A standard normal, two modes that it has not, and a base made of them.
struct Redrawn {
  RunOptions run = run_of({.target = "gaussian", .target_settings = {{"dim", 2}}});
  std::unique_ptr<TargetInstance> target = build_target(run);
  ModeLibrary library{2};
  PathBase base = PathBase::from_moments(Vector::Zero(), Matrix::Identity(), 1, 0, "given");

  Redrawn() {
    for (int k = 0; k < 2; ++k) {
      Mode m;
      m.place = {2.0 * k, -1.0 * k};
      m.factor = {0.6 + 0.5 * k, 0, 0.4, 0.7};
      m.laplace_log_mass = m.log_mass = -k;
      library.add(m);
    }
    base.density = mode_base(library, Vector(1, 0), 4 * Matrix::Identity(), false);
  }
  /// x [axis][chain] after so many iterations of chains that begin at one point, at this beta; `drawn`: the base that they
  /// go to draws of.
  std::vector<double> after(double beta, int chains, int iterations, double step_size,
                            Control control = Control::none, const BaseDensity* drawn = nullptr) {
    const RunContext context =
        with_jumps(make_context(run, *target, "redrawn"), library, drawn ? drawn : &base.density);
    const auto engine = base.path_engine(context, {0}, chains, false, 0, control);
    set_per_unit(*engine, ParameterLayout::beta, {beta});
    set_per_unit(*engine, ParameterLayout::step_size, {step_size});
    std::vector<double> x(std::size_t(engine->rows()) * chains, 0.5);
    if (engine->rows() > 2) std::fill(x.begin() + std::ptrdiff_t(2) * chains, x.end(), 1.9);  // beta = 0
    engine->set_position(x);
    engine->initialize();
    LaunchSpec launch;
    launch.key = context.key;
    launch.end = iterations;
    launch.num_leapfrog = 2;
    engine->advance(launch);
    return engine->position();
  }
  /// Moments of base^(1 - beta) target^beta, by the trapezium rule.
  Moments truth(double beta) const {
    Moments m;
    double total = 0;
    for (double a = -12; a < 14; a += 0.05)
      for (double b = -12; b < 12; b += 0.05) {
        const Vector x(a, b);
        const double log_target = -std::log(2 * kPi) - 0.5 * x.squaredNorm();
        const double w = std::exp((1 - beta) * base.density.log_density(x) + beta * log_target);
        total += w;
        m.mean += w * x;
        m.second += w * x * x.transpose();
      }
    m.mean /= total;
    m.second /= total;
    return m;
  }
};

/// The largest |z| of moments of independent chains.
double worst(const std::vector<double>& x, int n, const Moments& truth) {
  double worst = 0;
  for (int i = 0; i < 2; ++i)
    for (int j = -1; j <= i; ++j) {
      double sum = 0, square = 0;
      for (int c = 0; c < n; ++c) {
        const double v = x[std::size_t(i) * n + c] * (j < 0 ? 1 : x[std::size_t(j) * n + c]);
        sum += v;
        square += v * v;
      }
      const double mean = sum / n, error = std::sqrt((square / n - mean * mean) / n);
      worst = std::max(worst, std::abs(mean - (j < 0 ? truth.mean[i] : truth.second(i, j))) / error);
    }
  return worst;
}

constexpr int kChains = 40000;

TEST(ModeJump, ChainsAtTheBaseAreDrawnAnew) {
  Redrawn r;
  const Vector mean = r.base.density.mean();
  const Moments truth{mean, r.base.density.covariance() + mean * mean.transpose()};
  for (const Control control : {Control::none, Control::plateaus}) {
    if (control == Control::none) {  // the other transition stays where it is
      const auto x = r.after(0, kChains, 1, 1e-9);
      EXPECT_LT(worst(x, kChains, truth), 4.5);
      for (int c = 1; c < kChains; ++c) ASSERT_NE(x[c], x[c - 1]);
    } else {
      EXPECT_LT(worst(r.after(0, kChains, 1, 1e-9, control), kChains, truth), 4.5);
    }
  }
}

TEST(ModeJump, LeavesThePathInvariant) {
  Redrawn r;
  for (const double beta : {0.3, 0.8}) {
    const auto x = r.after(beta, kChains, 40, 0.3);
    EXPECT_LT(worst(x, kChains, r.truth(beta)), 4.5) << beta;
    EXPECT_GT(worst(x, kChains, r.truth(beta == 0.3 ? 0.8 : 0.3)), 10) << "which other moments are not";
  }
  // Draws of another base than that of the ratio.
  BaseDensity other = r.base.density;
  for (auto& c : other.components) c.mean += Vector(1, 1);
  EXPECT_GT(worst(r.after(0.3, kChains, 40, 0.3, Control::none, &other), kChains, r.truth(0.3)), 10);
}

}  // namespace
}  // namespace lockstep
