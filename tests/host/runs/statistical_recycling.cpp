// SPDX-License-Identifier: Apache-2.0
// Means over all the modes where draws might as well be.
#include <gtest/gtest.h>

#include <random>

#include "host/commands/sample.hpp"
#include "host/runs/recycling.hpp"
#include "host/util/errors.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep::recycling_test {
namespace {

using namespace testing;
using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

/// Of a target in two dimensions: three normals, two of which overlap.
struct Normals {
  std::vector<Vector> mean{Eigen::Vector2d(0, 0), Eigen::Vector2d(2.5, 1), Eigen::Vector2d(-6, 5)};
  std::vector<Matrix> factor{(Matrix(2, 2) << 1, 0, 0.3, 0.8).finished(),
                             (Matrix(2, 2) << 0.5, 0, -0.2, 1.2).finished(),
                             (Matrix(2, 2) << 2, 0, 1, 0.4).finished()};
  std::vector<double> weight{0.5, 0.3, 0.2};

  double log_density(const Vector& x) const {
    double sum = 0;
    for (std::size_t k = 0; k < mean.size(); ++k) {
      const Vector z = factor[k].triangularView<Eigen::Lower>().solve(x - mean[k]);
      sum += weight[k] * std::exp(-0.5 * z.squaredNorm()) / factor[k].determinant();
    }
    return std::log(sum);
  }
  Matrix draws(int n) const {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::discrete_distribution<int> pick(weight.begin(), weight.end());
    Matrix x(2, n);
    for (int c = 0; c < n; ++c) {
      const int k = pick(random);
      x.col(c) = mean[k] + factor[k] * Eigen::Vector2d(normal(random), normal(random));
    }
    return x;
  }
  /// Modes that are off by so much: places moved, covariances others.
  ModeLibrary library(double off) const {
    ModeLibrary known(2);
    for (std::size_t k = 0; k < mean.size(); ++k) {
      Mode m;
      m.place = {mean[k][0] + off * double(k), mean[k][1] - off};
      const double wide = 1 + off * (k == 1 ? 1.5 : -0.5);
      m.factor = {wide * factor[k](0, 0), 0, factor[k](1, 0) - off, factor[k](1, 1) * (1 + off)};
      m.laplace_log_mass = std::log(weight[k]);
      known.add(m);
    }
    return known;
  }
};

/// z-scores of E x_i, E x_i^2 and E x_0 x_1 by exact draws, each of them for its orbit.
Vector scores(const Normals& target, double off, bool volumes) {
  constexpr int kDraws = 10000;
  const Orbits orbits(target.library(off));
  const Matrix x = target.draws(kDraws);
  const OrbitPoints orbit = orbits.of(x, 2);
  const auto f = [](const Vector& y) {
    return (Vector(5) << y, y[0] * y[0], y[1] * y[1], y[0] * y[1]).finished();
  };
  Vector sum = Vector::Zero(5), square = Vector::Zero(5), truth = Vector::Zero(5);
  for (std::size_t k = 0; k < target.mean.size(); ++k) {
    const Matrix s = target.factor[k] * target.factor[k].transpose();
    truth +=
        target.weight[k] * (f(target.mean[k]) + (Vector(5) << 0, 0, s(0, 0), s(1, 1), s(0, 1)).finished());
  }
  for (int c = 0; c < kDraws; ++c) {
    Vector mean = Vector::Zero(5);
    double total = 0;
    for (int p = 0; p < orbits.size(); ++p) {
      const Eigen::Index at = c * orbits.size() + p;
      if (orbit.log_volume[at] == -INFINITY) continue;
      const double w = std::exp(target.log_density(orbit.y.col(at)) + (volumes ? orbit.log_volume[at] : 0));
      mean += w * f(orbit.y.col(at));
      total += w;
    }
    mean = mean / total - truth;
    sum += mean;
    square += mean.cwiseAbs2();
  }
  return sum.array() / square.array().sqrt();
}

TEST(Recycling, HoldsWhateverTheModesThatAreKnown) {
  for (const double off : {0.0, 0.2, 0.6}) {
    const Vector z = scores({}, off, true);
    for (int i = 0; i < z.size(); ++i) EXPECT_LT(std::abs(z[i]), 4) << off << " " << i;
  }
}

TEST(Recycling, WithoutTheVolumesIsFound) { EXPECT_GT(scores({}, 0.2, false).cwiseAbs().maxCoeff(), 5); }

TEST(Recycling, AnOrbitIsTheSameFromAnyOfItsPoints) {
  const Normals target;
  const Orbits orbits(target.library(0.4));
  const Matrix x = target.draws(600);
  const OrbitPoints from = orbits.of(x, 1);
  int points = 0, cut = 0;
  for (int c = 0; c < x.cols(); ++c)
    for (int p = 0; p < orbits.size(); ++p) {
      const Eigen::Index at = c * orbits.size() + p;
      cut += from.log_volume[at] == -INFINITY;
      if (from.log_volume[at] == -INFINITY) continue;
      ++points;
      const OrbitPoints again = orbits.of(from.y.col(at), 1);
      // A mirror image leads to the same points, each of which is another's.
      for (int q = 0; q < orbits.size(); ++q) {
        Eigen::Index nearest = 0;
        const Matrix own = from.y.middleCols(c * orbits.size(), orbits.size());
        (own.colwise() - again.y.col(q)).colwise().norm().minCoeff(&nearest);
        EXPECT_LT((own.col(nearest) - again.y.col(q)).norm(), 1e-9);
        EXPECT_EQ(from.log_volume[c * orbits.size() + nearest], again.log_volume[q]);
      }
    }
  EXPECT_GT(points, 2000);
  EXPECT_GT(cut, 10) << "some are nearer to another mode";
}

SampleResult run(const std::string& target, const Settings& of_target, Settings settings, double gradients) {
  RunOptions run = run_of({.target = target, .sampler = "hmc", .sampler_settings = std::move(settings)});
  run.target_settings = of_target;
  run.chains = 16;
  run.warmup = 300;
  run.gradients = gradients;
  run.quiet = true;
  return sample(run);
}

double relative_error(const SampleResult& r) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < r.truth.mean.size(); ++i) {
    error += std::abs(r.estimates.mean[i] - r.truth.mean[i]);
    size += std::abs(r.truth.mean[i]);
  }
  return error / size;
}

