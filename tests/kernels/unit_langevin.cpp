// SPDX-License-Identifier: Apache-2.0
// Langevin's proposal and ratio are those of its formula, written down apart from the leapfrog integrator.
#include "kernels/langevin.hpp"

#include <gtest/gtest.h>

#include "kernels/driver.hpp"
#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

TEST(Langevin, IsItsFormula) {
  CurvedDensity density;
  density.dim = 3;
  const ScalarModel m(Path<CurvedDensity, 0, false>{density, ParameterLayout{3}});
  const int n = 3;
  const double step = m.parameters[ParameterLayout::step_size];
  const auto variance = [&](int j) { return std::pow(step * m.parameters[m.model.layout.scale() + j], 2); };
  const Draw<double> draw{{3, 4}, 7, 1, 2};
  const std::vector<double> from = {0.4, -0.7, 0.2};
  std::vector<double> x = from, p(n), g = m.gradient(from), z(n);
  draw.normals(Purpose::momentum, n, [&](int j, double v) { z[j] = v; });
  const struct {
    decltype(m.par()) parameters;
    Rows<double> x, p, g;
  } w{m.par(), m.rows(x), m.rows(p), m.rows(g)};
  const auto proposal =
      stage_propose<Langevin, double, double>(m.model, LaunchSpec{.key = {}, .num_leapfrog = 5}, draw, w);

  // log q(b | a) up to a constant: N(a + variance / 2 gradient(a), variance).
  const auto log_q = [&](const std::vector<double>& b, const std::vector<double>& a) {
    const auto gradient = m.gradient(a);
    double sum = 0;
    for (int j = 0; j < n; ++j)
      sum -= std::pow(b[j] - a[j] - variance(j) / 2 * gradient[j], 2) / (2 * variance(j));
    return sum;
  };
  const auto at = m.gradient(from);
  for (int j = 0; j < n; ++j)
    EXPECT_NEAR(x[j], from[j] + variance(j) / 2 * at[j] + std::sqrt(variance(j)) * z[j], 1e-14);
  EXPECT_NEAR(proposal.log_ratio, log_q(from, x) - log_q(x, from), 1e-12);
  EXPECT_EQ(proposal.steps, 1);
  EXPECT_EQ(g, m.gradient(x));
}

}  // namespace
