// SPDX-License-Identifier: Apache-2.0
// The pseudo-extended target in double: gradient against central differences of its density, and its special
// cases.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/scalar_model.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;
using Model = PseudoExtended<CurvedDensity, 0, 0>;

struct Case {
  std::string name;
  int samples;
  bool learned;
  double beta, low, high, g_exponent;
  bool dense, tempering;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int n : {1, 2, 5, 20}) {
    const std::string suffix = " N=" + std::to_string(n);
    for (double g : {-0.5, 0.0, 13.5})
      for (double low : {0.0, 0.05}) {
        const std::string more = " g=" + std::to_string(g) + " low=" + std::to_string(low) + suffix;
        all.push_back({"bridge" + more, n, true, 0, low, 1, g, false, false});
        all.push_back({"tempering" + more, n, true, 0, low, 0.9, g, false, true});
      }
    all.push_back({"dense base" + suffix, n, true, 0, 0.1, 1, 0.5, true, false});
    all.push_back({"fixed beta" + suffix, n, false, 0.4, 0, 1, 2, false, false});
    all.push_back({"fixed instrument" + suffix, n, false, 0, 0, 1, 0, false, false});
    all.push_back({"fixed dense instrument" + suffix, n, false, 0, 0, 1, 0, true, false});
    all.push_back({"target itself" + suffix, n, false, 1, 0, 1, 0, false, false});
  }
  return all;
}

ScalarModel<Model> build(const Case& c) {
  CurvedDensity density;
  density.dim = 3;
  ScalarModel<Model> m(
      make_pseudo_extended(density, c.samples, c.learned, c.beta, c.low, c.high, c.g_exponent, c.dense));
  if (c.tempering) {
    m.parameters[ParameterLayout::base_log_norm] = 0;
    for (int k = 0; k < 3; ++k) m.parameters[m.model.layout.base_inv_sd() + k] = 0;
  }
  return m;
}

std::vector<double> random_position(const Model& model, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> x(model.rows());
  for (double& v : x) v = 1.3 * normal(random);
  return x;
}

TEST(PseudoExtended, GradientAgreesWithCentralDifferences) {
  for (const Case& c : cases()) {
    const auto m = build(c);
    ASSERT_EQ(m.model.rows(), c.samples * (3 + c.learned));
    for (unsigned seed = 1; seed <= 4; ++seed) {
      const auto x = random_position(m.model, seed);
      const auto g = m.gradient(x);
      for (std::size_t j = 0; j < x.size(); ++j) {
        auto difference = [&](double h) {
          auto up = x, down = x;
          up[j] += h;
          down[j] -= h;
          return (m.log_density(up) - m.log_density(down)) / (2 * h);
        };
        const double h = 2e-4, d = (4 * difference(h) - difference(2 * h)) / 3;  // fourth order
        ASSERT_NEAR(g[j], d, 2e-8 * (1 + std::abs(d)) + 2e-13 * std::abs(m.log_density(x)) / h)
            << c.name << ", row " << j << ", seed " << seed;
      }
    }
  }
}

