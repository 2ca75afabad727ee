// SPDX-License-Identifier: Apache-2.0
#pragma once
// The invariance suite: start many chains exactly in the (extended) target, make one transition, and ask
// whether they are still in it. Starts are those of tests/support/exact_start.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <string>

#include "targets/engine_cpu.hpp"
#include "tests/support/block_transitions.hpp"
#include "tests/support/exact_start.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {

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

/// Makes the engine of a spec that says all but its transitions, and gives it what these need.
using EngineMaker = std::function<std::unique_ptr<Engine>(const Gaussian&, EngineSpec)>;

/// By blocks, of the machine's packs.
template <class Transition, class Model>
std::unique_ptr<Engine> make_blocks(const Gaussian& density, EngineSpec spec) {
  name_transitions<Transition>(spec);
  auto engine = make_block_engine<float, double>(
      spec, {density.dim, density.quantities()},
      block_density<Gaussian, MachinePack<float>, MachineEnergies<float, double>>(density),
      block_transitions<Transition, Model>());
  prepare<Transition>(*engine, 1);
  return engine;
}
/// By the fused driver, on the model that `build` makes of a density and a layout.
template <class Transition, class Build>
EngineMaker fused(Build build) {
  return [build](const Gaussian& density, EngineSpec spec) -> std::unique_ptr<Engine> {
    name_transitions<Transition>(spec);
    const auto model = build(density, ParameterLayout{density.dim, spec.model.dense_metric, spec.model.base});
    auto engine = std::make_unique<
        EngineOf<OneTransition<Transition>, std::remove_const_t<decltype(model)>, float, double>>(model,
                                                                                                  spec);
    prepare<Transition>(*engine, 1);
    return engine;
  };
}

using Values = std::vector<std::vector<double>>;  // [functional][chain]

/// Whether control variables of inverse temperatures are part of the state, behind the samples.
inline bool has_betas(const ModelSpec& m) {
  return m.kind == ModelKind::pseudo_extended ? m.learned : m.control != Control::none;
}
/// beta of each chain, by the control variables of one sample.
inline std::vector<double> betas_of(const ModelSpec& m, std::span<const double> u) {
  std::vector<double> beta;
  for (const double v : u) {
    if (m.control == Control::plateaus)
      beta.push_back(Path<Gaussian, 0, true>{{}, {}, m.control}.temperature(v).beta);
    else
      beta.push_back(m.low + (m.high - m.low) / (1 + std::exp(-v)));
  }
  return beta;
}

/// Functionals of every chain: symmetric and single-sample ones, moments and an indicator; of `stretch` times x. Rows
/// and weights (of more than one sample): [row][chain].
inline Values functionals(const ModelSpec& m, const double* rows, const double* weights, int chains,
                          double stretch) {
  const int n = m.pseudo_samples;
  const bool betas = has_betas(m);
  Values f;
  const auto add = [&](auto value) {
    f.emplace_back(chains);
    for (int i = 0; i < chains; ++i) f.back()[i] = value(i);
  };
  const auto x = [&](int s, int k, int i) { return stretch * rows[std::size_t(2 * s + k) * chains + i]; };
  const auto beta =
      betas_of(m, {rows + std::size_t(2 * n) * chains, betas ? std::size_t(n) * chains : std::size_t(0)});
  for (int s = 0; s < n; s += std::max(1, n - 1)) {
    for (int k = 0; k < 2; ++k) {
      add([&](int i) { return x(s, k, i); });
      add([&](int i) { return x(s, k, i) * x(s, k, i); });
    }
    add([&](int i) { return x(s, 0, i) * x(s, 1, i); });
    add([&](int i) { return x(s, 0, i) > 0.4; });
    if (betas) {
      const double* b = &beta[std::size_t(s) * chains];
      add([&](int i) { return b[i]; });
      add([&](int i) { return b[i] * b[i]; });
      add([&](int i) { return b[i] * x(s, 0, i); });
    }
  }
  if (n == 1) return f;
  const auto w = [&](int s, int i) { return weights[std::size_t(s) * chains + i]; };
  const auto sum = [&](auto of) {
    add([&](int i) {
      double total = 0;
      for (int s = 0; s < n; ++s) total += of(s, i);
      return total;
    });
  };
  add([&](int i) { return x(0, 0, i) * x(n - 1, 0, i); });
  add([&](int i) { return w(0, i); });
  sum([&](int s, int i) { return w(s, i) * w(s, i); });
  sum([&](int s, int i) { return w(s, i) * x(s, 0, i); });
  sum([&](int s, int i) { return w(s, i) * x(s, 1, i) * x(s, 1, i); });
  sum([&](int s, int i) { return x(s, 0, i) / n; });
  sum([&](int s, int i) { return x(s, 1, i) * x(s, 1, i) / n; });
  if (betas) sum([&](int s, int i) { return beta[std::size_t(s) * chains + i] / n; });
  return f;
}