// With every mode a normal, as the paper has them, nothing is left to chance but rounding.
TEST(Recycling, IsFiveTimesBetterThanRegenerativeDartingBetweenNormalModes) {
  const Settings ten = {{"modes", 10}, {"dim", 100}};
  const SampleResult recycled = run("scattered", ten, {{"recycle", true}}, 1e5),
                     darts = run("scattered", ten, {{"darting", true}, {"regeneration", true}}, 1e5);
  EXPECT_LT(relative_error(recycled), 0.05);
  EXPECT_LT(5 * relative_error(recycled), relative_error(darts));
  EXPECT_LE(recycled.cost.gradients, 1.01 * darts.cost.gradients);
  ASSERT_EQ(recycled.diagnostics.modes.shares.size(), 10u);
  for (const ModeShare& mode : recycled.diagnostics.modes.shares) EXPECT_GT(mode.share, 0.05);
  const auto& e = recycled.estimates;
  for (std::size_t i = 0; i < e.mean.size(); ++i)
    EXPECT_LT(std::abs(e.mean[i] - recycled.truth.mean[i]), 4 * e.mean_se[i]);
}

// Where modes are no normals, errors are smaller, and what they say they are.
TEST(Recycling, ErrorsHoldWhereModesAreNoNormals) {
  double square = 0, plain = 0, less = 0;
  int count = 0;
  for (int seed = 1; seed <= 12; ++seed)
    for (const bool recycles : {true, false}) {
      RunOptions run =
          run_of({.target = "welling_teh", .sampler = "hmc", .sampler_settings = {{"recycle", recycles}}});
      run.chains = 32;
      run.warmup = 200;
      run.gradients = 1e5;
      run.seed = std::uint64_t(seed);
      run.quiet = true;
      const SampleResult r = sample(run);
      for (std::size_t i = 0; i < r.truth.mean.size(); ++i) {
        const double error = r.estimates.mean[i] - r.truth.mean[i], se = r.estimates.mean_se[i];
        (recycles ? less : plain) += error * error;
        if (recycles) square += error * error / (se * se), ++count;
      }
    }
  // Mean squares of 24 z-scores, which go in pairs: at most 4 standard errors above 1. Errors of short runs are told larger than
  // they are, for what chains may not have met.
  EXPECT_LT(square / count, 1 + 4 * std::sqrt(2.0 / 12));
  EXPECT_LT(4 * less, plain);
}

