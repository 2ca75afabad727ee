// SPDX-License-Identifier: Apache-2.0
// The search for modes on densities that are no number somewhere, end at a bound, or rise without end: it
// finds the modes there are, or none, and keeps to its budget.
#include <gtest/gtest.h>

#include <cmath>

#include "host/modes/mode_search.hpp"
#include "tests/support/function_target.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep {
namespace {

using testing::FunctionTarget;

constexpr double kMayTake = 2e5;

SearchResult search_on(int dim, FunctionTarget::Function f) {
  const FunctionTarget target(dim, std::move(f));
  RunContext context;
  context.target = &target;
  context.key = make_stream_key(5, "edges");
  SearchResult r = search_modes(context, 0, {.gradients = kMayTake});
  // A round is as large as what is left pays, by the mean cost of a start in the round before. A start costs
  // 1 to 401 gradients, a standard deviation of 200 at most: three of a sum of 1024 are a tenth of the
  // budget.
  EXPECT_LT(r.gradients, 1.1 * kMayTake);
  EXPECT_GE(r.starts, 256) << "it ended before it had looked";
  return r;
}

/// log N(x; (first, second, 0, ..), I), without its constant, and its gradient.
double normal_at(const double* x, double* g, int dim, double first, double second) {
  double square = 0;
  for (int i = 0; i < dim; ++i) {
    g[i] = (i == 0 ? first : i == 1 ? second : 0) - x[i];
    square += g[i] * g[i];
  }
  return -0.5 * square;
}

// Two modes two standard deviations from a half-space in which nothing is a number, where most starts lie,
// and some of the draws that weigh the modes.
TEST(ModeSearchEdges, FindsModesBesideWhatIsNoNumber) {
  const double none = NAN, vast = INFINITY;
  for (const auto& [value, slope] : {std::pair{none, none}, {0.0, none}, {none, 0.0}, {vast, 0.0}}) {
    const SearchResult r = search_on(3, [value = value, slope = slope](const double* x, double* g) {
      double other[3];
      const double a = normal_at(x, g, 3, -6, 4), b = normal_at(x, other, 3, -6, -4), most = std::max(a, b),
                   sum = std::exp(a - most) + std::exp(b - most);
      for (int i = 0; i < 3; ++i) g[i] = (g[i] * std::exp(a - most) + other[i] * std::exp(b - most)) / sum;
      double l = most + std::log(0.5 * sum) - 1.5 * std::log(2 * kPi);
      if (x[0] > -4) l += value, g[0] += slope;
      return l;
    });
    ASSERT_EQ(r.library.size(), 2) << value << slope;
    EXPECT_EQ(r.stopped, kSearchHits);
    EXPECT_GE(r.least_hits(), 10);
    EXPECT_EQ(r.total_hits(), r.ended) << "no start in there came to rest";
    EXPECT_LT(r.ended, 0.8 * r.starts);
    EXPECT_EQ(r.rejected, 0);
    for (int k = 0; k < 2; ++k) {
      const Mode& m = r.library[k];
      EXPECT_NEAR(m.place[0], -6, 1e-6);
      EXPECT_NEAR(std::abs(m.place[1]), 4, 1e-6);
      EXPECT_NEAR(std::exp(m.laplace_log_mass), 0.5, 1e-3);
      const double mass = 0.5 * 0.97725;  // of a normal that ends after two standard deviations
      EXPECT_NEAR(std::exp(m.log_mass), mass, 4 * mass / std::sqrt(256 * m.effective_share));
    }
  }
}

// A normal that ends at x[0] = 0: its highest point is a mode where it lies inside, and none on the bound.
TEST(ModeSearchEdges, OfABoundIsNoMode) {
  for (const double beyond : {-double(INFINITY), double(NAN)})
    for (const double peak : {1.0, 0.0, -1.0}) {
      const SearchResult r = search_on(2, [=](const double* x, double* g) {
        const double l = normal_at(x, g, 2, peak, 0) - std::log(2 * kPi);
        if (x[0] >= 0) return l;
        g[0] = g[1] = 0;
        return beyond;
      });
      ASSERT_EQ(r.library.size(), peak > 0) << peak << beyond;
      EXPECT_LT(r.ended, 0.6 * r.starts);
      if (peak <= 0) continue;
      const Mode& m = r.library[0];
      EXPECT_NEAR(m.place[0], peak, 1e-6);
      EXPECT_NEAR(m.laplace_log_mass, 0, 1e-3);
      EXPECT_NEAR(std::exp(m.log_mass), 0.84134, 4 * 0.84134 / std::sqrt(256 * m.effective_share));
      EXPECT_EQ(r.rejected, 0);
    }
}

/// What is found on a density that rises without end: nothing, and nothing came to rest.
void expect_none(const SearchResult& r) {
  EXPECT_EQ(r.library.size(), 0);
  EXPECT_EQ(r.ended, 0);
  EXPECT_EQ(r.stopped, kSearchBudget);
}

// Rubin's eight schools as they were first written, (mu, log tau, theta): tau^-8 at theta = mu.
TEST(ModeSearchEdges, CentredEightSchoolsHaveNone) {
  const auto data = testing::eight_schools();
  const auto &y = data.arrays.at("y").values, &sigma = data.arrays.at("sigma").values;
  expect_none(search_on(10, [&](const double* x, double* g) {
    const double mu = x[0], tau = std::exp(x[1]), wide = std::pow(tau / 5, 2);  // half-Cauchy(5)
    double l = -mu * mu / 50 + x[1] - std::log1p(wide);
    g[0] = -mu / 25;
    g[1] = 1 - 2 * wide / (1 + wide);
    for (int j = 0; j < 8; ++j) {
      const double z = (x[2 + j] - mu) / tau, r = (y[j] - x[2 + j]) / sigma[j];
      l -= 0.5 * (z * z + r * r) + x[1];
      g[0] += z / tau;
      g[1] += z * z - 1;
      g[2 + j] = r / sigma[j] - z / tau;
    }
    return l;
  }));
}

// x[0] of a Cauchy distribution, nine others of variance exp(x[0]).
TEST(ModeSearchEdges, AFunnelHasNone) {
  expect_none(search_on(10, [](const double* x, double* g) {
    const double v = x[0], precision = std::exp(-v);
    double square = 0;
    for (int i = 1; i < 10; ++i) {
      square += x[i] * x[i];
      g[i] = -x[i] * precision;
    }
    g[0] = -2 * v / (1 + v * v) + 0.5 * (square * precision - 9);
    return -std::log1p(v * v) - 0.5 * (square * precision + 9 * v);
  }));
}

// Where the origin is says nothing: beside a mode far beyond the scale of the starts another is met as near
// the origin.
TEST(ModeSearchEdges, FindsTheNeighbourOfAModeFarAway) {
  for (const double at : {0.0, 100.0, 1000.0, 1e4}) {
    const SearchResult r = search_on(2, [at](const double* x, double* g) {
      const double wide[] = {x[0] - at, x[1] - at}, narrow[] = {x[0] - at - 10, x[1] - at};
      const auto normal = [](const double* y, double sd, double weight) {
        return std::log(weight / (2 * kPi * sd * sd)) - 0.5 * (y[0] * y[0] + y[1] * y[1]) / (sd * sd);
      };
      const double a = normal(wide, 1, 0.3), b = normal(narrow, 0.2, 0.7), most = std::max(a, b),
                   sum = std::exp(a - most) + std::exp(b - most), of = std::exp(a - most) / sum;
      for (int i = 0; i < 2; ++i) g[i] = -of * wide[i] - (1 - of) * narrow[i] / 0.04;
      return most + std::log(sum);
    });
    EXPECT_EQ(r.library.size(), 2) << at;
  }
}

// A point that is a maximum on one axis alone is no mode, however many descents begin on its ridge.
TEST(ModeSearchEdges, TakesNoSaddleForAMode) {
  const SearchResult r =
      search_on(2, [](const double* x, double* g) {  // -(x^2 - 4)^2 / 8 - y^2 / 2: saddle at 0
        g[0] = -0.5 * x[0] * (x[0] * x[0] - 4);
        g[1] = -x[1];
        return -std::pow(x[0] * x[0] - 4, 2) / 8 - 0.5 * x[1] * x[1];
      });
  ASSERT_EQ(r.library.size(), 2);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(std::abs(r.library[k].place[0]), 2, 1e-3);
}

}  // namespace
}  // namespace lockstep