/// Exact starts of a case, and as many draws beside them to compare with. What is made once serves every transition.
struct Starts {
  GaussianPair pair;
  Gaussian density = pair.density();
  std::vector<double> position;                  // [row][chain]
  std::array<std::vector<double>, 2> reference;  // of target, path at beta, or joint density; sorted
  std::vector<double> beta_reference;            // of one sample
  Starts(const Starts&) = delete;                // densities know where their numbers lie
  Starts(const InvarianceCase& c, std::uint64_t seed) : pair(c) {
    const int chains = c.chains, n = c.model.pseudo_samples;
    const bool joint = c.model.control != Control::none, betas = has_betas(c.model);
    const int rows = (2 + betas) * n;
    ExactStart exact(c, pair, seed);
    position.resize(std::size_t(rows) * chains);
    for (int i = 0; i < chains; ++i) exact.rows(&position[i], chains);
    for (auto& r : reference) r.resize(chains);
    for (int i = 0; i < chains; ++i) {
      const auto x = joint                             ? exact.joint(c.model.control).x
                     : c.model.kind == ModelKind::path ? exact.position(c.beta)
                                                       : exact.target();
      for (int k = 0; k < 2; ++k) reference[k][i] = x[k];
    }
    for (auto& r : reference) std::sort(r.begin(), r.end());
    std::vector<double> fresh(rows);
    for (int i = 0; i < chains && betas; ++i) {
      exact.rows(fresh.data(), 1);
      beta_reference.push_back(fresh[2 * n]);
    }
    beta_reference = betas_of(c.model, beta_reference);
  }
};

/// What a case did: functionals before and after of every chain, weighted moments and unweighted draws.
struct Moved {
  ModelSpec model;
  Values before, after;
  std::vector<double> position, cache;  // after
  std::array<std::vector<double>, 2> weighted, weighted_square, draw, reference;
  std::vector<double> beta, beta_reference;
  double acceptance = 0, jump = 0;  // mean acceptance; mean squared jump of x over its variance
  /// Functionals of x after, times 1.02.
  Values stretched() const {
    const int chains = int(before.front().size());
    return functionals(model, position.data(), &cache[chains], chains, 1.02);
  }
};

/// What the engine of a case is told of it: parameters, and its base.
inline void set_numbers(Engine& engine, const InvarianceCase& c, const GaussianPair& pair) {
  const ParameterLayout layout = engine.layout();
  auto put = [&](int row, double value) {
    engine.set_parameters(row, std::vector<double>(engine.chains(), value));
  };
  put(ParameterLayout::step_size, c.step_size);
  put(ParameterLayout::beta, c.beta);
  put(ParameterLayout::log_zeta, pair.log_zeta);
  put(ParameterLayout::base_log_norm, pair.base_log_norm);
  put(ParameterLayout::scale_u, 1.5);
  for (int k = 0; k < ParameterLayout::kBend; ++k) put(ParameterLayout::bend + k, c.bend[k]);
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
}