// A five-hundredth of sd 5 beside a mode of sd 1: orbits of draws there say something else than all others, which few chains
// have met (mean squares of z were 81 of errors by orbits alone).
TEST(Recycling, ErrorsHoldBesideWhatChainsSeldomEnter) {
  const auto runs =
      runs_of({.target = "mixture",
               .sampler = "hmc",
               .sampler_settings = {{"recycle", true}},
               .data = R"({"means": [[0, 0], [3, 0]], "weights": [0.998, 0.002], "sds": [1, 5]})"},
              1e5, 8);
  double square = 0;
  for (const SampleResult& r : runs)
    square += mean_square_z(r.estimates.mean, r.estimates.mean_se, r.truth.mean) / double(runs.size());
  EXPECT_LT(square, 1 + 4 * std::sqrt(2.0 / (2.0 * double(runs.size()))));
}

// Second moments and covariances are recycled beside means.
TEST(Recycling, CovariancesBelongToTheMeans) {
  const SampleResult r = run("scattered", {{"modes", 5}, {"dim", 6}}, {{"recycle", true}}, 1e6);
  const std::size_t d = r.truth.mean.size();
  ASSERT_EQ(r.estimates.covariance.size(), d * d);
  for (std::size_t i = 0; i < d; ++i) {
    EXPECT_LT(std::abs(r.estimates.second[i] - r.truth.second[i]), 4 * r.estimates.second_se[i]);
    EXPECT_NEAR(r.estimates.covariance[i * d + i], r.estimates.sd[i] * r.estimates.sd[i], 1e-9);
    for (std::size_t j = 0; j < d; ++j)  // of which some hundredths are within modes, and left to chance
      EXPECT_NEAR(r.estimates.covariance[i * d + j], r.truth.covariance[i * d + j],
                  0.02 * r.estimates.sd[i] * r.estimates.sd[j]);
  }
}

TEST(Recycling, SaysWhereItBringsNothingAndWhatItCannotDo) {
  const SampleResult bent = run("banana", {}, {{"recycle", true}}, 1e5);
  const auto& w = bent.warnings;
  EXPECT_TRUE(std::any_of(w.begin(), w.end(), [](const std::string& one) {
    return one.find("sampler.recycle brought nothing") != std::string::npos;
  }));
  const auto refused = [](const std::string& sampler, Settings settings) {
    try {
      sampler_config(
          run_of({.target = "banana", .sampler = sampler, .sampler_settings = std::move(settings)}), 2,
          Tails::gaussian);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_NE(refused("pe", {{"recycle", true}}).find("whose states are of several samples"),
            std::string::npos);
  EXPECT_NE(refused("hmc", {{"recycle", true}, {"regeneration", true}}).find("over tours"),
            std::string::npos);
  EXPECT_EQ(refused("nuts", {{"recycle", true}}), "");
}

}  // namespace
}  // namespace lockstep::recycling_test
