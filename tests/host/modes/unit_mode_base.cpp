// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_base.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "host/modes/mode_mass.hpp"

namespace lockstep {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Mode mode(const Vector& place, const Matrix& factor, double log_mass, double effective) {
  const ByRows rows = factor;
  Mode m;
  m.place.assign(place.begin(), place.end());
  m.factor.assign(rows.data(), rows.data() + rows.size());
  m.laplace_log_mass = m.log_mass = log_mass;
  m.effective_share = effective;
  return m;
}
ModeLibrary library(int d, const std::vector<double>& log_mass) {
  ModeLibrary library(d);
  for (std::size_t k = 0; k < log_mass.size(); ++k) {
    Matrix factor = (0.5 + 0.25 * double(k)) * Matrix::Identity(d, d);
    for (int i = 1; i < d; ++i) factor(i, i - 1) = 0.2;
    library.add(mode(Vector::Constant(d, 4.0 * double(k)), factor, log_mass[k], 0.2));
  }
  return library;
}

TEST(ModeCoverage, IsWhatModesHold) {
  ModeLibrary two(2);
  two.add(mode(Vector::Zero(2), Matrix::Identity(2, 2), std::log(3.0), 0.3));
  EXPECT_TRUE(coverage_of(two, std::log(4.0)).suffices());
  EXPECT_TRUE(coverage_of(two, std::log(299.0)).suffices()) << "of one mode a base is half the scout's";
  EXPECT_FALSE(coverage_of(two, std::log(301.0)).suffices());
  two.add(mode(Vector::Ones(2), Matrix::Identity(2, 2), std::log(1.0), 0.1));
  const ModeCoverage all = coverage_of(two, std::log(4.0));
  EXPECT_NEAR(all.covered, 1, 1e-12);
  EXPECT_NEAR(all.effective, 0.2 / usual_effective_share(2), 1e-12);
  EXPECT_TRUE(all.suffices());
  EXPECT_TRUE(coverage_of(two, std::log(1.0)).suffices()) << "a scout may have lost some";
  EXPECT_TRUE(coverage_of(two, -25000).suffices()) << "or all";
  EXPECT_FALSE(coverage_of(two, std::log(9.0)).suffices());
  two[0].effective_share = 0.05;
  EXPECT_FALSE(coverage_of(two, std::log(4.0)).suffices()) << "of other shapes than normals";
  two[0].log_mass = NAN;  // not weighed
  EXPECT_NEAR(coverage_of(two, std::log(4.0)).covered, 0.25, 1e-12);
}

TEST(ModeCoverage, CountsWhatABaseHolds) {
  ModeLibrary many(2);  // of 60 alike a base holds 32
  for (int k = 0; k < 60; ++k)
    many.add(mode(Vector::Constant(2, 10.0 * k), Matrix::Identity(2, 2), std::log(1.0 / 60), 0.5));
  const ModeCoverage c = coverage_of(many, 0);
  EXPECT_NEAR(c.covered, 32.0 / 60, 1e-12);
  EXPECT_NEAR(c.of_known, 32.0 / 60, 1e-12);
  EXPECT_FALSE(c.suffices());
}

TEST(ModeCoverage, ModesThatAreGivenAreAllThereIs) {
  SearchResult found;
  found.library = library(2, {0.0, 0.0});
  const double held = found.library.log_total(), least = held + std::log(2.0);
  for (const char* stopped : {kSearchHits, kSearchGiven}) {
    found.stopped = stopped;
    EXPECT_TRUE(begins_at_modes("auto", true, found, least - 0.01)) << stopped;
    EXPECT_EQ(begins_at_modes("auto", true, found, least + 0.01), found.stopped == kSearchGiven) << stopped;
    EXPECT_FALSE(begins_at_modes("auto", false, found, held)) << "something speaks against it";
    EXPECT_FALSE(begins_at_modes("scout", true, found, held)) << "another was asked for";
    EXPECT_TRUE(begins_at_modes("modes", false, found, held + 9)) << "it was asked for";
  }
  found.stopped = kSearchModes;
  EXPECT_FALSE(begins_at_modes("auto", true, found, held)) << "what others hold nobody knows";
  found.stopped = kSearchGiven;
  found.library[0].effective_share = found.library[1].effective_share = 0.05;
  EXPECT_FALSE(begins_at_modes("auto", true, found, held)) << "of other shapes than normals";
}

TEST(ModeBase, IsAsWideAsItsDefensivePart) {
  const auto modes = library(2, {0.0, 0.0});
  const BaseDensity base = mode_base(modes, Vector::Constant(2, 2.0), 100 * Matrix::Identity(2, 2), false);
  EXPECT_NEAR(width_of(base)[0], std::sqrt(150.0), 1e-9);
  EXPECT_LT(base.sd()[0], 8);
}

TEST(ModeBase, IsDefensive) {
  const auto modes = library(3, {0.0, std::log(4.0), -80.0});
  const Vector mean = Vector::Constant(3, 2.0);
  const Matrix covariance = 7 * Matrix::Identity(3, 3);
  ASSERT_FALSE(wants_tied_base(modes));
  const BaseDensity base = mode_base(modes, mean, covariance, false);
  ASSERT_EQ(base.components.size(), 4u);
  double sum = 0;
  for (const auto& c : base.components) sum += c.weight;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(base.components[0].mean, mean);
  EXPECT_NEAR(base.components[0].weight, 0.2, 1e-12);
  EXPECT_NEAR((base.components[0].factor * base.components[0].factor.transpose() - 1.5 * covariance).norm(),
              0, 1e-12);
  const auto order = modes.by_mass();
  for (int k = 0; k < 3; ++k) {
    const Mode& m = modes[order[k]];
    EXPECT_EQ(base.components[k + 1].mean[0], m.place[0]);
    EXPECT_NEAR(base.components[k + 1].factor(0, 0), std::sqrt(1.2) * m.factor[0], 1e-12);
  }
  // Square roots of 4 and 1 are 2 and 1; what has no mass has a fiftieth of a third, before they are made to sum up.
  EXPECT_NEAR(base.components[1].weight / base.components[2].weight, 2, 1e-12);
  EXPECT_NEAR(base.components[3].weight, 0.8 * (0.02 / 3) / (1 + 0.02 / 3), 1e-12);
}

TEST(ModeBase, OfManyNumbersSharesOneMatrix) {
  std::vector<double> equal(8, 0.0);
  const auto modes = library(9, equal);
  const BaseDensity base = mode_base(modes, Vector::Zero(9), 30 * Matrix::Identity(9, 9), true);
  ASSERT_TRUE(base.tied);
  const Matrix& shared = base.components[1].factor;
  for (std::size_t k = 1; k < base.components.size(); ++k) {
    const Matrix& factor = base.components[k].factor;
    EXPECT_NEAR((factor / factor(0, 0) - shared / shared(0, 0)).norm(), 0, 1e-12);
    // As wide as its mode, in terms of the shared matrix: the trace of shared^-1 covariance is the same.
    const Mode& m = modes[modes.by_mass()[k - 1]];
    const Matrix own = std::sqrt(1.2) * Eigen::Map<const ByRows>(m.factor.data(), 9, 9);
    const auto trace = [&](const Matrix& f) {
      return Matrix(shared.triangularView<Eigen::Lower>().solve(f)).squaredNorm();
    };
    EXPECT_NEAR(trace(own) / trace(factor), 1, 1e-12);
  }
  // Modes of one shape are met exactly.
  ModeLibrary alike(9);
  for (int k = 0; k < 8; ++k)
    alike.add(mode(Vector::Constant(9, 5.0 * k),
                   (1 + k) * Eigen::Map<const ByRows>(modes[3].factor.data(), 9, 9), 0, 0.3));
  const BaseDensity exact = mode_base(alike, Vector::Zero(9), Matrix::Identity(9, 9), true);
  for (int k = 0; k < 8; ++k) {
    const Mode& m = alike[alike.by_mass()[k]];
    const Matrix own = Eigen::Map<const ByRows>(m.factor.data(), 9, 9);
    EXPECT_NEAR((exact.components[k + 1].factor - std::sqrt(1.2) * own).norm(), 0, 1e-9);
  }
}

// A matrix for each, where that says more than one for all and is not many times a target's cost.
TEST(ModeBase, HasMatricesOfTheirOwnForFewModesOfDifferentShapes) {
  const auto of = [](int d, int count, double bend) {
    ModeLibrary modes(d);
    for (int k = 0; k < count; ++k) {
      ByRows factor = (1 + k) * ByRows::Identity(d, d);
      factor(k % d, k % d) *= bend;
      modes.add(mode(Vector::Constant(d, 5.0 * k), factor, 0, 0.3));
    }
    return modes;
  };
  EXPECT_FALSE(wants_tied_base(of(5, 10, 1)));  // few numbers
  EXPECT_TRUE(wants_tied_base(of(10, 10, 1)));  // alike
  // Of one axis in ten twice as wide the others' common matrix is off by 5 log(1.3) - log 2 nats at the least.
  EXPECT_TRUE(wants_tied_base(of(10, 10, 1.2)));
  EXPECT_FALSE(wants_tied_base(of(10, 10, 3)));
  EXPECT_FALSE(wants_tied_base(of(40, 10, 10)));
  EXPECT_TRUE(wants_tied_base(of(10, 17, 3)));  // many
  EXPECT_FALSE(wants_tied_base(of(100, 10, 10)));
  EXPECT_TRUE(wants_tied_base(of(100, 14, 10)));
}

TEST(ModeBase, IsNoLongerThanIsPlannedFor) {
  for (const int d : {1, 2, 5, 20, 30, 70})
    for (const int count : {2, 8, 32, 40}) {
      const auto modes = library(d, std::vector<double>(count, 0.0));
      const BaseDensity base =
          mode_base(modes, Vector::Zero(d), Matrix::Identity(d, d), wants_tied_base(modes));
      EXPECT_LE(double(base.numbers().size()), most_base_numbers(d)) << d << " " << count;
      EXPECT_LE(base.components.size(), 33u);
    }
}

// Against the spread of shares of masses that are off by normals of the same relative variances.
TEST(ModeShape, ErrorsOfSharesAreThoseOfTheirMasses) {
  ModeLibrary library(1);
  const std::vector<double> log_mass = {0, -1, -3, -2}, effective = {0.2, 0.5, 0.3, NAN};
  for (int k = 0; k < 4; ++k)
    library.add(mode(Vector::Constant(1, 10.0 * k), Matrix::Identity(1, 1), log_mass[k], effective[k]));
  library[3].log_mass = NAN;  // not weighed
  const std::vector<double> errors = share_errors(library), shares = library.shares();
  ASSERT_EQ(errors.size(), 4u);
  constexpr int kDraws = 20000;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> square(4, 0.0);
  for (int n = 0; n < kDraws; ++n) {
    std::vector<double> mass(4);
    double total = 0;
    for (int k = 0; k < 4; ++k) {
      const double v = k < 3 ? (1 / effective[k] - 1) / kMassDraws : 0;
      total += mass[k] = std::exp(log_mass[k]) * (1 + std::sqrt(v) * normal(random));
    }
    for (int k = 0; k < 4; ++k) square[k] += std::pow(mass[k] / total - shares[k], 2) / kDraws;
  }
  // 4 errors of a variance by so many draws are 4 %, 2 % of its root; what is left out is of the order of v, under 2 %.
  for (int k = 0; k < 4; ++k) EXPECT_NEAR(std::sqrt(square[k]) / errors[k], 1, 0.05) << k;
}

TEST(ModeShape, SharesHaveNoErrorWhereMassesAreGuesses) {
  ModeLibrary library(1);
  for (int k = 0; k < 3; ++k)
    library.add(
        mode(Vector::Constant(1, 10.0 * k), Matrix::Identity(1, 1), k == 2 ? -6 : 0, k == 2 ? 0.04 : 0.3));
  std::vector<double> errors = share_errors(library);
  EXPECT_GT(errors[0], 0);  // the guess holds a quarter of a percent
  EXPECT_TRUE(std::isnan(errors[2]));
  library[2].laplace_log_mass = -3;  // or 2 % by another guess
  errors = share_errors(library);
  for (const double e : errors) EXPECT_TRUE(std::isnan(e));
  for (const double effective : {0.04, 0.3}) {  // one alone is all of what was found, if that is known
    ModeLibrary one(1);
    one.add(mode(Vector::Zero(1), Matrix::Identity(1, 1), 0, effective));
    errors = share_errors(one);
    EXPECT_EQ(std::isnan(errors[0]), effective < 0.05);
  }
}

}  // namespace
}  // namespace lockstep