TEST(PseudoExtended, DensityIsTheFormula) {
  for (const Case& c : cases()) {
    const auto m = build(c);
    const auto x = random_position(m.model, 9);
    const int n = c.samples, d = 3;
    long double sum = 0, total = 0;
    std::vector<long double> a(n);
    for (int i = 0; i < n; ++i) {
      std::vector<double> xi(x.begin() + i * d, x.begin() + (i + 1) * d);
      const double l = m.model.density.log_density<0, double>(Rows<double>{xi.data(), 1}, NoGradient{}) -
                       m.parameters[ParameterLayout::log_zeta];
      long double b = m.parameters[ParameterLayout::base_log_norm];
      for (int k = 0; k < d; ++k) {
        const double z = xi[k] - m.parameters[m.model.layout.base_mean() + k];
        if (!c.dense) b -= 0.5 * std::pow(z * m.parameters[m.model.layout.base_inv_sd() + k], 2);
        for (int j = 0; j < d && c.dense; ++j)
          b -= 0.5 * z * m.base[2 + d + k * d + j] * (xi[j] - m.parameters[m.model.layout.base_mean() + j]);
      }
      long double beta = c.beta, jacobian = 0, g = 0;
      if (c.learned) {
        const long double s = 1 / (1 + std::exp(-static_cast<long double>(x[n * d + i])));
        beta = c.low + (c.high - c.low) * s;
        jacobian = std::log((c.high - c.low) * s * (1 - s));
        g = c.g_exponent * std::log(beta);
        for (int k = 0; k < ParameterLayout::kBend; ++k)
          g += m.parameters[ParameterLayout::bend + k] * std::pow(beta, 0.25L * (k + 1));
      }
      a[i] = l - (beta * l + (1 - beta) * b) - g;
      sum += std::exp(a[i]);
      total += beta * l + (1 - beta) * b + g + jacobian;
    }
    const double expected =
        static_cast<double>(std::log(sum) - std::log(static_cast<long double>(n)) + total);
    const auto cache = m.cache(x);
    EXPECT_NEAR(cache[0], expected, 1e-12 * (1 + std::abs(expected))) << c.name;
    double weights = 0;
    for (int i = 0; i < n; ++i) {
      EXPECT_NEAR(cache[1 + i], static_cast<double>(std::exp(a[i]) / sum), 1e-12) << c.name;
      EXPECT_EQ(m.model.weight<double>(ScalarModel<Model>::rows(const_cast<std::vector<double>&>(cache)), i),
                cache[1 + i]);
      weights += cache[1 + i];
    }
    EXPECT_NEAR(weights, 1, 4e-16 * n) << c.name;
  }
}

TEST(PseudoExtended, OneSampleIsTheTarget) {
  for (const Case& c : cases()) {
    if (c.samples != 1) continue;
    const auto m = build(c);
    const auto x = random_position(m.model, 3);
    std::vector<double> position(x.begin(), x.begin() + 3), g(3);
    const Rows<double> at{position.data(), 1}, to{g.data(), 1};
    m.model.density.log_density<0, double>(at, to);
    const auto extended = m.gradient(x);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(extended[k], g[k], 1e-13 * (1 + std::abs(g[k]))) << c.name;
    EXPECT_EQ(m.cache(x)[1], 1.0) << c.name;
    // and beta is uniform whatever g: d/du of log s (1 - s) is 1 - 2 s
    if (c.learned) {
      EXPECT_NEAR(extended[3], 1 - 2 / (1 + std::exp(-x[3])), 1e-14) << c.name;
    }
  }
}

TEST(PseudoExtended, SamplesAreExchangeable) {
  for (const Case& c : cases()) {
    if (c.samples != 5) continue;
    const auto m = build(c);
    auto x = random_position(m.model, 4);
    const double before = m.log_density(x);
    for (int k = 0; k < 3; ++k) std::swap(x[k], x[3 * 3 + k]);
    if (c.learned) std::swap(x[5 * 3], x[5 * 3 + 3]);
    EXPECT_NEAR(m.log_density(x), before, 1e-13 * (1 + std::abs(before))) << c.name;
  }
}

/// Logits far out: no overflow, weights still sum to one, beta at its ends.
TEST(PseudoExtended, ExtremeLogitsStayFinite) {
  for (const Case& c : cases()) {
    if (!c.learned) continue;
    const auto m = build(c);
    for (double u : {-600.0, -40.0, 40.0, 600.0}) {
      auto x = random_position(m.model, 5);
      x[3 * c.samples] = u;
      const auto cache = m.cache(x);
      double weights = 0;
      for (int i = 0; i < c.samples; ++i) weights += cache[1 + i];
      EXPECT_TRUE(std::isfinite(cache[0])) << c.name << " " << u;
      EXPECT_NEAR(weights, 1, 1e-14) << c.name << " " << u;
      for (double g : m.gradient(x)) EXPECT_TRUE(std::isfinite(g)) << c.name << " " << u;
      EXPECT_NEAR((m.model.beta<double>(Rows<double>{x.data(), 1}, m.par(), 0)), u < 0 ? c.low : c.high,
                  1e-15);
    }
  }
}

}  // namespace
