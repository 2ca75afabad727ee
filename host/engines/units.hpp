// SPDX-License-Identifier: Apache-2.0
#pragma once
// A batch is units x chains: a unit is a replicate (later an item or a copy), its chains stand side by side.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "host/engines/stages.hpp"
#include "host/util/progress.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// Chain and unit numbers of every chain of a batch.
inline void number_chains(EngineSpec& spec, const std::vector<std::uint32_t>& units, int chains_per_unit) {
  spec.chain.clear();
  spec.unit.clear();
  for (std::uint32_t u : units)
    for (int c = 0; c < chains_per_unit; ++c) {
      spec.chain.push_back(static_cast<std::uint32_t>(c));
      spec.unit.push_back(u);
    }
}

/// Chains of each of the units that so many numbers are of, `each` of them. (All chains' numbers may be more than an int.)
inline int chains_of_unit(int chains, std::size_t numbers, int each = 1) {
  return chains / int(numbers / std::size_t(each));
}
/// One number per unit spread to its chains.
inline void set_per_unit(Engine& engine, int row, const std::vector<double>& per_unit) {
  const int per = chains_of_unit(engine.chains(), per_unit.size());
  std::vector<double> values(engine.chains());
  for (int c = 0; c < engine.chains(); ++c) values[c] = per_unit[c / per];
  engine.set_parameters(row, values);
}
/// [unit][dim] spread to the chains, from row `first` on.
inline void set_axis(Engine& engine, int first, const std::vector<double>& per_unit_and_axis, int dim) {
  const int chains = engine.chains(), per = chains_of_unit(chains, per_unit_and_axis.size(), dim);
  std::vector<double> rows(std::size_t(dim) * chains);
  for (int i = 0; i < dim; ++i)
    for (int c = 0; c < chains; ++c)
      rows[std::size_t(i) * chains + c] = per_unit_and_axis[std::size_t(c / per) * dim + i];
  engine.set_parameters(first, rows);
}
/// Mean over each unit's chains of row `row` of [row][chain].
inline std::vector<double> unit_means(const std::vector<double>& rows, int row, int chains, int units) {
  std::vector<double> mean(units, 0.0);
  const int per = chains / units;
  for (int c = 0; c < chains; ++c) mean[c / per] += rows[std::size_t(row) * chains + c] / per;
  return mean;
}

/// Harmonic mean over each unit's chains of their acceptance in one iteration, what the cross-chain dual
/// averaging follows (Hoffman, Radul & Sountsov 2021): a few chains stuck where the step is too long pull it
/// down, which a mean would not notice.
inline std::vector<double> harmonic_acceptance(const std::vector<double>& stats, int chains, int units) {
  constexpr double floor = 0.001;  // what a single rejected chain counts as
  std::vector<double> sum(units, 0.0);
  const int per = chains / units;
  for (int c = 0; c < chains; ++c)
    sum[c / per] += 1 / std::max(stats[std::size_t(stat_acceptance) * chains + c], floor);
  for (double& s : sum) s = per / s;
  return sum;
}

/// Lists that a transition's chains share (TransitionInfo::shared): of units by number, and of all others.
struct SharedNumbers {
  /// Of these units, as Engine::set_shared takes them.
  UnitList of(const std::vector<std::uint32_t>& units) const {
    UnitList lists;
    for (const std::uint32_t unit : units) {
      const auto own = of_unit.find(unit);
      if (!lists.contains(unit)) lists[unit] = own == of_unit.end() ? of_others : own->second;
    }
    return lists;
  }
  UnitList of_unit;
  std::vector<double> of_others;
};

/// Where and how a run computes, and whom it tells.
struct RunContext {
  const TargetInstance* target = nullptr;
  StreamKey key;
  Precision precision = Precision::mixed;
  int threads = 1;                  // of this process
  int all_threads = 1, shards = 1;  // of all that share the run; engines that share its chains
  bool cuda = false;
  std::vector<int> devices = {};  // GPUs of this process, where there are several
  bool whole_units = false;       // chains of a unit swap: no cut is between them (ShardedEngine)
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  RunHealth before =
      {};  // gradients and divergences that the run has behind it, beside those of its present part
  // Of all engines made from here on: the jumps between modes that chains make (kernels/mode_jump.hpp, or darts in their
  // place), how they begin anew (kernels/regeneration.hpp), and what their first transition finds in its lists, by their
  // names.
  std::shared_ptr<const SharedNumbers> jumps = {}, regeneration = {};
  const char* jumps_by = "mode_jump";
  std::map<std::string, std::shared_ptr<const SharedNumbers>> lists = {};
  std::shared_ptr<Stages> stages = std::make_shared<Stages>();  // what is saved of the run

  /// Transitions that follow the first in each iteration, of one gradient each; and what it costs with them.
  int followers() const { return int(jumps != nullptr) + int(regeneration != nullptr); }
  double with_jump(double gradients) const { return gradients + followers(); }
  /// Between launches: the share done of a stage, and how its part of the run does. Throws Interrupted to stop.
  void tell(const std::string& stage, double share, const RunHealth& health = {}) const {
    if (progress->tell(stage, share)) show(health);
  }
  /// After progress->tell() has asked for it.
  void show(const RunHealth& health) const {
    progress->show(
        {before.gradients + health.gradients, before.divergences + health.divergences, health.rhat});
  }
};

/// `count` standard normals of a draw.
inline std::vector<double> normals(const Draw<double>& draw, Purpose purpose, int count) {
  std::vector<double> z(count);
  draw.normals(purpose, count, [&](int i, double v) { z[i] = v; });
  return z;
}

/// What an engine has counted since its statistics were taken last.
inline RunHealth counts_of(Engine& engine) {
  const auto stats = engine.stats(false);
  const auto sum = [&](StatRow row) {
    const auto begin = stats.begin() + std::ptrdiff_t(row) * engine.chains();
    return std::accumulate(begin, begin + engine.chains(), 0.0);
  };
  return {sum(stat_gradients), sum(stat_divergences)};
}

/// What every engine of a run has in common: where it computes, in which precision, and whose chains.
inline EngineSpec engine_spec(const RunContext& context, const ModelSpec& model,
                              const std::vector<std::uint32_t>& units, int chains_per_unit) {
  EngineSpec spec;
  spec.model = model;
  spec.precision = context.precision;
  spec.threads = context.threads;
  spec.cuda = context.cuda;
  number_chains(spec, units, chains_per_unit);
  return spec;
}

}  // namespace lockstep
