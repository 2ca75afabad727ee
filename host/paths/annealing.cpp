// SPDX-License-Identifier: Apache-2.0
#include "host/paths/annealing.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/state_moments.hpp"
#include "host/util/clock.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

constexpr int kBlocks = 32;  // of runs, which are independent: what errors and drifts are judged by

/// Means over blocks of chains as they came to the last level.
struct Arrived {
  BlockMeans means;
  template <class Archive>
  void fields(Archive& archive) {
    archive("means", means);
  }
};

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
  // Transitions at the inner levels, and at as many copies of the last as they linger; the last step of beta is the host's.
  const int n = engine.chains(), inner = int(ladder.size()) - 2, end = inner + how.linger;
  ladder.insert(ladder.end(), how.linger, ladder.back());
  step_size.insert(step_size.end(), how.linger, 0.25 * step_size.back());
  ladder = engine.set_ladder(ladder, std::vector<double>(ladder.size(), 0.0), step_size);
  RunLoop loop{.context = context, .engine = engine, .name = "annealing", .end = end};
  loop.stage = how.stage;
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = how.num_leapfrog;
  loop.launch.jitter = how.num_leapfrog > 1;
  loop.launch.tempering = Tempering::anneal;
  loop.launch.backwards = how.reverse;  // Bennett's ratio is of a path and the same one backwards
  /// Up to now, and with the step that is left.
  const auto log_weights = [&](const std::vector<double>& stats) {
    const auto cache = engine.cache(), beta = engine.beta();
    std::vector<double> log_weight(n);
    for (int c = 0; c < n; ++c) {
      const double v = stats[std::size_t(stat_log_weight) * n + c] + (beta[c] - ladder.back()) * cache[n + c];
      log_weight[c] = std::isfinite(v) ? v : -INFINITY;
    }
    return log_weight;
  };
  const auto means = [&](const std::vector<double>& log_weight, const BlockMeans& about) {
    const auto cache = engine.cache();
    return block_means(*context.target, engine.position(), {cache.begin() + n, cache.begin() + 2 * n},
                       log_weight, std::min<std::size_t>(kBlocks, n), about);
  };
  Arrived arrived;
  if (!loop.take_up(arrived)) {
    set_per_unit(engine, ParameterLayout::beta, {ladder.front()});
    set_per_unit(engine, ParameterLayout::step_size, {step_size.front()});
    engine.set_position(start);
    engine.initialize();
  }
  while (loop.next()) {
    loop.launch.end = std::uint32_t(std::min<std::int64_t>(loop.t + how.chunk, loop.t < inner ? inner : end));
    loop.launch.first_level = int(loop.t) + 1;
    if (loop.t == inner) arrived.means = means(log_weights(engine.stats(false)), {});
    if (loop.t >= inner) loop.launch.num_leapfrog = kLingerLeapfrog, loop.launch.jitter = true;
    loop.advance();
    if (how.saves) loop.save(arrived);
    loop.tell();
  }
  AnnealedChains out{{}, engine.take_stats(), std::move(arrived.means)};
  out.log_weight = log_weights(out.stats);
  if (out.drift.empty()) return out;
  const auto now = means(out.log_weight, out.drift);
  for (std::size_t r = 0; r < now.size(); ++r)
    for (std::size_t b = 0; b < now[r].size(); ++b) out.drift[r][b] = now[r][b] - out.drift[r][b];
  return out;
}

AnnealingResult anneal(const RunContext& context, const PathBase& base, const AnnealingOptions& options) {
  const auto clock = Clock::now();
  const int n = options.runs, linger = options.reverse ? 0 : options.linger,
            moves = int(options.ladder.size()) - 2 + linger;
  // Units 0 and 1: forward and reverse runs draw from streams of their own.
  auto engine = base.path_engine(context, {options.reverse ? 1u : 0u}, n);
  AnnealedChains chains =
      anneal_chains(context, *engine,
                    {.ladder = options.ladder,
                     .step_size = options.step_size,
                     .num_leapfrog = options.num_leapfrog,
                     .reverse = options.reverse,
                     .stage = options.reverse ? "annealing back" : "annealing",
                     .linger = linger},
                    options.reverse ? exact_draws(context, n) : base.draws(context.key, 0, n, n));
  AnnealingResult out;
  out.gradients = n;
  out.log_weight = std::move(chains.log_weight);
  out.drift = std::move(chains.drift);
  for (int c = 0; c < n; ++c) {
    out.acceptance += chains.stats[std::size_t(stat_acceptance) * n + c] / (double(n) * std::max(moves, 1));
    out.divergences += chains.stats[std::size_t(stat_divergences) * n + c];
    out.gradients += chains.stats[std::size_t(stat_gradients) * n + c];
  }
  if (!options.reverse) {
    const double most = *std::max_element(out.log_weight.begin(), out.log_weight.end());
    std::vector<double> weight(n);
    for (int c = 0; c < n; ++c) weight[c] = std::exp(out.log_weight[c] - most);
    out.position = engine->position();
    out.moments =
        moments_of_states(*context.target, out.position, weight, std::min(kBlocks, n), options.covariance);
  }
  out.seconds = seconds_since(clock);
  return out;
}

}  // namespace lockstep
