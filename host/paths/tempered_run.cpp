// SPDX-License-Identifier: Apache-2.0
#include "host/paths/tempered_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "host/util/clock.hpp"
#include "host/util/interrupt.hpp"
#include "kernels/tempering.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

constexpr double kLeastRoundTrips = 5;              // of each chain, before its standard errors stop a run
constexpr std::uint32_t kBaseStarts = 0x5FFFFFFFu;  // an iteration number of its own, below the pilot's

/// Control coordinates u at which beta takes these values, one for each chain.
std::vector<double> controls(const StreamKey& key, Control control, const std::vector<double>& beta) {
  std::vector<double> u(beta.size());
  for (std::size_t c = 0; c < beta.size(); ++c) {
    const double b = std::clamp(beta[c], 1e-6, 1 - 1e-6);
    if (control == Control::logistic) {
      u[c] = std::log(b / (1 - b));
      continue;
    }
    const Draw<double> draw{key, 0, std::uint32_t(c), 0};
    const double v = draw.uniform(Purpose::start);
    double low = 0, high = 1;  // the step from 1 to 0, by bisection
    for (int k = 0; k < 40; ++k) {
      const double t = 0.5 * (low + high);
      (1 - t * t * (3 - 2 * t) > b ? low : high) = t;
    }
    u[c] = beta[c] >= 1 ? v - 0.5 : beta[c] <= 0 ? v + 1.5 : 0.5 + low;
  }
  return u;
}

/// beta given x, uniform on [0, 1] a priori.
std::vector<double> redrawn(const StreamKey& key, Engine& engine) {
  const auto cache = engine.cache();
  const int n = engine.chains();
  std::vector<double> beta(n);
  for (int c = 0; c < n; ++c) {
    const Draw<double> draw{key, 0, std::uint32_t(c), 0};
    beta[c] = truncated_exponential(cache[n + c], draw.uniform(Purpose::temper, 1));
  }
  return beta;
}

}  // namespace

bool needs_short_steps(const std::vector<double>& stats, double transitions) {
  return stats[stat_divergences] > 1e-6 * transitions;
}

RunLength::RunLength(const PathRunOptions& o, double per_iteration, std::int64_t least, std::int64_t chunk)
    : total(o.iterations > 0 ? std::int64_t(double(o.iterations) / (1 - o.discard))
                             : std::max(least, std::int64_t(o.gradients / per_iteration))),
      discarded(std::int64_t(o.discard * double(total)) / chunk * chunk) {
  if (o.iterations > 0) total = discarded + o.iterations;
}

void PathRunResult::report(const std::vector<double>& stats, int chains, double initial_gradients) {
  acceptance = stats[stat_acceptance] / (double(chains) * double(iterations));
  divergences = stats[stat_divergences];
  gradients = initial_gradients + stats[stat_gradients];
  round_trips = stats[stat_round_trips];
}

