// SPDX-License-Identifier: Apache-2.0
// Chains that go to draws of their base: at its end of the path always, elsewhere by Metropolis and Hastings.
#include "kernels/mode_jump.hpp"

#include <gtest/gtest.h>

#include "host/engines/sharded_engine.hpp"
#include "host/modes/mode_base.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/paths/path_base.hpp"
#include "host/runs/run_context.hpp"
#include "targets/mixture.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/known_modes.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/target_input.hpp"

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
    const auto engine = base.path_engine(context, {0}, chains, false, 0, {control});
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

/// Where two modes are as near, nobody can say from which the way back would be: chains stay. From elsewhere they go.
TEST(ModeJump, TiesAreRejected) {
  const RunOptions run = run_of(
      {.target = "mixture", .data = R"({"means": [[2, 0], [-2, 0]], "weights": [0.5, 0.5], "sds": [1, 1]})"});
  const auto target = build_target(run);
  ModeLibrary library(2);
  for (const double at : {2.0, -2.0}) {
    Mode m;
    m.place = {at, 0};
    m.factor = {1, 0, 0, 1};
    m.laplace_log_mass = m.log_mass = std::log(0.5);
    library.add(m);
  }
  const RunContext context = with_jumps(make_context(run, *target, "ties"), library, nullptr);
  const auto moved = [&](float at) {
    const int chains = 256;
    const auto engine = make_engine(context, engine_spec(context, {}, {0}, chains));
    set_per_unit(*engine, ParameterLayout::beta, {1});
    set_per_unit(*engine, ParameterLayout::step_size, {0});  // the other transition stays where it is
    set_axis(*engine, engine->layout().scale(), {1, 1}, 2);
    std::vector<double> x(2 * chains, 0.3);
    std::fill(x.begin(), x.begin() + chains, double(at));
    engine->set_position(x);
    engine->initialize();
    LaunchSpec launch;
    launch.key = context.key;
    launch.end = 4;
    launch.num_leapfrog = 1;
    engine->advance(launch);
    int count = 0;
    const auto after = engine->position();
    for (int c = 0; c < chains; ++c) count += after[c] != double(at);
    return count;
  };
  EXPECT_EQ(moved(0), 0);  // half of the jumps would be accepted
  EXPECT_GT(moved(0.01F), 50);
}

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

/// Chains of units that know of some modes and components each.
BatchCase of_known_modes(ModelKind kind) {
  BatchCase c;
  c.model.kind = kind;
  c.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 2 : 1;
  c.transition = find_transition("mode_jump");
  c.chains = 300;
  c.iterations = 40;
  c.prepare = [](Engine& e) { KnownModes::prepare(e, 60); };
  return c;
}

// Units of all pairs of numbers stand side by side in the lanes of a pack. Components make draws of the base every second
// time, whatever the model; without them each iteration is a jump, if there are two modes.
TEST(ModeJump, ChainsGoByTheNumbersOfTheirOwnList) {
  const auto target = make_target("gaussian");
  for (const ModelKind kind : {ModelKind::plain, ModelKind::path, ModelKind::pseudo_extended})
    for (const Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
      BatchCase c = of_known_modes(kind);
      c.precision = precision;
      const BatchResult r = run_batch([&](const EngineSpec& s) { return target->engine(s); }, c);
      const auto of = [&](int row, int chain) { return r.stats[std::size_t(row) * c.chains + chain]; };
      double jumps = 0, coins = 0;
      for (int i = 0; i < c.chains; ++i) {
        const int modes = KnownModes::modes_of(i / 5), components = KnownModes::components_of(i / 5);
        const double proposed = of(kStatRows + int(ModeJump::proposed), i),
                     jumped = of(kStatRows + int(ModeJump::accepted), i),
                     drawn = of(stat_accepted, i) - jumped;
        EXPECT_LE(proposed, modes < 2 ? 0 : c.iterations) << i;
        EXPECT_LE(jumped, proposed) << i;
        if (components == 0) {
          EXPECT_EQ(proposed, modes < 2 ? 0 : c.iterations) << i;
          EXPECT_EQ(drawn, 0) << i;
          continue;
        }
        EXPECT_GT(drawn, 0) << i;
        if (modes >= 2) jumps += proposed, coins += c.iterations;
      }
      EXPECT_LT(std::abs(jumps / coins - 0.5), 4 * std::sqrt(0.25 / coins)) << int(kind);
    }
}

