// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cases for tests of target horseshoe, and its model written out factor by factor.
#include "targets/horseshoe.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

/// [case][class, features]: the first feature tells the classes apart, if not well.
inline DataArray random_cases(int count, int features, std::uint64_t seed) {
  ExactDraw random(seed);
  DataArray table{{}, {count, features + 1}};
  for (int i = 0; i < count; ++i) {
    const double y = i % 2;
    table.values.push_back(y);
    for (int j = 0; j < features; ++j)
      table.values.push_back(1.3 * random.normal() + 0.4 + (j == 0 ? 2 * y - 1 : 0));
  }
  return table;
}

/// All of class 1, features positive: the terms of each derivative of the likelihood have one sign. (What rounding does
/// to sums of terms that cancel is no matter of the position, by which the contract suite judges a gradient.)
inline DataArray one_sided_cases(int count, int features, std::uint64_t seed) {
  DataArray table = random_cases(count, features, seed);
  for (int i = 0; i < count; ++i) {
    double* row = table.values.data() + std::size_t(i) * (features + 1);
    row[0] = 1;
    for (int j = 1; j <= features; ++j) row[j] = std::abs(row[j]);
  }
  return table;
}

inline MemoryInput horseshoe_input(DataArray table, double held_out) {
  MemoryInput in;
  in.arrays["table"] = std::move(table);
  in.numbers["held_out"] = held_out;
  return in;
}
inline MemoryInput horseshoe_as_given(DataArray table, double held_out) {
  MemoryInput in = horseshoe_input(std::move(table), held_out);
  in.choices["standardise"] = "no";
  return in;
}

struct HorseshoePrior {
  double tau0, slab_df = 3, slab_scale = 2;
};

/// b_j = z_j tau c lambda_j / sqrt(c^2 + tau^2 lambda_j^2).
inline std::vector<double> coefficients(const std::vector<double>& x, const HorseshoePrior& prior) {
  const std::size_t p = (x.size() - 3) / 2;
  std::vector<double> b(p);
  for (std::size_t j = 0; j < p; ++j) {
    const double tau = std::exp(x[1]), c2 = prior.slab_scale * prior.slab_scale * std::exp(x[2]),
                 lambda = std::exp(x[3 + p + j]);
    b[j] = x[3 + j] * tau * std::sqrt(c2 * lambda * lambda / (c2 + tau * tau * lambda * lambda));
  }
  return b;
}

/// P(y_i = its class | x_i) of row i of a table.
inline double class_probability(const DataArray& table, int i, double intercept,
                                const std::vector<double>& b) {
  const double* row = table.values.data() + std::size_t(i) * (b.size() + 1);
  double eta = intercept;
  for (std::size_t j = 0; j < b.size(); ++j) eta += row[1 + j] * b[j];
  return 1 / (1 + std::exp(row[0] == 1 ? -eta : eta));
}

/// The log density at x with the cases `rows`: each prior's density of its own variable, and the Jacobians.
inline double horseshoe_by_case(const DataArray& table, const std::vector<int>& rows,
                                const HorseshoePrior& prior, const std::vector<double>& x) {
  const auto normal = [](double z, double sd) {
    return -0.5 * std::log(2 * kPi) - std::log(sd) - 0.5 * z * z / (sd * sd);
  };
  const auto half_cauchy = [](double log_s, double width) {
    const double s = std::exp(log_s);
    return std::log(2 / (kPi * width * (1 + s * s / (width * width)))) + log_s;
  };
  const double half = prior.slab_df / 2, v = std::exp(x[2]);
  double value = normal(x[0], 10) + half_cauchy(x[1], prior.tau0) + half * std::log(half) -
                 std::lgamma(half) - (half + 1) * std::log(v) - half / v + x[2];
  const std::size_t p = (x.size() - 3) / 2;
  for (std::size_t j = 0; j < p; ++j) value += normal(x[3 + j], 1) + half_cauchy(x[3 + p + j], 1);
  for (int i : rows) value += std::log(class_probability(table, i, x[0], coefficients(x, prior)));
  return value;
}

}  // namespace lockstep::testing
