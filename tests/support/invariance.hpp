// SPDX-License-Identifier: Apache-2.0
#pragma once
// The invariance suite: start many chains exactly in the (extended) target, make one transition, and ask whether
// they are still in it. Targets here are Gaussian in two dimensions with Gaussian bases, for which the
// pseudo-extended target can be drawn from exactly:
//   an index I uniform; (x_I, beta_I) ~ target x uniform on [low, high];
//   the others from q(x, beta) ~ gamma_beta(x) g(beta): beta from its marginal z(beta) g(beta) by rejection, then
//   x from the Gaussian gamma_beta / z(beta).
// Integrating the extended density over all but one sample gives exactly this mixture (Nemeth et al. 2019).
#include <array>
#include <random>
#include <string>

#include "targets/engine_cpu.hpp"
#include "targets/gaussian.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {

inline constexpr int kInvarianceChains = 1 << 17;

struct InvarianceCase {
  std::string name;
  ModelSpec model;
  double step_size = 0.7;
  int num_leapfrog = 4;
  double beta = 0.45;      // of a path
  bool tempering = false;  // no base: inverse temperatures alone
  bool dense = false;      // base and metric
  int iterations = 1;
};

/// Target N(mean, diag 1/inv_sd^2), base with mean and precision, both in two dimensions.
struct GaussianPair {
  std::array<double, 2> mean = {0.6, -0.4}, inv_sd = {1.4, 0.8};
  std::array<double, 2> base_mean = {-0.5, 0.7};
  std::array<double, 3> base_precision = {0.36, 0, 0.64};  // lower triangle
  double base_log_norm = -1.7, log_zeta = 0.3;
  ParameterPool pool;

  explicit GaussianPair(const InvarianceCase& c) {
    if (c.dense) base_precision[1] = 0.2;
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

  /// gamma_beta as a Gaussian: log of its integral, its mean, and the Cholesky factor of its covariance.
  struct Tempered {
    double log_z;
    std::array<double, 2> mean;
    std::array<double, 3> factor;
  };
  Tempered tempered(double beta) const {
    const double d0 = inv_sd[0] * inv_sd[0], d1 = inv_sd[1] * inv_sd[1], hot = 1 - beta;
    const auto& q = base_precision;
    const double a = beta * d0 + hot * q[0], b = hot * q[1], c = beta * d1 + hot * q[2], det = a * c - b * b;
    const double q0 = q[0] * base_mean[0] + q[1] * base_mean[1], q1 = q[1] * base_mean[0] + q[2] * base_mean[1];
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
    // beta^power carries g and, without a base, the singular part of z(beta) = beta^-1 (...); the rest is bounded.
    // (A power of zero, g = beta^0 without a base, would need a logarithm here.)
    power_ = m.g_exponent - (c.tempering ? 1 : 0) + 1;
    first_ = std::pow(m.low, power_);
    last_ = std::pow(m.high, power_);
    for (int k = 1; k <= 4000; ++k) top_ = std::max(top_, log_rest(m.low + (m.high - m.low) * k / 4000.0));
    top_ += 0.01;
  }

  /// x of a sample of the path at beta; inside the box, where there is one.
  std::array<double, 2> position(double beta) {
    const auto t = pair_.tempered(beta);
    for (;;) {
      const double z0 = normal_(random_), z1 = normal_(random_);
      const std::array<double, 2> x = {t.mean[0] + t.factor[0] * z0, t.mean[1] + t.factor[1] * z0 + t.factor[2] * z1};
      if (inside(x)) return x;
    }
  }
  std::array<double, 2> target() { return position(1); }

  /// Rows x_1 .. x_N, u_1 .. u_N of one chain.
  void rows(double* to, std::ptrdiff_t stride) {
    const ModelSpec& m = case_.model;
    if (m.kind != ModelKind::pseudo_extended) {
      const auto x = position(m.kind == ModelKind::path ? case_.beta : 1);
      to[0] = x[0];
      to[stride] = x[1];
      return;
    }
    const int n = m.pseudo_samples, chosen = std::uniform_int_distribution<int>(0, n - 1)(random_);
    for (int i = 0; i < n; ++i) {
      std::array<double, 2> x;
      double beta = m.fixed_beta;
      if (i == chosen) {
        x = target();
        beta = m.low + (m.high - m.low) * uniform_(random_);
      } else if (!m.learned) {
        x = position(beta);
      } else {
        do {  // beta and x together, kept where x is inside the box
          do beta = std::pow(first_ + (last_ - first_) * uniform_(random_), 1 / power_);
          while (std::log(uniform_(random_)) > log_rest(beta) - top_);
          const auto t = pair_.tempered(beta);
          const double z0 = normal_(random_), z1 = normal_(random_);
          x = {t.mean[0] + t.factor[0] * z0, t.mean[1] + t.factor[1] * z0 + t.factor[2] * z1};
        } while (!inside(x));
      }
      to[(2 * i) * stride] = x[0];
      to[(2 * i + 1) * stride] = x[1];
      if (m.learned) to[(2 * n + i) * stride] = std::log((beta - m.low) / (m.high - beta));
    }
  }

 private:
  bool inside(const std::array<double, 2>& x) const {
    return std::abs(x[0]) <= case_.model.box && std::abs(x[1]) <= case_.model.box;
  }
  double log_rest(double beta) const { return pair_.tempered(beta).log_z + (case_.tempering ? std::log(beta) : 0); }

  const InvarianceCase& case_;
  const GaussianPair& pair_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_{1e-300, 1.0};
  double power_, first_, last_, top_ = -1e300;
};

/// The CPU back end with one transition, a twin of a kernel's or the kernel's own.
template <class Transition>
struct OneTransition : CpuBackend {
  explicit OneTransition(const EngineSpec& spec) : CpuBackend(spec), threads(spec.threads) {}
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    constexpr int width = HWY_MAX_BYTES / int(sizeof(R));
    advance_cpu<Transition, Pack<R, width>, Pack<E, width>>(model, b, spec, threads);
  }
  int threads;
};