/// Draws of two modes of half of the mass each, one of a width that steps are far too long for, and where an iteration
/// of one trajectory and one jump takes them: [chain], as from -1 (the narrow one) or 1 and how many widths off.
struct Pair {
  double which, off;
};
struct Journey {
  std::vector<Pair> from, to;
};
Journey one_iteration(bool backwards) {
  constexpr double kNarrow = 0.02, kFar = 8;
  MemoryInput in;
  in.arrays["means"] = {{-kFar, kFar}, {2, 1}};
  in.arrays["weights"] = {{0.5, 0.5}, {2}};
  in.arrays["sds"] = {{kNarrow, 1}, {2}};
  const auto target = listed_target<MixtureTarget>(in);
  RunContext context;
  context.target = target.get();
  context.key = make_stream_key(3, backwards ? "back" : "forth");
  ModeLibrary library(1);
  for (const double width : {kNarrow, 1.0}) {
    Mode m;
    m.place = {width < 1 ? -kFar : kFar};
    m.factor = {width};
    m.laplace_log_mass = m.log_mass = std::log(0.5);
    library.add(m);
  }
  context = with_jumps(context, library);
  const PathBase base =
      PathBase::from_moments(Eigen::VectorXd::Zero(1), Eigen::MatrixXd::Identity(1, 1), 1, 0, "given");
  const auto engine = base.path_engine(context, {0}, kChains, false, 0);
  set_per_unit(*engine, ParameterLayout::beta, {1});
  set_per_unit(*engine, ParameterLayout::step_size, {0.8});
  RandomStream random(Purpose::start, context.key, 1);
  std::vector<double> x(std::size_t(engine->rows()) * kChains, 0.0);
  for (int c = 0; c < kChains; ++c)
    x[c] = c % 2 == 0 ? -kFar + kNarrow * random.normal() : kFar + random.normal();
  const auto pairs = [](const std::vector<double>& at) {
    std::vector<Pair> all;
    for (int c = 0; c < kChains; ++c)
      all.push_back(at[c] < 0 ? Pair{-1, (at[c] + kFar) / kNarrow} : Pair{1, at[c] - kFar});
    return all;
  };
  Journey journey{pairs(x), {}};
  engine->set_position(x);
  engine->initialize();
  LaunchSpec launch;
  launch.key = context.key;
  launch.end = 1;
  launch.num_leapfrog = 2;
  launch.backwards = backwards;
  engine->advance(launch);
  journey.to = pairs(engine->position());
  return journey;
}
/// Mean and standard error over chains of what the narrow end of a journey has to do with its other end.
std::pair<double, double> narrow_with_other(const std::vector<Pair>& one, const std::vector<Pair>& other) {
  double sum = 0, square = 0;
  for (int c = 0; c < kChains; ++c) {
    const double v = one[c].which < 0 ? one[c].off * other[c].off : 0;
    sum += v;
    square += v * v;
  }
  const double mean = sum / kChains;
  return {mean, std::sqrt((square / kChains - mean * mean) / kChains)};
}
double apart(const std::pair<double, double>& a, const std::pair<double, double>& b) {
  return std::abs(a.first - b.first) / std::hypot(a.second, b.second);
}

// What Bennett's ratio and Crooks' relation ask of annealing back: from the target, (x, y) of a way forth is as likely as
// (y, x) of one back. A jump after a trajectory that the narrow mode rejects is not the same as one before it.
TEST(ModeJump, TheWayBackIsTheWayForthReversed) {
  const Journey forth = one_iteration(false), back = one_iteration(true);
  const auto here = narrow_with_other(forth.from, forth.to), there = narrow_with_other(back.to, back.from);
  EXPECT_NEAR(here.first, 0.5, 0.05) << "chains of the narrow mode go to the same place of the wide one";
  EXPECT_LT(apart(here, there), 4.5);
  // A way back whose order is not reversed.
  EXPECT_GT(apart(here, narrow_with_other(forth.to, forth.from)), 10);
}

}  // namespace
}  // namespace lockstep
