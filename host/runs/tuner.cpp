// SPDX-License-Identifier: Apache-2.0
#include "host/runs/tuner.hpp"

#include "host/runs/starts.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {

void first_step_sizes(const RunContext& context, Engine& engine, Frozen& frozen,
                      const std::vector<double>& x) {
  const int units = int(frozen.step_size.size());
  std::vector<int> direction(units, 0);
  std::vector<bool> settled(units, false);
  for (int trial = 0; trial < 40; ++trial) {
    set_per_unit(engine, ParameterLayout::step_size, frozen.step_size);
    engine.set_position(x);
    engine.initialize();
    LaunchSpec spec;
    spec.key = context.key;
    spec.begin = kTrialIterations + trial;
    spec.end = spec.begin + 1;
    spec.num_leapfrog = 1;
    spec.jitter = false;
    engine.advance(spec);
    const auto stats = engine.take_stats();
    const auto acceptance = unit_means(stats, stat_acceptance, engine.chains(), units);
    const auto gradients = unit_means(stats, stat_gradients, engine.chains(), units);
    const int per = engine.chains() / units;
    bool changed = false;
    for (int u = 0; u < units; ++u) {
      if (!settled[u]) frozen.warmup_gradients[u] += (gradients[u] + engine.samples()) * per;
      const int way = acceptance[u] > 0.5 ? 1 : -1;
      if (direction[u] == 0) direction[u] = way;
      if (direction[u] != way) settled[u] = true;  // for good: further trials are for others
      if (settled[u]) continue;
      frozen.step_size[u] *= way > 0 ? 2 : 0.5;
      changed = true;
    }
    if (!changed) break;
  }
  engine.set_position(x);
}

}  // namespace lockstep