/// What a case did: functionals before and after of every chain, weighted moments and unweighted draws.
struct Moved {
  std::vector<std::vector<double>> before, after, stretched;  // [functional][chain]; stretched: x after, times 1.02
  std::array<std::vector<double>, 2> weighted, weighted_square, draw, reference;
  std::vector<double> beta, beta_reference;
  double acceptance = 0, jump = 0;  // mean acceptance; mean squared jump of x over its variance
};

/// Functionals of one chain's rows and weights; symmetric and single-sample ones, moments and an indicator.
inline std::vector<double> functionals(const ModelSpec& m, const double* rows, const double* weights, double stretch) {
  const int n = m.pseudo_samples;
  std::vector<double> f;
  auto x = [&](int i, int k) { return stretch * rows[2 * i + k]; };
  auto beta = [&](int i) { return m.low + (m.high - m.low) / (1 + std::exp(-rows[2 * n + i])); };
  for (int i = 0; i < n; i += std::max(1, n - 1)) {
    for (int k = 0; k < 2; ++k) {
      f.push_back(x(i, k));
      f.push_back(x(i, k) * x(i, k));
    }
    f.push_back(x(i, 0) * x(i, 1));
    f.push_back(x(i, 0) > 0.4);
    if (m.learned && m.kind == ModelKind::pseudo_extended) {
      f.push_back(beta(i));
      f.push_back(beta(i) * beta(i));
      f.push_back(beta(i) * x(i, 0));
    }
  }
  if (n > 1) {
    f.push_back(x(0, 0) * x(n - 1, 0));
    f.push_back(weights[0]);
    double squares = 0, wx = 0, wxx = 0, mean = 0, mean_square = 0, betas = 0;
    for (int i = 0; i < n; ++i) {
      squares += weights[i] * weights[i];
      wx += weights[i] * x(i, 0);
      wxx += weights[i] * x(i, 1) * x(i, 1);
      mean += x(i, 0) / n;
      mean_square += x(i, 1) * x(i, 1) / n;
      if (m.learned) betas += beta(i) / n;
    }
    f.insert(f.end(), {squares, wx, wxx, mean, mean_square, betas});
  }
  return f;
}

