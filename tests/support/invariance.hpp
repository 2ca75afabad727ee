// SPDX-License-Identifier: Apache-2.0
#pragma once
// The invariance suite: start many chains exactly in the (extended) target, make one transition, and ask
// whether they are still in it. Starts are those of tests/support/exact_start.hpp.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "targets/engine_cpu.hpp"
#include "tests/support/exact_start.hpp"
#include "tests/support/own_data.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {

inline constexpr int kInvarianceChains = 1 << 17;

/// The CPU back end with one transition, a twin of a kernel's or the kernel's own.
template <class Transition>
struct OneTransition : FusedCpu {
  explicit OneTransition(const EngineSpec& spec) : FusedCpu(spec), part(part_of(spec, 0, 0)) {}
  TransitionPart part;
  template <class R, class E, class Model>
  void advance(const Model& model, const BatchView<R, E>& b, const LaunchSpec& spec) const {
    advance_cpu<Transition, MachinePack<R>, MachineEnergies<R, E>>(model, part.of(b), spec, threads_);
  }
};

/// A transition, or those of a sequence, for the block driver.
template <class Transition, class L, class E, class Model>
std::vector<const BlockTransition<L, E, Model>*> block_transitions() {
  std::vector<const BlockTransition<L, E, Model>*> all;
  Each<Transition>::call([&]<class One>() {
    static const BlockTransitionOf<One, L, E, Model> transition;
    all.push_back(&transition);
  });
  return all;
}

/// What a case did: functionals before and after of every chain, weighted moments and unweighted draws.
struct Moved {
  std::vector<std::vector<double>> before, after,
      stretched;  // [functional][chain]; stretched: x after, times 1.02
  std::array<std::vector<double>, 2> weighted, weighted_square, draw, reference;
  std::vector<double> beta, beta_reference;
  double acceptance = 0, jump = 0;  // mean acceptance; mean squared jump of x over its variance
};

/// Functionals of one chain's rows and weights; symmetric and single-sample ones, moments and an indicator.
inline std::vector<double> functionals(const ModelSpec& m, const double* rows, const double* weights,
                                       double stretch) {
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

/// Draws exact starts, makes the transitions with `Transition` on `Model` (built from its parts by `build`),
/// by the fused driver or by blocks.
template <class Transition, bool kBlocks = false, class Build>
Moved run_invariance(const InvarianceCase& c, std::uint64_t seed, Build&& build) {
  GaussianPair pair(c);
  const ParameterLayout layout{2, c.dense, c.dense || c.mixture ? 1 : 0};
  auto model = build(pair.density(), layout);
  using Model = decltype(model);
  const int chains = kInvarianceChains;
  EngineSpec spec;
  spec.model = c.model;
  name_transitions<Transition>(spec);
  spec.threads = 2;
  spec.draws = c.iterations;
  for (int i = 0; i < chains; ++i) {
    spec.chain.push_back(static_cast<std::uint32_t>(i));
    spec.unit.push_back(0);
  }
  using L = MachinePack<float>;
  using E = MachineEnergies<float, double>;
  const std::unique_ptr<Engine> made = [&]() -> std::unique_ptr<Engine> {
    if constexpr (kBlocks) {
      return std::make_unique<BlockEngine<L, E, Model>>(model, spec,
                                                        block_transitions<Transition, L, E, Model>(),
                                                        block_density<Gaussian, L, E>(pair.density()));
    } else
      return std::make_unique<EngineOf<OneTransition<Transition>, Model, float, double>>(model, spec);
  }();
  Engine& engine = *made;
  auto put = [&](int row, double value) { engine.set_parameters(row, std::vector<double>(chains, value)); };
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
  for (int t = 0; t < 3 && c.dense; ++t) put(layout.metric_factor() + t, factor[t]);
  if (layout.base != 0) {
    std::vector<double> numbers = {
        double(pair.components()), 0, pair.base_mean[0], pair.base_mean[1], q[0], q[1], q[1], q[2]};
    const auto& p = pair.second_precision;
    if (c.mixture)
      numbers.insert(numbers.end(), {pair.second_log_weight, pair.second_mean[0], pair.second_mean[1], p[0],
                                     p[1], p[1], p[2]});
    engine.set_base({{0, numbers}});
  }

  ExactStart exact(c, pair, seed);
  const int rows = engine.rows(), n = c.model.pseudo_samples;
  std::vector<double> start(std::size_t(rows) * chains);
  for (int i = 0; i < chains; ++i) exact.rows(&start[i], chains);
  prepare<Transition>(engine, 1);
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
      moved.jump += std::pow(after[k * chains + i] - before[k * chains + i], 2) /
                    (2.0 * chains * variance[k].variance());
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
inline Verdict paired(const std::vector<std::vector<double>>& before,
                      const std::vector<std::vector<double>>& after) {
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

/// On the model of the case's kind; by the block driver, which every transition runs on, or by the fused one.
template <class Transition, bool kBlocks = true>
Moved moved(const InvarianceCase& c, std::uint64_t seed) {
  const auto of = [&]<class Model>() {
    return run_invariance<Transition, kBlocks>(c, seed, [&](const Gaussian& g, const ParameterLayout& l) {
      ModelSpec m = c.model;
      m.dense_metric = l.dense_metric;
      m.base = l.base;
      return make_model<Model>(g, m);
    });
  };
  if (c.model.kind == ModelKind::plain) return of.template operator()<Path<Gaussian, 0, false>>();
  if (c.model.kind == ModelKind::path) return of.template operator()<Path<Gaussian, 0, true>>();
  return of.template operator()<PseudoExtended<Gaussian, 0, 0>>();
}

/// Expects that chains are still in the target, moved, and would have been seen to leave it. Returns how many tests it made.
inline int expect_in_target(const InvarianceCase& c, const Moved& m, double limit,
                            bool may_accept_all = false) {
  const Verdict v = judge(m);
  EXPECT_LT(v.worst, limit) << c.name << ": " << v.where;
  EXPECT_GT(m.acceptance, 0.2) << c.name;
  EXPECT_LT(m.acceptance, may_accept_all ? 2 : 0.9999)
      << c.name << ": nothing is ever rejected, so the test sees no rejection";
  EXPECT_GT(m.jump, 0.02) << c.name << ": it hardly moved";
  EXPECT_GT(paired(m.before, m.stretched).worst, limit) << c.name << ": no power to see x stretched by 2 %";
  return v.tests;
}

}  // namespace lockstep::testing
