// SPDX-License-Identifier: Apache-2.0
#include "host/paths/annealing.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/state_moments.hpp"
#include "host/util/clock.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

/// Of the target, [axis][chain].
std::vector<double> exact_draws(const RunContext& context, int chains) {
  const int d = context.target->dim();
  std::vector<double> x(std::size_t(d) * chains), one(d);
  for (int c = 0; c < chains; ++c) {
    ExactDraw exact(context.key, std::uint64_t(c));
    context.target->draw(exact, one.data());
    for (int i = 0; i < d; ++i) x[std::size_t(i) * chains + c] = one[i];
  }
  return x;
}

}  // namespace

AnnealedChains anneal_chains(const RunContext& context, Engine& engine, Annealing how,
                             const std::vector<double>& start) {
  std::vector<double>&ladder = how.ladder, &step_size = how.step_size;
  if (how.reverse) {
    std::reverse(ladder.begin(), ladder.end());
    std::reverse(step_size.begin(), step_size.end());
  }
  ladder = engine.set_ladder(ladder, std::vector<double>(ladder.size(), 0.0), step_size);
  // Transitions at the inner levels; the last step of beta is the host's.
  const int n = engine.chains(), inner = int(ladder.size()) - 2;
  RunLoop loop{.context = context, .engine = engine, .name = "annealing", .end = inner};
  loop.stage = how.stage;
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = how.num_leapfrog;
  loop.launch.jitter = how.num_leapfrog > 1;
  loop.launch.tempering = Tempering::anneal;
  loop.launch.backwards = how.reverse;  // Bennett's ratio is of a path and the same one backwards
  if (!loop.take_up()) {
    set_per_unit(engine, ParameterLayout::beta, {ladder.front()});
    set_per_unit(engine, ParameterLayout::step_size, {step_size.front()});
    engine.set_position(start);
    engine.initialize();
  }
  while (loop.next()) {
    loop.launch.end = std::uint32_t(std::min<std::int64_t>(loop.t + how.chunk, inner));
    loop.launch.first_level = int(loop.t) + 1;
    loop.advance();
    if (how.saves) loop.save();
    loop.tell();
  }
  AnnealedChains out{std::vector<double>(n), engine.take_stats()};
  const auto cache = engine.cache(), beta = engine.beta();
  for (int c = 0; c < n; ++c) {
    const double last = (beta[c] - ladder.back()) * cache[n + c];
    out.log_weight[c] = out.stats[std::size_t(stat_log_weight) * n + c] + last;
    if (!std::isfinite(out.log_weight[c])) out.log_weight[c] = -INFINITY;
  }
  return out;
}

AnnealingResult anneal(const RunContext& context, const PathBase& base, const AnnealingOptions& options) {
  const auto clock = Clock::now();
  const int n = options.runs, inner = int(options.ladder.size()) - 2;
  // Units 0 and 1: forward and reverse runs draw from streams of their own.
  auto engine = base.path_engine(context, {options.reverse ? 1u : 0u}, n);
  AnnealedChains chains =
      anneal_chains(context, *engine,
                    {options.ladder, options.step_size, options.num_leapfrog, options.reverse,
                     options.reverse ? "annealing back" : "annealing"},
                    options.reverse ? exact_draws(context, n) : base.draws(context.key, 0, n, n));
  AnnealingResult out;
  out.gradients = n;
  out.log_weight = std::move(chains.log_weight);
  for (int c = 0; c < n; ++c) {
    out.acceptance += chains.stats[std::size_t(stat_acceptance) * n + c] / (double(n) * std::max(inner, 1));
    out.divergences += chains.stats[std::size_t(stat_divergences) * n + c];
    out.gradients += chains.stats[std::size_t(stat_gradients) * n + c];
  }
  if (!options.reverse) {
    const double most = *std::max_element(out.log_weight.begin(), out.log_weight.end());
    std::vector<double> weight(n);
    for (int c = 0; c < n; ++c) weight[c] = std::exp(out.log_weight[c] - most);
    out.position = engine->position();
    out.moments =
        moments_of_states(*context.target, out.position, weight, options.groups, options.covariance);
  }
  out.seconds = seconds_since(clock);
  return out;
}

}  // namespace lockstep