/// Draws exact starts, makes the transitions with `Transition` on `Model` (built from its parts by `build`).
template <class Transition, class Build>
Moved run_invariance(const InvarianceCase& c, std::uint64_t seed, Build&& build) {
  GaussianPair pair(c);
  const ParameterLayout layout{2, c.dense, c.dense};
  auto model = build(pair.density(), layout);
  using Model = decltype(model);
  const int chains = kInvarianceChains;
  EngineSpec spec;
  spec.model = c.model;
  spec.threads = 2;
  spec.draws = c.iterations;
  for (int i = 0; i < chains; ++i) {
    spec.chain.push_back(static_cast<std::uint32_t>(i));
    spec.unit.push_back(0);
  }
  EngineOf<OneTransition<Transition>, Model, float, double> engine(model, spec);
  auto put = [&](int row, double value) { engine.set_parameter(row, std::vector<double>(chains, value)); };
  put(ParameterLayout::step_size, c.step_size);
  put(ParameterLayout::beta, c.beta);
  put(ParameterLayout::log_zeta, pair.log_zeta);
  put(ParameterLayout::base_log_norm, pair.base_log_norm);
  put(ParameterLayout::scale_u, 1.5);
  const std::array<double, 3> factor = {0.8, 0.3, 1.1}, &q = pair.base_precision;
  for (int k = 0; k < 2; ++k) {
    put(layout.scale() + k, k == 0 ? 0.8 : 1.2);
    put(layout.base_mean() + k, pair.base_mean[k]);
    put(layout.base_inv_sd() + k, std::sqrt(q[2 * k]));
  }
  for (int t = 0; t < 3 && c.dense; ++t) {
    put(layout.metric_factor() + t, factor[t]);
    put(layout.base_precision() + t, q[t]);
  }

  ExactStart exact(c, pair, seed);
  const int rows = engine.rows(), n = c.model.pseudo_samples;
  std::vector<double> start(std::size_t(rows) * chains);
  for (int i = 0; i < chains; ++i) exact.rows(&start[i], chains);
  engine.set_position(start);
  engine.initialize();
  Moved moved;
  auto collect = [&](std::vector<std::vector<double>>& to, double stretch) {
    const auto position = engine.position(), cache = engine.cache();
    std::vector<double> x(rows), w(n, 1.0);
    for (int i = 0; i < chains; ++i) {
      for (int r = 0; r < rows; ++r) x[r] = position[std::size_t(r) * chains + i];
      for (int s = 0; s < n && n > 1; ++s) w[s] = cache[std::size_t(1 + s) * chains + i];
      const auto f = functionals(c.model, x.data(), w.data(), stretch);
      if (to.empty()) to.resize(f.size());
      for (std::size_t k = 0; k < f.size(); ++k) to[k].push_back(f[k]);
    }
  };
  collect(moved.before, 1);
  const auto before = engine.position();
  LaunchSpec launch;
  launch.key = {static_cast<std::uint32_t>(seed), 77};
  launch.num_leapfrog = c.num_leapfrog;
  launch.end = static_cast<std::uint32_t>(c.iterations - 1);
  if (launch.end > 0) engine.advance(launch);
  launch.begin = launch.end;
  launch.end = static_cast<std::uint32_t>(c.iterations);
  launch.record = true;
  engine.take_stats();
  engine.advance(launch);
  collect(moved.after, 1);
  collect(moved.stretched, 1.02);

  const auto after = engine.position(), stats = engine.take_stats(), moments = engine.take_moments();
  const auto draws = engine.draws();
  RunningMean variance[2];
  for (int i = 0; i < chains; ++i) {
    moved.acceptance += stats[stat_acceptance * chains + i] / chains;
    for (int k = 0; k < 2; ++k) {
      variance[k].add(before[k * chains + i]);
      moved.weighted[k].push_back(moments[(MomentLayout::first + k) * chains + i]);
      moved.weighted_square[k].push_back(moments[(MomentLayout::first + 2 + k) * chains + i]);
      moved.draw[k].push_back(draws[std::size_t(k) * engine.padded_chains() + i]);
    }
    const auto x = c.model.kind == ModelKind::path ? exact.position(c.beta) : exact.target();
    for (int k = 0; k < 2; ++k) moved.reference[k].push_back(x[k]);
  }
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < chains; ++i)
      moved.jump += std::pow(after[k * chains + i] - before[k * chains + i], 2) / (2.0 * chains * variance[k].variance());
  if (c.model.learned && c.model.kind == ModelKind::pseudo_extended) {
    std::vector<double> fresh(rows);
    for (int i = 0; i < chains; ++i) {
      moved.beta.push_back(after[std::size_t(2 * n) * chains + i]);
      exact.rows(fresh.data(), 1);
      moved.beta_reference.push_back(fresh[2 * n]);
    }
  }
  return moved;
}

/// Every statistic of a case as |z| (Kolmogorov-Smirnov p-values turned into the z of their rate).
struct Verdict {
  double worst = 0;
  std::string where = {};
  int tests = 0;
  void add(const std::string& what, double z) {
    ++tests;
    if (!(std::abs(z) <= worst)) {
      worst = std::isnan(z) ? 1e9 : std::abs(z);
      where = what;
    }
  }
};

/// Largest |z| of the paired differences of the functionals.
inline Verdict paired(const std::vector<std::vector<double>>& before, const std::vector<std::vector<double>>& after) {
  Verdict v;
  for (std::size_t k = 0; k < before.size(); ++k) {
    RunningMean d;
    for (std::size_t i = 0; i < before[k].size(); ++i) d.add(after[k][i] - before[k][i]);
    v.add("functional " + std::to_string(k), d.z(0));
  }
  return v;
}

inline double z_of_p(double p) { return p <= 0 ? 40.0 : -normal_quantile(std::min(p, 1.0) / 2); }

inline Verdict judge(const Moved& m) {
  Verdict v = paired(m.before, m.after);
  for (int k = 0; k < 2; ++k) {
    const std::string row = "[" + std::to_string(k) + "]";
    std::vector<double> squares = m.reference[k];
    for (double& s : squares) s *= s;
    v.add("weighted mean" + row, two_sample_z(m.weighted[k], m.reference[k]));
    v.add("weighted second moment" + row, two_sample_z(m.weighted_square[k], squares));
    v.add("unweighted draw" + row, z_of_p(ks_test(m.draw[k], m.reference[k])));
  }
  if (!m.beta.empty()) v.add("distribution of beta", z_of_p(ks_test(m.beta, m.beta_reference)));
  return v;
}

}  // namespace lockstep::testing