TemperedResult run_tempered(const RunContext& context, const GaussianBase& fitted, const Pilot& pilot,
                            const TemperedOptions& options) {
  const auto clock = Clock::now();
  const bool by_levels = options.tempering == Tempering::levels,
             joint = options.tempering == Tempering::joint;
  // Without weights of its own, beta has both ends equally likely where log zeta is the pilot's log Z.
  GaussianBase base = fitted;
  if (!by_levels) base.log_zeta += pilot.log_z.back();
  const int n = options.chains, groups = options.groups, per = n / groups, levels = int(pilot.ladder.size());
  const int chunk = traced_iterations(n);
  std::vector<std::uint32_t> units(groups);
  std::iota(units.begin(), units.end(), 0u);
  auto engine = base.path_engine(context, units, per, options.covariance, chunk, options.control);
  std::vector<double> log_weight(levels), beta(n), step(n);
  // Level 0 is the base.
  // An eighth of the time at either end, between which chains travel: it is there that estimates are made.
  const bool given = !options.log_weight.empty();
  const double end = by_levels && !given ? std::max(1.0, (levels - 2) / 6.0) : 1;
  const auto level = options.start_at_base ? std::vector<int>(n, 0) : pilot.draw_levels(context.key, n, end);
  for (int k = 0; k < levels; ++k) log_weight[k] = given ? options.log_weight[k] : -pilot.log_z[k];
  log_weight.front() += std::log(end);
  log_weight.back() += std::log(end);
  const auto ladder = engine->set_ladder(pilot.ladder, log_weight, pilot.step_size);
  // Continuous beta has one step size: that of the level where steps are shortest.
  const double shortest = *std::min_element(pilot.step_size.begin(), pilot.step_size.end());
  for (int c = 0; c < n; ++c) {
    beta[c] = ladder[level[c]];
    step[c] = by_levels ? pilot.step_size[level[c]] : shortest;
  }
  engine->set_parameters(ParameterLayout::beta, beta);
  engine->set_parameters(ParameterLayout::step_size, step);
  std::vector<int> seed(n);
  std::iota(seed.begin(), seed.end(), 0);
  auto position =
      options.start_at_base ? base.draws(context.key, kBaseStarts, n, n) : pilot.positions(level, seed);
  TemperedResult out;
  out.draws.limit = options.draw_limit;
  double initial = 0;
  const auto start = [&](const std::vector<double>& control) {
    position.resize(std::size_t(base.dim()) * n);
    if (joint) position.insert(position.end(), control.begin(), control.end());
    engine->set_position(position);
    engine->initialize();
    initial += n;
  };
  start(controls(context.key, options.control, beta));
  if (options.control == Control::logistic)
    start(controls(context.key, options.control, redrawn(context.key, *engine)));
  const double per_iteration = double(n) * options.num_leapfrog;
  const RunLength length(options, per_iteration, 2 * chunk, chunk);
  const std::int64_t total = length.total;
  out.discarded = length.discarded;
  SteppingStones stones(ladder, groups);
  EndpointEvidence ends(groups), half = ends;  // half: since the middle, once it is passed
  std::vector<std::vector<double>> sums(groups, std::vector<double>(engine->moment_layout().rows(), 0.0));
  std::vector<double> stats(kStatRows, 0.0);
  const double prior = by_levels ? log_weight.front() - log_weight.back() : 0;
  const auto value = [&](const EndpointEvidence& e) { return e.value(base.taken_out(), prior); };
  LaunchSpec launch;
  launch.key = context.key;
  launch.num_leapfrog = options.num_leapfrog;
  launch.tempering = options.tempering;
  // The halves that drift is judged by: of the whole run, or, where it may stop before, of what there is,
  // with a middle that moves up whenever as much again has been recorded.
  int halvings = 1;
  const auto after = [&](int halvings) { return out.discarded + ((total - out.discarded) >> halvings); };
  while (options.se > 0 && halvings < 6 && after(halvings + 1) >= out.discarded + chunk) ++halvings;
  Jackknife first_half{NAN, {}};
  std::int64_t t = 0;
  CheckpointPlan plan = options.checkpoint;
  std::vector<double> state;
  double seconds_before = 0;
  const auto fields = [&](Checkpoint& c) {
    c("iteration", t);
    c("halvings", halvings);
    c("state", state);
    c("short_steps", launch.short_steps);
    c("stats", stats);
    c("sums", sums);
    c("stones", stones);
    c("ends", ends);
    c("half", half);
    c("first_half", first_half);
    c("draws", out.draws);
    c("seconds", out.seconds);
  };
  if (plan.resume) {
    plan.load(fields);
    engine->set_state(state);
    seconds_before = out.seconds;
  }
  const Tally tally(context, [&] {
    return RunHealth::Counts{initial + stats[stat_gradients], stats[stat_divergences]};
  });
  while (t < total) {
    const std::int64_t boundary = t < out.discarded     ? out.discarded
                                  : t < after(halvings) ? after(halvings)
                                                        : after(halvings - 1);
    const std::int64_t next = std::min(t + chunk, boundary);
    launch.begin = std::uint32_t(t);
    launch.end = std::uint32_t(next);
    launch.record = t >= out.discarded;
    engine->advance(launch);
    const auto s = engine->take_stats();
    for (int r = 0; r < kStatRows; ++r)
      for (int c = 0; c < n; ++c) stats[r] += s[std::size_t(r) * n + c];
    if (launch.record) {
      const auto trace = engine->trace();
      const std::size_t padded = engine->padded_chains();
#pragma omp parallel for num_threads(context.threads) schedule(static, 1)
      for (int g = 0; g < groups; ++g)  // one thread's: the same bits for any number of them
        for (std::int64_t i = 0; i < next - t; ++i)
          for (int c = g * per; c < (g + 1) * per; ++c)
            stones.add(g, trace[2 * i * padded + c], trace[(2 * i + 1) * padded + c]);
      if (options.draws) out.draws.add(*engine, options.control);
      const auto m = engine->take_moments();
      for (std::size_t r = 0; r < sums[0].size(); ++r)
        for (int c = 0; c < n; ++c) sums[c / per][r] += m[r * n + c];
      for (int c = 0; c < n; ++c)
        for (EndpointEvidence* e : {&ends, &half})
          e->add(c / per, m[std::size_t(MomentLayout::count) * n + c],
                 s[std::size_t(stat_base_weight) * n + c]);
    }
    t = next;
    if (t == out.discarded) launch.short_steps = needs_short_steps(stats, double(n) * double(t));
    if (t == after(halvings - 1) && t < total) --halvings;
    if (t == after(halvings)) {
      first_half = value(ends);
      half = EndpointEvidence(groups);
    }
    context.progress("sampling", double(t) / double(total));
    out.interrupted = t < total && interrupted();
    if (t < total && plan.due(out.interrupted)) {
      state = engine->state();
      out.seconds = seconds_before + seconds_since(clock);
      plan.save(fields);
    }
    if (out.interrupted) break;
    const std::int64_t halves =
        after(halvings) - out.discarded;  // the second is at least a quarter of the first
    if (options.se > 0 && 4 * (t - after(halvings)) >= halves && t > after(halvings) &&
        (t - after(halvings)) % (8 * chunk) == 0 && double(t) * per_iteration >= options.least &&
        stats[stat_round_trips] >= kLeastRoundTrips * n && value(ends).value().se < 0.9 * options.se)
      break;
  }
  out.iterations = t;
  out.drift = t > after(halvings) ? split_half_drift(first_half, value(half)) : LogZ{NAN, NAN};
  out.ends = value(ends).value();
  out.stepping = stones.value(base.taken_out()).value();
  out.moments = weighted_moments(engine->moment_layout(), sums);
  out.report(stats, n, initial);
  out.seconds = seconds_before + seconds_since(clock);
  return out;
}

}  // namespace lockstep
