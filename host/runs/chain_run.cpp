// SPDX-License-Identifier: Apache-2.0
#include "host/runs/chain_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "host/estimators/estimates.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/starts.hpp"
#include "host/util/clock.hpp"
#include "host/util/interrupt.hpp"
#include "kernels/transitions.hpp"

namespace lockstep {
namespace {

/// Gradients of each iteration of a unit, by the very function the kernel uses.
template <class R>
double iteration_gradients(const LaunchSpec& spec, std::uint32_t iteration, double step_size, double time,
                           int samples) {
  R par[2] = {static_cast<R>(step_size), static_cast<R>(time)}, jitter;
  return double(num_steps<R>(spec, iteration, Rows<R>{par, 1}, jitter)) * samples;
}

/// The first number of iterations whose gradients reach the budget.
std::int64_t iterations_for(const RunContext& context, const LaunchSpec& spec, const Frozen& f,
                            std::size_t unit, int samples, int chains, double budget) {
  double spent = 0;
  std::int64_t t = 0;
  while (spent < budget || t == 0) {
    if (t >= (std::int64_t(1) << 30))
      throw UserError(
          "--gradients asks for over 2^30 iterations of a chain (the random numbers are not enough). "
          "Give fewer, or more --chains");
    if (t % 65536 == 0) context.progress("warm-up", 1);  // answers Ctrl-C
    spent += chains *
             (context.precision == Precision::full
                  ? iteration_gradients<double>(spec, t, f.step_size[unit], f.trajectory_time[unit], samples)
                  : iteration_gradients<float>(spec, t, f.step_size[unit], f.trajectory_time[unit], samples));
    ++t;
  }
  return t;
}

/// Whether every mean is known to within `se` of its standard deviation.
bool reached(const UnitMoments& moments, double se) {
  const Estimates now = estimate(moments);
  for (std::size_t i = 0; i < now.mean.size(); ++i)
    if (!(now.mean_se[i] < se * std::sqrt(now.variance(int(i))))) return false;
  return true;
}

}  // namespace

ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options) {
  ChainRunResult result;
  CheckpointPlan plan = options.checkpoint;
  std::vector<double> positions, state;
  std::vector<int> superchain;
  std::int64_t t = 0;
  std::optional<Checkpoint> saved;
  const auto start_fields = [&](Checkpoint& c) {
    c("frozen", result.frozen);
    c("warmup", result.warmup);
    c("warmup_step_size", result.warmup_step_size);
    c("superchain", superchain);
    c("warmup_seconds", result.warmup_seconds);
    c("sampling_seconds", result.sampling_seconds);
    c("iteration", t);
    c("state", state);
  };
  auto clock = Clock::now();
  if (plan.resume) {
    saved.emplace(plan.file, plan.identity);
    result.frozen.model = config.model;
    start_fields(*saved);
  } else {
    adapt(context, config, options, result, positions, superchain);
    result.warmup_seconds = seconds_since(clock);
  }

  const std::size_t num_units = options.units.size();
  EngineSpec spec = engine_spec(context, result.frozen.model, options.units, options.chains);
  spec.transition = config.transition;
  spec.covariance = options.covariance;
  const int samples =
      result.frozen.model.kind == ModelKind::pseudo_extended ? result.frozen.model.pseudo_samples : 1;
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = config.num_leapfrog;
  launch.jitter = config.jitter;
  launch.record = true;
  std::vector<std::int64_t> last(num_units, options.iterations);
  const auto budget = [&](std::size_t u) {
    const Frozen& f = result.frozen;
    return options.gradients - (options.whole_budget ? f.scout_gradients[u] + f.warmup_gradients[u] : 0);
  };
  if (options.gradients > 0)
    for (std::size_t u = 0; u < num_units; ++u)
      last[u] = iterations_for(context, launch, result.frozen, u, samples, options.chains, budget(u));
  for (std::int64_t& t_end : last) t_end = std::min(t_end, options.longest);
  const std::int64_t end = *std::max_element(last.begin(), last.end());

  const int quantities = int(context.target->quantities().size());
  Recording recording(config, options, {context.target->dim(), quantities, options.covariance}, last,
                      int(read_starts(options.init, context.target->dim()).size()));
  recording.prepare(spec);
  auto engine = context.target->engine(spec);
  set_frozen(*engine, config, result.frozen);
  if (saved) {
    engine->set_state(state);
  } else {
    engine->set_position(positions);
    engine->initialize();
  }

  clock = Clock::now();
  const double seconds_before = result.sampling_seconds;
  if (saved) (*saved)("recording", recording);
  saved.reset();
  std::int64_t since = t;  // where the engine's running sums begin
  const Tally tally(
      context,
      [&] {
        return RunHealth::Counts{recording.stat(stat_gradients), recording.stat(stat_divergences)};
      },
      [&] { return worst_rhat(recording.marginal_so_far()); });
  while (t < end) {
    // Up to the next chunk boundary, the next unit's end, or where no more draws can be stored.
    const std::int64_t length = launch_length(t);
    std::int64_t next = std::min(end, (t / length + 1) * length);
    for (std::int64_t e : last)
      if (e > t) next = std::min(next, e);
    launch.begin = std::uint32_t(t);
    launch.end = std::uint32_t(next);
    recording.place(launch);
    next = launch.end;
    engine->advance(launch);
    // Sums run on over launches that were cut short for somebody else's sake, so that not one bit depends on
    // company; and a run stops at boundaries only, so that none depends on an interruption.
    const bool whole = next % length == 0, boundary = whole || next == end;
    if (boundary || std::find(last.begin(), last.end(), next) != last.end())
      recording.add_sums(*engine, since, next, boundary);
    if (boundary) since = next;
    recording.add_draws(*engine);
    if (whole) recording.add_evidence(*engine, next - length, next);
    t = next;
    context.progress("sampling", double(t) / end);
    if (!boundary) continue;
    if (t % (4 * kChunk) == 0) {
      if (options.se > 0 && reached(recording.so_far(), options.se)) break;
      if (options.log_z_se > 0 && recording.log_z(0, result.frozen).se < 0.9 * options.log_z_se) break;
    }
    result.interrupted = t < end && interrupted();
    if (t < end && plan.due(result.interrupted)) {
      state = engine->state();
      result.sampling_seconds = seconds_before + seconds_since(clock);
      plan.save([&](Checkpoint& c) {
        start_fields(c);
        c("recording", recording);
      });
    }
    if (result.interrupted) break;
  }
  result.sampling_seconds = seconds_before + seconds_since(clock);
  recording.finish(result, superchain);
  return result;
}

}  // namespace lockstep
