// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact draws from the (extended) target of a Gaussian pair in two dimensions. For the pseudo-extended
// target:
//   an index I uniform; (x_I, beta_I) ~ target x uniform on [low, high];
//   the others from q(x, beta) ~ gamma_beta(x) g(beta): beta from its marginal z(beta) g(beta) by rejection,
//   then x from the Gaussian gamma_beta / z(beta).
// Integrating the extended density over all but one sample gives exactly this mixture (Nemeth et al. 2019).
// The joint density of a path and its control variable is q with g = 1, beta a function of that variable.
#include <array>
#include <random>
#include <string>

#include "targets/engine.hpp"
#include "targets/gaussian.hpp"
#include "targets/path.hpp"

namespace lockstep::testing {

struct InvarianceCase {
  std::string name;
  ModelSpec model;
  double step_size = 0.7;
  int num_leapfrog = 4;
  double beta = 0.45;                                    // of a path
  bool tempering = false;                                // no base: inverse temperatures alone
  bool dense = false;                                    // base and metric
  bool mixture = false;                                  // base of two components
  std::array<double, ParameterLayout::kBend> bend = {};  // of g
  int iterations = 1;
  int chains = 1 << 17;
};

/// Target N(mean, diag 1/inv_sd^2), base with mean and precision, both in two dimensions.
struct GaussianPair {
  std::array<double, 2> mean = {0.6, -0.4}, inv_sd = {1.4, 0.8};
  std::array<double, 2> base_mean = {-0.5, 0.7};
  std::array<double, 3> base_precision = {0.36, 0, 0.64};  // lower triangle
  double base_log_norm = -1.7, log_zeta = 0.3;
  bool mixture = false;  // with a second component
  std::array<double, 2> second_mean = {1.6, -1.1};
  std::array<double, 3> second_precision = {1.1, 0.3, 0.8};
  double second_log_weight = -0.4;
  ParameterPool pool;

  explicit GaussianPair(const InvarianceCase& c) {
    if (c.dense) base_precision[1] = 0.2;
    mixture = c.mixture;
    if (c.tempering) {
      base_precision = {0, 0, 0};
      base_log_norm = 0;
    }
  }
  double log_norm() const { return std::log(inv_sd[0] * inv_sd[1]) - std::log(2 * kPi); }
  Gaussian density() {
    Gaussian g;
    g.dim = 2;
    g.log_norm = log_norm();
    g.mean = pool.add({mean[0], mean[1]});
    g.inv_sd = pool.add({inv_sd[0], inv_sd[1]});
    return g;
  }

  int components() const { return mixture ? 2 : 1; }
  /// log base at x of a component.
  double log_base(const std::array<double, 2>& x, int component) const {
    const auto& m = component == 0 ? base_mean : second_mean;
    const auto& q = component == 0 ? base_precision : second_precision;
    const double y0 = x[0] - m[0], y1 = x[1] - m[1];
    return base_log_norm + (component == 0 ? 0 : second_log_weight) -
           0.5 * (q[0] * y0 * y0 + 2 * q[1] * y0 * y1 + q[2] * y1 * y1);
  }

  /// gamma_beta of a component of the base as a Gaussian: log of its integral, its mean, and the Cholesky factor of its
  /// covariance.
  struct Tempered {
    double log_z;
    std::array<double, 2> mean;
    std::array<double, 3> factor;
  };
  Tempered tempered(double beta, int component = 0) const {
    const auto& base_mean = component == 0 ? this->base_mean : second_mean;
    const double base_log_norm = this->base_log_norm + (component == 0 ? 0 : second_log_weight);
    const double d0 = inv_sd[0] * inv_sd[0], d1 = inv_sd[1] * inv_sd[1], hot = 1 - beta;
    const auto& q = component == 0 ? base_precision : second_precision;
    const double a = beta * d0 + hot * q[0], b = hot * q[1], c = beta * d1 + hot * q[2], det = a * c - b * b;
    const double q0 = q[0] * base_mean[0] + q[1] * base_mean[1],
                 q1 = q[1] * base_mean[0] + q[2] * base_mean[1];
    const double h0 = beta * d0 * mean[0] + hot * q0, h1 = beta * d1 * mean[1] + hot * q1;
    Tempered t;
    t.mean = {(c * h0 - b * h1) / det, (a * h1 - b * h0) / det};
    t.log_z = beta * (log_norm() - log_zeta - 0.5 * (d0 * mean[0] * mean[0] + d1 * mean[1] * mean[1])) +
              hot * (base_log_norm - 0.5 * (q0 * base_mean[0] + q1 * base_mean[1])) +
              0.5 * (h0 * t.mean[0] + h1 * t.mean[1]) + std::log(2 * kPi) - 0.5 * std::log(det);
    const double v0 = c / det, v01 = -b / det, v1 = a / det, l0 = std::sqrt(v0);
    t.factor = {l0, v01 / l0, std::sqrt(v1 - v01 * v01 / v0)};
    return t;
  }
};

/// Draws exactly from the (extended) target of a case.
class ExactStart {
 public:
  ExactStart(const InvarianceCase& c, const GaussianPair& pair, std::uint64_t seed)
      : case_(c), pair_(pair), random_(seed) {
    const ModelSpec& m = c.model;
    // beta^power carries g but for its bend and, without a base, the singular part of z(beta) = beta^-1 (...); the rest is
    // bounded. (A power of zero, g = beta^0 without a base, would need a logarithm here.)
    power_ = m.g_exponent - (c.tempering ? 1 : 0) + 1;
    first_ = std::pow(m.low, power_);
    last_ = std::pow(m.high, power_);
    for (int k = 1; k <= 4000; ++k) top_ = std::max(top_, log_rest(m.low + (m.high - m.low) * k / 4000.0));
    top_ += 0.01;
  }

