// SPDX-License-Identifier: Apache-2.0
#pragma once
// Households for tests of target radon, and its model written out household by household.
#include "targets/decompositions.hpp"
#include "targets/half_cauchy.hpp"
#include "targets/radon_exact.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep::testing {

/// Drawn from the model with log s_a, log s_b, log eps = -0.5, 0, -0.4. Uranium belongs to the county, or
/// differs between households, so that every one is a cell of its own.
inline RadonData households(int counties, int count, std::uint64_t seed, bool own_uranium = false) {
  ExactDraw random(seed);
  RadonData data;
  data.counties = counties;
  std::vector<double> level, uranium;
  for (int j = 0; j < counties; ++j) {
    level.push_back(1 + std::exp(-0.5) * random.normal());
    uranium.push_back(0.5 * random.normal());
  }
  for (int i = 0; i < count; ++i) {
    const int c = i % counties;
    data.county.push_back(c);
    data.floor.push_back(random.uniform() < 0.3 ? 1 : 0);
    data.log_uranium.push_back(own_uranium ? 0.5 * random.normal() : uranium[c]);
    data.y.push_back(level[c] - 0.7 * data.floor.back() + 0.6 * data.log_uranium.back() +
                     std::exp(-0.4) * random.normal());
  }
  return data;
}

inline MemoryInput radon_input(const RadonData& data) {
  const int n = int(data.y.size());
  MemoryInput in;
  in.arrays["y"] = {data.y, {n}};
  in.arrays["floor"] = {data.floor, {n}};
  in.arrays["log_uranium"] = {data.log_uranium, {n}};
  in.arrays["county"] = {{data.county.begin(), data.county.end()}, {n}};
  for (double& c : in.arrays["county"].values) c += 1;
  return in;
}

/// log density and gradient at x, each household and each prior by itself.
struct RadonByHousehold {
  double value = 0;
  std::vector<double> gradient;
};
inline RadonByHousehold by_household(const RadonData& data, const std::vector<double>& x) {
  const int counties = data.counties, m = 5 + counties;
  const double s_a = std::exp(x[2]), s_b = std::exp(x[3]), eps = std::exp(x[4]);
  RadonByHousehold r;
  r.gradient.assign(x.size(), 0.0);
  auto normal = [&](double z) { r.value += -0.5 * std::log(2 * kPi) - 0.5 * z * z; };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i >= 2 && i < 5) {  // s = exp(x) with density 2 / (pi 2.5 (1 + (s / 2.5)^2)), times ds / dx = s
      const double s = std::exp(x[i]), q = s * s / (2.5 * 2.5);
      r.value += std::log(2 / (kPi * 2.5 * (1 + q))) + x[i];
      r.gradient[i] += 1 - 2 * q / (1 + q);
    } else {
      normal(x[i]);
      r.gradient[i] -= x[i];
    }
  }
  for (std::size_t i = 0; i < data.y.size(); ++i) {
    const int n = 5 + data.county[i];
    const double f = data.floor[i], u = data.log_uranium[i];
    const double z =
        (data.y[i] - (x[0] + s_a * x[n] + f * (x[1] + s_b * x[m]) + u * (x[1] + s_b * x[m + 1]))) / eps;
    normal(z);
    r.value -= x[4];
    r.gradient[0] += z / eps;
    r.gradient[1] += (f + u) * z / eps;
    r.gradient[2] += s_a * x[n] * z / eps;
    r.gradient[3] += s_b * (f * x[m] + u * x[m + 1]) * z / eps;
    r.gradient[4] += z * z - 1;
    r.gradient[n] += s_a * z / eps;
    r.gradient[m] += s_b * f * z / eps;
    r.gradient[m + 1] += s_b * u * z / eps;
  }
  return r;
}

/// What is Gaussian given the scales, by dense linear algebra: z = (mu_a, mu_b, n_1 .. n_J, m_1, m_2) ~ N(0,
/// I), y = H z + eps N(0, I).
class DenseRadon {
 public:
  explicit DenseRadon(const RadonData& data)
      : y_(Eigen::Map<const Eigen::VectorXd>(data.y.data(), Eigen::Index(data.y.size()))) {
    const Eigen::Index n = y_.size(), j = data.counties;
    h_.setZero(n, j + 4);
    for (Eigen::Index i = 0; i < n; ++i) {
      h_(i, 0) = h_(i, 2 + data.county[std::size_t(i)]) = 1;
      h_(i, 1) = data.floor[std::size_t(i)] + data.log_uranium[std::size_t(i)];
      h_(i, 2 + j) = data.floor[std::size_t(i)];
      h_(i, 3 + j) = data.log_uranium[std::size_t(i)];
    }
    gram_ = h_.transpose() * h_;
  }
  /// log p(y, log scales), and E z and Cov z given both.
  double solve(const Eigen::Vector3d& log_scales) {
    Eigen::VectorXd scale = Eigen::VectorXd::Ones(h_.cols());
    scale.segment(2, h_.cols() - 4).setConstant(std::exp(log_scales[0]));
    scale.tail(2).setConstant(std::exp(log_scales[1]));
    const double w = std::exp(-2 * log_scales[2]);
    Eigen::MatrixXd precision = w * scale.asDiagonal() * gram_ * scale.asDiagonal();
    precision.diagonal().array() += 1;
    const Eigen::LLT<Eigen::MatrixXd> factor(precision);
    const Eigen::VectorXd shift = w * scale.asDiagonal() * (h_.transpose() * y_);
    mean = factor.solve(shift);
    covariance = factor.solve(Eigen::MatrixXd::Identity(h_.cols(), h_.cols()));
    double value = -double(y_.size()) * (0.5 * std::log(2 * kPi) + log_scales[2]) -
                   0.5 * (w * y_.squaredNorm() - shift.dot(mean)) -
                   factor.matrixLLT().diagonal().array().log().sum();
    for (double l : log_scales) {
      const double s = std::exp(l) / 2.5;
      value += std::log(2 / (kPi * 2.5 * (1 + s * s))) + l;
    }
    return value;
  }
  Eigen::VectorXd mean;
  Eigen::MatrixXd covariance;

 private:
  Eigen::VectorXd y_;
  Eigen::MatrixXd h_, gram_;
};

}  // namespace lockstep::testing