/// Goes on from exact starts by the case's iterations on the engine that `make` makes.
inline Moved run_invariance(const InvarianceCase& c, const Starts& starts, std::uint64_t seed,
                            const EngineMaker& make) {
  const GaussianPair& pair = starts.pair;
  const int chains = c.chains, n = c.model.pseudo_samples;
  EngineSpec spec;
  spec.model = c.model;
  spec.model.dense_metric = c.dense;
  spec.model.base = c.dense || c.mixture ? 1 : 0;
  spec.draws = c.iterations;
  for (int i = 0; i < chains; ++i) {
    spec.chain.push_back(static_cast<std::uint32_t>(i));
    spec.unit.push_back(0);
  }
  const std::unique_ptr<Engine> made = make(starts.density, spec);
  Engine& engine = *made;
  set_numbers(engine, c, pair);
  engine.set_position(starts.position);
  engine.initialize();
  const auto before = engine.position(), cache_before = engine.cache();
  LaunchSpec launch;
  launch.key = {static_cast<std::uint32_t>(seed), 77};
  launch.num_leapfrog = c.num_leapfrog;
  if (c.model.control != Control::none) launch.tempering = Tempering::joint;
  launch.end = static_cast<std::uint32_t>(c.iterations - 1);
  if (launch.end > 0) engine.advance(launch);
  launch.begin = launch.end;
  launch.end = static_cast<std::uint32_t>(c.iterations);
  launch.record = true;
  engine.take_stats();
  engine.advance(launch);

  Moved moved;
  moved.model = c.model;
  moved.position = engine.position();
  moved.cache = engine.cache();
  moved.before = functionals(c.model, before.data(), &cache_before[chains], chains, 1);
  moved.after = functionals(c.model, moved.position.data(), &moved.cache[chains], chains, 1);
  moved.reference = starts.reference;
  const auto &after = moved.position, stats = engine.take_stats(), moments = engine.take_moments();
  const auto draws = engine.draws(1);
  for (int i = 0; i < chains; ++i) moved.acceptance += stats[stat_acceptance * chains + i] / chains;
  for (int k = 0; k < 2; ++k) {
    const auto row = [&](const auto& of, int r) {
      return std::vector<double>(of.begin() + std::ptrdiff_t(r) * chains,
                                 of.begin() + std::ptrdiff_t(r + 1) * chains);
    };
    if (c.model.control == Control::none) {  // else weighted by that of beta = 1, whose mean is not 1
      moved.weighted[k] = row(moments, MomentLayout::first + k);
      moved.weighted_square[k] = row(moments, MomentLayout::first + 2 + k);
    }
    RunningMean variance, jump;
    for (int i = 0; i < chains; ++i) {
      moved.draw[k].push_back(draws[std::size_t(k) * engine.padded_chains() + i]);
      variance.add(before[k * chains + i]);
      jump.add(std::pow(after[k * chains + i] - before[k * chains + i], 2));
    }
    moved.jump += jump.mean() / (2 * variance.variance());
  }
  if (!starts.beta_reference.empty()) {
    moved.beta = betas_of(c.model, {&after[std::size_t(2 * n) * chains], std::size_t(chains)});
    moved.beta_reference = starts.beta_reference;
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
inline Verdict paired(const Values& before, const Values& after) {
  Verdict v;
  for (std::size_t k = 0; k < before.size(); ++k) {
    std::vector<double> d(before[k].size());
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = after[k][i] - before[k][i];
    v.add("functional " + std::to_string(k), mean_z(d));
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
    if (!m.weighted[k].empty()) {
      v.add("weighted mean" + row, two_sample_z(m.weighted[k], m.reference[k]));
      v.add("weighted second moment" + row, two_sample_z(m.weighted_square[k], squares));
    }
    v.add("unweighted draw" + row, z_of_p(ks_test(m.draw[k], m.reference[k])));
  }
  if (!m.beta.empty()) v.add("distribution of beta", z_of_p(ks_test(m.beta, m.beta_reference)));
  return v;
}

/// By the block driver, which every transition runs on, on the model of the case's kind: one of those named, or of all.
template <class Transition, class... Models>
struct ByBlocks {
  static EngineMaker on(ModelKind kind) {
    EngineMaker make;
    ((kind_of<Models>() == kind ? void(make = make_blocks<Transition, Models>) : void()), ...);
    if (!make) throw std::logic_error("a model that this test does not compile");
    return make;
  }
  template <class Model>
  static constexpr ModelKind kind_of() {
    if (Model::kExtended) return ModelKind::pseudo_extended;
    return Model::kTempered ? ModelKind::path : ModelKind::plain;
  }
};
template <class Transition>
struct ByBlocks<Transition> : ByBlocks<Transition, OpaquePlain, OpaquePath, OpaqueExtended> {};

template <class Transition, class... Models>
Moved moved(const InvarianceCase& c, const Starts& starts, std::uint64_t seed) {
  return run_invariance(c, starts, seed, ByBlocks<Transition, Models...>::on(c.model.kind));
}
template <class Transition, class... Models>
Moved moved(const InvarianceCase& c, std::uint64_t seed) {
  const Starts starts(c, seed);
  return moved<Transition, Models...>(c, starts, seed);
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
  EXPECT_GT(paired(m.before, m.stretched()).worst, limit) << c.name << ": no power to see x stretched by 2 %";
  return v.tests;
}

}  // namespace lockstep::testing