  /// x of a sample of the path at beta; inside the box, where there is one.
  std::array<double, 2> position(double beta) {
    std::array<double, 2> x;
    while (!propose(beta, x)) continue;
    return x;
  }
  std::array<double, 2> target() { return position(1); }

  /// beta by its control variable u, and x there.
  struct Joint {
    double beta, u;
    std::array<double, 2> x;
  };
  /// From the joint density of the two: together, kept where x is.
  Joint joint(Control control) {
    const ModelSpec& m = case_.model;
    Joint j;
    do {
      do {
        if (control == Control::plateaus) {  // of one period; p(u) is flat
          j.u = 4 * uniform_(random_) - 2;
          j.beta = Path<Gaussian, 0, true>{{}, {}, control}.temperature(j.u).beta;
        } else {
          j.beta = std::pow(first_ + (last_ - first_) * uniform_(random_), 1 / power_);
          j.u = std::log((j.beta - m.low) / (m.high - j.beta));
        }
      } while (std::log(uniform_(random_)) > log_rest(j.beta) - top_);
    } while (!propose(j.beta, j.x));
    return j;
  }

  /// Rows x_1 .. x_N, u_1 .. u_N of one chain.
  void rows(double* to, std::ptrdiff_t stride) {
    const ModelSpec& m = case_.model;
    if (m.control != Control::none) {
      const Joint j = joint(m.control);
      to[0] = j.x[0];
      to[stride] = j.x[1];
      to[2 * stride] = j.u;
      return;
    }
    if (m.kind != ModelKind::pseudo_extended) {
      const auto x = position(m.kind == ModelKind::path ? case_.beta : 1);
      to[0] = x[0];
      to[stride] = x[1];
      return;
    }
    const int n = m.pseudo_samples, chosen = std::uniform_int_distribution<int>(0, n - 1)(random_);
    for (int i = 0; i < n; ++i) {
      Joint j{m.fixed_beta, 0, {}};
      if (i == chosen) {
        j.x = target();
        j.beta = m.low + (m.high - m.low) * uniform_(random_);
        j.u = std::log((j.beta - m.low) / (m.high - j.beta));
      } else if (!m.learned) {
        j.x = position(j.beta);
      } else {
        j = joint(m.control);
      }
      to[(2 * i) * stride] = j.x[0];
      to[(2 * i + 1) * stride] = j.x[1];
      if (m.learned) to[(2 * n + i) * stride] = j.u;
    }
  }

 private:
  bool inside(const std::array<double, 2>& x) const {
    return std::abs(x[0]) <= case_.model.box && std::abs(x[1]) <= case_.model.box;
  }
  /// x from the path of one component of the base, by their integrals; whether it is inside the box, and kept as one
  /// of the whole base's: (sum_k b_k)^(1 - beta) <= sum_k b_k^(1 - beta).
  bool propose(double beta, std::array<double, 2>& x) {
    const bool second =
        pair_.mixture && uniform_(random_) > std::exp(pair_.tempered(beta).log_z - log_sum([&](int k) {
                                                        return pair_.tempered(beta, k).log_z;
                                                      }));
    const auto t = pair_.tempered(beta, second);
    const double z0 = normal_(random_), z1 = normal_(random_);
    x = {t.mean[0] + t.factor[0] * z0, t.mean[1] + t.factor[1] * z0 + t.factor[2] * z1};
    if (!inside(x)) return false;
    return !pair_.mixture || std::log(uniform_(random_)) <
                                 (1 - beta) * log_sum([&](int k) { return pair_.log_base(x, k); }) -
                                     log_sum([&](int k) { return (1 - beta) * pair_.log_base(x, k); });
  }
  template <class F>
  double log_sum(F f) const {
    double sum = 0;
    for (int k = 0; k < pair_.components(); ++k) sum += std::exp(f(k));
    return std::log(sum);
  }
  double log_rest(double beta) const {
    double rest = log_sum([&](int k) { return pair_.tempered(beta, k).log_z; }) +
                  (case_.tempering ? std::log(beta) : 0);
    for (std::size_t k = 0; k < case_.bend.size(); ++k)
      rest += case_.bend[k] * std::pow(beta, 0.25 * double(k + 1));
    return rest;
  }

  const InvarianceCase& case_;
  const GaussianPair& pair_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{1e-300, 1.0};
  double power_, first_, last_, top_ = -1e300;
};

}  // namespace lockstep::testing
