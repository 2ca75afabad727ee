// SPDX-License-Identifier: Apache-2.0
// NUTS on posteriordb's posteriors, 20 chains from uniform(-2, 2), against the reference draws there: means, second moments
// and standard deviations within 4 joint errors. (On simulated data and by exact truths: statistical_samplers.cpp.)
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/posteriordb.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep::posteriordb_test {
namespace {

using namespace testing;

struct Posterior {
  std::string target, data, draws;
  std::vector<std::string> entries;
  std::function<void(Point&)> to_state;  // names of parameters are sorted
};

std::string data_of(const Posterior& p) {
  nlohmann::json data;
  for (const auto& [name, array] : posteriordb_input(p.data, p.entries).arrays) {
    data[name] = array.values;
    if (array.values.size() == 1) data[name] = array.values[0];
  }
  return data.is_null() ? "" : data.dump();
}

/// Squares about `about`, whose mean about the mean is the variance: each chain's mean of them, of coordinate i.
RunningMean squares_about(double about, const UnitMoments& m, int i) {
  RunningMean squares;
  for (int c = 0; c < m.chains; ++c) {
    double n = 0, sum = 0, square = 0;
    for (int b = 0; b < m.batches; ++b) {
      const double* row = m.batch(c, b);
      n += row[MomentLayout::count], sum += row[m.layout.mean() + i], square += row[m.layout.second() + i];
    }
    squares.add(square / n - 2 * about * sum / n + about * about);
  }
  return squares;
}

TEST(NutsOnPosteriordb, MomentsAreThoseOfTheReferenceDraws) {
  if (posteriordb_file("arK-arK.draws.json.zip").empty())
    GTEST_SKIP() << "the reference draws are not compared: see $LOCKSTEP_DATA";
  const std::vector<Posterior> posteriors = {
      {"ark", "arK", "arK-arK", {"y", "K"}, [](Point& x) { x[6] = std::log(x[6]); }},
      {"gp_regr",
       "gp_pois_regr",
       "gp_pois_regr-gp_regr",
       {"x", "y"},
       [](Point& x) {
         x = {std::log(x[1]), std::log(x[0]), std::log(x[2])};
       }},
      {"eight_schools", "", "eight_schools-eight_schools_noncentered", {}, [](Point& x) {
         for (int j = 2; j < 10; ++j) x[j] = (x[j] - x[0]) / x[1];
         x[1] = std::log(x[1]);
       }}};
  for (const Posterior& p : posteriors) {
    const Outcome o = run({.target = p.target,
                           .sampler = "nuts",
                           .iterations = 1000,
                           .chains = 20,
                           .warmup = 1000,
                           .init = "uniform:2",
                           .replicates = 1,
                           .data = data_of(p)});
    const Estimates& e = o.units.at(0);
    std::vector<RunningMean> mean(o.target->dim()), second(o.target->dim()), about(o.target->dim());
    const std::vector<Point> draws = reference_draws(p.draws, mean.size(), p.to_state);
    for (const Point& x : draws)
      for (std::size_t i = 0; i < x.size(); ++i) mean[i].add(x[i]), second[i].add(x[i] * x[i]);
    for (const Point& x : draws)
      for (std::size_t i = 0; i < x.size(); ++i) about[i].add(std::pow(x[i] - mean[i].mean(), 2));
    ASSERT_EQ(mean[0].count(), 10000u) << p.draws;
    const auto z = [](double found, double se, const RunningMean& draws) {
      return std::abs(found - draws.mean()) / std::hypot(se, draws.standard_error() / std::sqrt(0.9));
    };
    for (std::size_t i = 0; i < mean.size(); ++i) {
      EXPECT_LT(z(e.mean[i], e.mean_se[i], mean[i]), 4) << p.target << ", axis " << i;
      EXPECT_LT(z(e.second[i], e.second_se[i], second[i]), 4) << p.target << ", axis " << i;
      const RunningMean found = squares_about(mean[i].mean(), o.result.units.at(0), int(i));
      EXPECT_LT(z(found.mean(), found.standard_error(), about[i]), 4) << p.target << ", sd of axis " << i;
      // And it knows something.
      EXPECT_LT(e.mean_se[i], 0.03 * std::sqrt(second[i].mean() - std::pow(mean[i].mean(), 2)))
          << p.target << ", axis " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::posteriordb_test
