// SPDX-License-Identifier: Apache-2.0
#include "host/runs/chain_run.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "host/engines/sharded_engine.hpp"
#include "host/estimators/estimates.hpp"
#include "host/modes/given_points.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/modes/modes_met.hpp"
#include "host/runs/adapt.hpp"
#include "host/runs/carried_fields.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/recycling.hpp"
#include "host/runs/regeneration_learner.hpp"
#include "host/runs/run.hpp"
#include "kernels/iterations.hpp"

namespace lockstep {
namespace {

/// How many gradients an iteration takes of a unit, of one sample of a chain, by the very function the kernel uses; -1
/// where nobody knows before.
int gradients_of(const RunContext& context, const SamplerConfig& config, const LaunchSpec& launch,
                 const Frozen& f, std::size_t unit, std::int64_t iteration) {
  const double parameters[] = {f.step_size[unit], f.trajectory_time[unit]};
  const int steps = config.transition->known_steps[context.precision == Precision::double_](
      launch, std::uint32_t(iteration), parameters, config.settings.data());
  return steps < 0 ? steps : int(context.with_jump(steps));
}

constexpr double kBetweenRhats = 2;  // seconds: it takes a pass over all sums
[[noreturn]] void refuse_length() {
  throw UserError(
      "--gradients asks for over 2^30 iterations of a chain (the random numbers are not enough). "
      "Give fewer, or more --chains");
}

/// Whether every mean is known to within `se` of its standard deviation.
bool reached(const UnitMoments& moments, double se) {
  const Estimates now = estimate(moments);
  for (std::size_t i = 0; i < now.mean.size(); ++i)
    if (!(now.mean_se[i] < se * std::sqrt(now.variance(int(i))))) return false;
  return true;
}

/// The first number of iterations whose gradients, of one sample, reach a budget.
template <class Gradients>
std::int64_t iterations_for(double budget, Gradients&& gradients) {
  std::int64_t t = 0;
  for (double spent = 0; spent < budget || t == 0; ++t) {
    if (t >= kMostPaid) refuse_length();
    spent += std::max(1, gradients(t));
  }
  return t;
}

RunEnd end_of(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
              const LaunchSpec& launch, const Frozen& f) {
  RunEnd end{std::vector<std::int64_t>(options.units.size(), options.iterations)};
  const double paid = options.gradients * (config.recycle ? 1 - kRecyclingShare : 1);
  if (paid > 0 && gradients_of(context, config, launch, f, 0, 0) < 0)
    end.gradients.assign(options.units.size(), paid);
  const int samples = f.model.pseudo_samples;
  for (std::size_t u = 0; u < end.last.size(); ++u) {
    if (paid > 0) {
      const double before = options.whole_budget ? f.preparation(u) : 0;
      const double left = paid - before, of_one = left / (double(options.chains) * samples);
      if (end.gradients.empty()) {
        end.last[u] = iterations_for(of_one, [&](std::int64_t t) {
          if (t % 65536 == 0) context.tell("warm-up", 1);  // answers Ctrl-C
          return gradients_of(context, config, launch, f, u, t);
        });
      } else {
        end.last[u] = kMostPaid;
        end.gradients[u] = std::max(1.0, left);
      }
    }
    end.last[u] = std::min(end.last[u], options.longest);
  }
  return end;
}

}  // namespace

static ChainRunResult recorded_chains(const RunContext& plain, const SamplerConfig& config,
                                      const ChainRunOptions& options) {
  Stage<Adapted> warm_up(*plain.stages, "warm-up");
  Adapted& adapted = warm_up.done() ? warm_up.result() : warm_up.keep(adapt(plain, config, options));
  const bool jumps = config.mode_jumps && adapted.jumps();
  const RunContext context =
      with_regeneration(with_lists(jumps ? with_jumps(plain, options.units, adapted.modes,
                                                      adapted.frozen.full_base, config.learns_modes())
                                         : plain,
                                   config, options.units, adapted.modes),
                        config, options.units, adapted.modes);
  // Of the model a checkpoint keeps what adaptation may change: the rest is as configured.
  ModelSpec& model = adapted.frozen.model;
  const bool dense_metric = model.dense_metric;
  const int base = model.base;
  model = config.model;
  model.dense_metric = dense_metric;
  model.base = base;
  const Frozen& frozen = adapted.frozen;
  EngineSpec spec = engine_spec(context, frozen.model, options.units, options.chains);
  spec.transition = config.transition;
  spec.settings = {config.settings};
  spec.covariance = options.covariance;
  LaunchSpec launch = options.launch(context, config);
  launch.record = true;
  const RunEnd end = end_of(context, config, options, launch, frozen);

  const int dim = context.target->dim(), quantities = int(context.target->quantities().size());
  Recording recording(config, options, {dim, quantities, options.covariance}, end,
                      int(near_starts(options.init, *context.target).size()), context.threads);
  recording.take_frozen(frozen);
  recording.prepare(spec);
  const auto engine = make_engine(context, spec);
  RunLoop loop{.context = context,
               .engine = *engine,
               .name = "sampling",
               .end = *std::max_element(end.last.begin(), end.last.end()),
               .launch = launch};
  RegenerationLearner learner(context, config, options, adapted.modes);
  const bool taken_up = loop.take_up(recording, learner);
  learner.hand_on(*engine);
  set_frozen(*engine, config, options.units, frozen);
  if (!taken_up) {
    const auto carried = adapted.positions.begin() + std::ptrdiff_t(engine->rows()) * engine->chains();
    engine->set_position({adapted.positions.begin(), carried});
    engine->initialize();
    set_carried_fields(*engine, *config.transition, {carried, adapted.positions.end()});
    adapted.positions = {};
  }
  Clock::time_point looked = loop.clock;
  double spent = 0;  // share of the budget
  while (loop.next() && (spent = recording.end_spent()) < 1) {
    recording.place(loop.launch);
    Launched launched = loop.advance();
    recording.record(launched);
    if (recording.at_boundary()) {
      const bool looks = loop.t % (4 * kChunk) == 0;
      if (looks && options.se > 0 && reached(recording.so_far(), options.se)) break;
      if (looks && options.log_z_se > 0 && recording.log_z(0, frozen).se < 0.9 * options.log_z_se) break;
      learner.update(*engine, loop.t, recording.stat(stat_gradients) / double(options.units.size()));
      loop.save(recording, learner);
    }
    if (!context.progress->tell(loop.stage, std::max(loop.share(), spent))) continue;
    const bool again = seconds_since(looked) > kBetweenRhats;
    if (again) looked = Clock::now();
    context.show({recording.stat(stat_gradients), recording.stat(stat_divergences),
                  again ? worst_rhat(recording.marginal_so_far()) : NAN});
  }
  ChainRunResult result;
  result.followers = context.followers();
  static_cast<Adapted&>(result) = std::move(adapted);
  result.sampling_seconds = loop.seconds();
  result.interrupted = loop.interrupted && recording.end_spent() < 1;
  recording.finish(result);
  if (context.regeneration)
    result.tours = tours_of(engine->fields(), int(options.units.size()), options.chains, dim);
  learner.finish(result);
  return result;
}

/// Where there is one unit, its chains may have come upon more modes; they are not among those that it recycles by, which are
/// to know nothing of its draws.
ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options) {
  ChainRunResult r = recorded_chains(context, config, options);
  if (r.modes.empty() || r.interrupted) return r;
  try {
    if (config.recycle) r.recycled = recycle(context, options.units, r);
    if (options.units.size() > 1) return r;
    const std::vector<double> equally;
    const SearchPlan plan =
        search_plan(options.init_scale, std::max(options.planned, r.units[0].stats[stat_gradients]));
    SearchResult more = with_modes_met(context, options.units[0], plan, r.modes[0],
                                       SeenDraws{r.overview.x(), equally, std::size_t(options.chains)});
    r.frozen.search_gradients[0] += more.gradients - r.modes[0].gradients;
    r.modes[0] = std::move(more);
  } catch (const Interrupted&) {  // the chains are all there
    r.interrupted = true;
  }
  return r;
}

}  // namespace lockstep
