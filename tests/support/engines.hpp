// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small engines for tests: what differs from chain to chain is a function of the chain's number in a whole
// batch, so that any split of the batch over engines can be compared with any other.
#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "targets/engine.hpp"

namespace lockstep::testing {

/// One batch to run: all that may change a result. What must not change one is in `Split`.
struct BatchCase {
  ModelSpec model;
  const TransitionInfo* transition = nullptr;
  std::vector<const TransitionInfo*> then = {};
  std::vector<std::vector<double>> settings = {};
  Precision precision = Precision::mixed;
  int chains = 32;
  std::uint32_t iterations = 6;
  int num_leapfrog = 0;  // 0: by trajectory time, so that lanes of a pack differ in their steps
  int thin = 1;
  bool covariance = true, chees = false;
  double step_size = 0.3, trajectory_time = 1.1;
  StreamKey key{123, 456};
  Tempering tempering = Tempering::fixed;     // on a path
  std::function<void(Engine&)> prepare = {};  // before the chains start
};

/// Chains of a test: fewer where the transition keeps a history of many states of each, which would fill the memory.
inline int chains_of(const BatchCase& c, int most) {
  if (c.transition == nullptr) return most;
  const auto& fields = c.transition->fields;
  const bool history =
      std::any_of(fields.begin(), fields.end(), [](const TransitionField& f) { return f.rows(1) > 1000; });
  return history ? std::min(most, 75) : most;
}

/// How the work is divided: no bit of a result may depend on it.
struct Split {
  int pack_width = 0, threads = 1;
  bool blocks = false;
  std::vector<std::uint32_t> launches = {};  // ends of launches before the last
  std::vector<int> engines = {};             // first chains of engines after the first
  bool at_once = false;                      // each engine by a host thread of its own
  bool resumed = false;   // each launch by a new engine that takes the last one's state; the sums are its own
  int block_threads = 0;  // on a GPU
};

/// Everything an engine gives back, [row][chain] over all its engines.
struct BatchResult {
  std::vector<double> position, gradient, cache, stats, moments, fields;  // fields: those that are saved
  std::vector<float> draws;                                               // [draw][row][chain]
  int rows = 0, cache_rows = 0;
  bool operator==(const BatchResult&) const = default;
};

using EngineFactory = std::function<std::unique_ptr<Engine>(const EngineSpec&)>;

/// A number in [0, 1) from two integers, the same everywhere.
inline double hashed(std::uint32_t a, std::uint32_t b) {
  std::uint32_t w[4] = {a, b, 0, 0};
  philox(w, StreamKey{99, 7});
  return w[0] / 4294967296.0;
}

/// Sets every parameter row of an engine for chains [first, first + chains) of the case.
inline void set_parameters(Engine& engine, const BatchCase& c, int first) {
  const ParameterLayout layout = engine.layout();
  const int d = layout.dim, n = engine.chains();
  auto put = [&](int row, auto value) {
    std::vector<double> v(n);
    for (int i = 0; i < n; ++i) v[i] = value(static_cast<std::uint32_t>(first + i));
    engine.set_parameters(row, v);
  };
  auto vary = [](std::uint32_t chain, std::uint32_t row, double middle, double width) {
    return middle + width * (hashed(chain, 1000 + row) - 0.5);
  };
  put(ParameterLayout::step_size, [&](auto i) { return c.step_size * vary(i, 0, 1, 0.6); });
  put(ParameterLayout::trajectory_time, [&](auto i) { return c.trajectory_time * vary(i, 1, 1, 0.5); });
  put(ParameterLayout::beta, [&](auto i) { return vary(i, 2, 0.5, 1); });
  put(ParameterLayout::log_zeta, [&](auto i) { return vary(i, 3, 0.2, 1); });
  put(ParameterLayout::base_log_norm, [&](auto i) { return vary(i, 4, -2, 1); });
  put(ParameterLayout::scale_u, [&](auto i) { return vary(i, 5, 1, 0.5); });
  for (int k = 0; k < ParameterLayout::kBend; ++k)
    put(ParameterLayout::bend + k, [&](auto i) { return vary(i, std::uint32_t(6 + k), 0, 2); });
  for (int k = 0; k < d; ++k) {
    put(layout.scale() + k, [&](auto i) { return vary(i, 10 + k, 1, 0.5); });
    put(layout.base_mean() + k, [&](auto i) { return vary(i, 20 + k, 0.3, 1); });
    put(layout.base_inv_sd() + k, [&](auto i) { return vary(i, 30 + k, 0.6, 0.4); });
    put(layout.centre() + k, [&](auto i) { return vary(i, 40 + k, 0, 1); });
  }
  for (int i = 0, t = 0; i < d; ++i)
    for (int j = 0; j <= i; ++j, ++t) {
      const std::uint32_t row = static_cast<std::uint32_t>(50 + t);
      if (layout.dense_metric)
        put(layout.metric_factor() + t, [&](auto c) { return vary(c, row, i == j ? 1 : 0.2, 0.3); });
    }
  if (layout.base == 0) return;
  // Units of one, two and three components, side by side.
  UnitList numbers;
  for (int u = first / 5; u <= (first + n - 1) / 5; ++u) {
    const int components = 1 + u % 3;
    numbers[u] = {double(components)};
    for (int k = 0; k < components; ++k) {
      const auto about = [&](int row, double middle) { return vary(100 * u + k, 100 + row, middle, 0.2); };
      numbers[u].push_back(k == 0 ? 0 : about(0, -0.5));
      for (int i = 0; i < d; ++i) numbers[u].push_back(about(1 + i, 0.3 + k));
      for (int i = 0; i < d; ++i)
        for (int j = 0; j < d; ++j) {
          const int high = std::max(i, j), low = std::min(i, j);
          numbers[u].push_back(about(1000 + high * d + low, i == j ? 0.5 : 0.05));
        }
    }
  }
  engine.set_base(numbers);
}

/// An engine of chains [first, first + chains) of a case, at their starts.
inline std::unique_ptr<Engine> make_engine(const EngineFactory& make, const BatchCase& c,
                                           const Split& split = {}, int first = 0, int chains = 0) {
  if (chains == 0) chains = c.chains;
  EngineSpec spec;
  spec.model = c.model;
  spec.transition = c.transition;
  spec.then = c.then;
  spec.settings = c.settings;
  spec.precision = c.precision;
  spec.blocks = split.blocks;
  spec.pack_width = split.pack_width;
  spec.threads = split.threads;
  spec.block_threads = split.block_threads;
  spec.covariance = c.covariance;
  spec.draws = static_cast<int>((c.iterations + c.thin - 1) / c.thin);
  for (int i = first; i < first + chains; ++i) {
    spec.chain.push_back(static_cast<std::uint32_t>(i % 5));
    spec.unit.push_back(static_cast<std::uint32_t>(i / 5));
  }
  auto engine = make(spec);
  set_parameters(*engine, c, first);
  std::vector<double> start(std::size_t(engine->rows()) * chains);
  for (int r = 0; r < engine->rows(); ++r)
    for (int i = 0; i < chains; ++i) start[std::size_t(r) * chains + i] = 2 * hashed(first + i, 200 + r) - 1;
  if (c.tempering != Tempering::fixed) {
    std::vector<double> ladder, weight, step;
    for (std::uint32_t k = 0; k <= c.iterations; ++k) {
      ladder.push_back(double(k) / c.iterations);
      weight.push_back(0.3 * hashed(k, 500));
      step.push_back(c.step_size * (1 + hashed(k, 501)));
    }
    engine->set_ladder(ladder, weight, step);
  }
  if (c.prepare) c.prepare(*engine);
  engine->set_position(start);
  engine->initialize();
  return engine;
}

/// Iterations [begin, end) of a case.
inline LaunchSpec make_launch(const BatchCase& c, std::uint32_t begin, std::uint32_t end) {
  LaunchSpec launch;
  launch.key = c.key;
  launch.begin = begin;
  launch.end = end;
  launch.num_leapfrog = c.num_leapfrog;
  launch.record = true;
  launch.chees = c.chees;
  launch.thin = c.thin;
  launch.tempering = c.tempering;
  launch.first_level = int(begin) + 1;
  return launch;
}

/// Runs chains [first, first + chains) of a case on one engine.
inline BatchResult run_engine(const EngineFactory& make, const BatchCase& c, const Split& split, int first,
                              int chains) {
  auto engine = make_engine(make, c, split, first, chains);
  BatchResult result;
  const int padded = engine->padded_chains(), draw_rows = engine->dim() + kDrawExtraRows;
  auto ends = split.launches;
  ends.push_back(c.iterations);
  std::uint32_t begin = 0;
  for (std::uint32_t end : ends) {
    if (split.resumed && begin > 0) {
      const auto state = engine->state();
      engine = make_engine(make, c, split, first, chains);
      engine->set_state(state);
    }
    engine->advance(make_launch(c, begin, end));
    const auto stored = (end - begin + c.thin - 1) / c.thin;
    const auto draws = engine->draws(int(stored));
    for (std::uint32_t k = 0; k < stored; ++k)
      for (int r = 0; r < draw_rows; ++r)
        for (int i = 0; i < chains; ++i)
          result.draws.push_back(draws[(std::size_t(k) * draw_rows + r) * padded + i]);
    begin = end;
  }
  result.position = engine->position();
  result.gradient = engine->gradient();
  result.cache = engine->cache();
  result.stats = engine->take_stats();
  result.moments = engine->take_moments();
  if (c.transition != nullptr) {
    const auto fields = engine->fields();
    auto from = fields.begin();
    auto transitions = c.then;
    transitions.insert(transitions.begin(), c.transition);
    for (const TransitionInfo* transition : transitions)
      for (const TransitionField& field : transition->fields) {
        const auto to = from + std::ptrdiff_t(field.rows(engine->rows())) * chains;
        if (field.saved) result.fields.insert(result.fields.end(), from, to);
        from = to;
      }
  }
  result.rows = engine->rows();
  result.cache_rows = engine->cache_rows();
  return result;
}

/// Runs a case, divided as `split` says, and puts the parts together in the order of the chains.
inline BatchResult run_batch(const EngineFactory& make, const BatchCase& c, const Split& split = {}) {
  auto firsts = split.engines;
  firsts.insert(firsts.begin(), 0);
  firsts.push_back(c.chains);
  std::vector<std::future<BatchResult>> parts;
  for (std::size_t e = 0; e + 1 < firsts.size(); ++e)
    parts.push_back(std::async(split.at_once ? std::launch::async : std::launch::deferred, [&, e] {
      return run_engine(make, c, split, firsts[e], firsts[e + 1] - firsts[e]);
    }));
  BatchResult whole;
  for (std::size_t e = 0; e + 1 < firsts.size(); ++e) {
    const int first = firsts[e], chains = firsts[e + 1] - first;
    const BatchResult part = parts[e].get();
    whole.rows = part.rows;
    whole.cache_rows = part.cache_rows;
    auto join = [&](auto& to, const auto& from) {
      to.resize(from.size() / chains * c.chains);
      for (std::size_t i = 0; i < from.size(); ++i) to[i / chains * c.chains + first + i % chains] = from[i];
    };
    join(whole.position, part.position);
    join(whole.gradient, part.gradient);
    join(whole.cache, part.cache);
    join(whole.stats, part.stats);
    join(whole.moments, part.moments);
    join(whole.fields, part.fields);
    join(whole.draws, part.draws);
  }
  return whole;
}

}  // namespace lockstep::testing
