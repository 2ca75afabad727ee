// SPDX-License-Identifier: Apache-2.0
#include "host/commands/item_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "host/commands/item_report.hpp"
#include "host/commands/sample.hpp"
#include "host/commands/summary.hpp"
#include "host/estimators/annealed_weights.hpp"
#include "host/paths/base_fit.hpp"
#include "host/runs/checkpoint.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"

namespace lockstep {
namespace {

std::vector<double> part(const std::vector<double>& all, int item, int runs) {
  return {all.begin() + std::ptrdiff_t(item) * runs, all.begin() + std::ptrdiff_t(item + 1) * runs};
}

/// Of a batch of `per` items.
MemoryPlan memory_of(const RunContext& context, const ItemConfig& c, int per) {
  const TargetInstance& target = *context.target;
  const double values = double(target.items()->values.size());
  RunSize size;
  size.dim = target.dim();
  size.chains = std::int64_t(per) * std::max(c.runs, c.bound_draws);
  size.iterations = 0;  // sums are kept by image
  MemoryPlan memory = planned_memory(context, {.kind = ModelKind::path}, size);
  memory.host += 28.0 * values * Processes::all().here();  // in three precisions, and as read
  if (context.cuda)  // what the products hold: positions, gradients and log densities, layers, a workspace
    memory.device +=
        double(size.chains) / context.shards * (8.0 * size.dim + 40) + 64 * 1048576.0 + 12.0 * values;
  return memory;
}

/// Rounds of items, `per` of them at a time, until all are done or somebody wants to stop. `clock`: since when
/// time counts.
struct Rounds {
  const ItemConfig& config;
  const ItemPilot& pilot;
  int per;
  CheckpointPlan plan;
  std::function<void(const std::string&, double)> print;
  Clock::time_point clock;

  int way = 0;        // of the round that is shown
  double before = 0;  // what of it was done

  /// What is found.
  ItemRun run(RunContext& context);
  /// Progress of one round, whose items follow `done` others.
  void show(RunContext& context, int done, int round_end);
};

void Rounds::show(RunContext& context, int done, int round_end) {
  // A round goes its way once or, where there is a way back or a guess to begin with, twice.
  const int ways = config.method == "bdmc" || config.tempers() ? 2 : 1,
            count = context.target->items()->count;
  way = 0;
  before = 0;
  context.progress = [=, this](const std::string&, double share) {
    Processes& processes = Processes::all();
    processes.agree();
    if (processes.terminated()) throw Interrupted();
    if (share < before) way = std::min(way + 1, ways - 1);
    before = share;
    const double of_round = (way + share) / ways, items_done = done + (round_end - done) * of_round;
    print(processes.interrupted() ? "the last images (again: stop at once)" : "images", items_done / count);
  };
}

ItemRun Rounds::run(RunContext& context) {
  const Processes& processes = Processes::all();
  const int count = context.target->items()->count;
  ItemRun all;
  if (plan.resume) plan.load([&](Checkpoint& archive) { all.fields(archive); });
  const Tally tally(context, [&] { return RunHealth::Counts{all.table.gradients, all.table.divergences}; });
  int done = all.table.done();
  while (done < count && !all.interrupted) {
    std::vector<std::uint32_t> which(std::min(per, count - done));
    std::iota(which.begin(), which.end(), std::uint32_t(done));
    show(context, done, done + int(which.size()));
    try {
      run_items(context, config, pilot, which, all.table);
    } catch (const Interrupted&) {
      if (done == 0) throw;  // what earlier rounds have found is saved
    }
    done = all.table.done();
    all.seconds += seconds_since(clock);
    clock = Clock::now();
    all.interrupted = done < count && processes.interrupted();
    if (done < count && plan.due(all.interrupted))
      plan.save([&](Checkpoint& archive) { all.fields(archive); });
  }
  return all;
}

}  // namespace

void run_items(const RunContext& context, const ItemConfig& c, const ItemPilot& pilot,
               std::vector<std::uint32_t> items, ItemTable& table) {
  double gradients = 0, divergences = 0;
  const auto count = [&](const ItemRuns& r) {
    gradients += r.gradients;
    divergences += r.divergences;
  };
  const Tally tally(context, [&] { return RunHealth::Counts{gradients, divergences}; });
  const bool prior = c.base == "prior";
  const ItemRuns bounds = importance_bound(with_own_numbers(context, "bound"), {items, c.bound_draws, prior});
  count(bounds);
  std::vector<WeightSummary> bound;
  for (int i = 0; i < int(items.size()); ++i)
    bound.push_back(summarise_weights(part(bounds.log_weight, i, c.bound_draws)));
  const ItemBatch batch{items, c.runs, prior};
  ItemRuns forward, back;
  ItemSchedule schedule;
  if (c.method != "bound") schedule = pilot.on(c.ladder(pilot.barrier()), c.num_leapfrog);
  if (c.tempers()) {
    // The guess of log Z that makes both ends of the path equally likely: a short annealing.
    const int short_steps = std::max(50, c.steps / 20);
    const ItemBatch few{items, 4, prior};
    const ItemRuns guess =
        anneal_items(with_own_numbers(context, "guess"), few,
                     pilot.on(pilot.barrier().equal_ladder(short_steps), c.num_leapfrog), false);
    count(guess);
    ItemBatch tempered = batch;
    for (std::size_t i = 0; i < items.size(); ++i)
      tempered.log_zeta.push_back(  // as the engine holds it
          float(std::max(summarise_weights(part(guess.log_weight, int(i), 4)).log_mean.estimate,
                         bound[i].log_mean.estimate)));
    forward = temper_items(context, tempered, schedule,
                           c.method == "st"         ? Tempering::levels
                           : c.method == "ct-gibbs" ? Tempering::gibbs
                                                    : Tempering::joint,
                           c.steps, c.discard);
  } else if (c.method != "bound") {
    forward = anneal_items(context, batch, schedule, false);
  }
  if (c.method == "bdmc") back = anneal_items(with_own_numbers(context, "reverse"), batch, schedule, true);
  count(forward);
  count(back);
  table.gradients += gradients;
  table.divergences += divergences;
  for (int i = 0; i < int(items.size()); ++i) {
    table.bound.push_back(bound[i].log_mean.estimate);
    LogZ z = bound[i].log_mean, lower = z, upper{NAN, NAN};
    double ess = bound[i].ess, reverse_ess = NAN;
    if (c.tempers()) {
      z = forward.log_z[i];
      lower = {NAN, NAN};
      ess = NAN;
    } else if (c.method != "bound") {
      const WeightSummary f = summarise_weights(part(forward.log_weight, i, c.runs));
      z = lower = f.log_mean;
      ess = f.ess;
    }
    if (c.method == "bdmc") {
      const auto up = part(forward.log_weight, i, c.runs), down = part(back.log_weight, i, c.runs);
      const WeightSummary r = summarise_weights(down);
      upper = {-r.log_mean.estimate, r.log_mean.se};
      reverse_ess = r.ess;
      const LogZ bennett = bennett_acceptance_ratio(up, down);
      if (std::isfinite(bennett.estimate))
        z = with_larger_error(bennett, bennett_bootstrap_se(up, down, 50), c.runs);
    }
    table.log_z.push_back(z.estimate);
    table.se.push_back(z.se);
    table.unscaled_se.push_back(z.unscaled_se);
    table.df.push_back(z.df);
    table.lower.push_back(lower.estimate);
    table.lower_se.push_back(lower.se);
    table.upper.push_back(upper.estimate);
    table.upper_se.push_back(upper.se);
    table.ess.push_back(ess);
    table.reverse_ess.push_back(reverse_ess);
    table.round_trips.push_back(c.tempers() ? forward.round_trips[i] : NAN);
    table.drift.push_back(c.tempers() ? forward.drift[i] : NAN);
    table.acceptance.push_back(c.method == "bound" ? NAN : forward.acceptance[i]);
  }
}

LogZ mean_over_items(const std::vector<double>& values) {
  const double n = double(values.size()), mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double square = 0;
  for (double v : values) square += (v - mean) * (v - mean);
  return {mean, n > 1 ? std::sqrt(square / (n - 1) / n) : NAN};
}

std::array<double, 2> interval_over_items(const std::vector<double>& values) {
  constexpr int kResamples = 1000;
  std::mt19937_64 random(1);  // its sequence is fixed by the standard, those of distributions are not
  std::vector<double> mean(kResamples, 0.0);
  for (double& m : mean)
    for (std::size_t i = 0; i < values.size(); ++i)
      m += values[random() % values.size()] / double(values.size());
  std::sort(mean.begin(), mean.end());
  return {mean[kResamples / 40], mean[kResamples - 1 - kResamples / 40]};
}

ItemResult item_evidence(const RunOptions& run, const TargetInstance& target, const std::string& label) {
  const auto start = Clock::now();
  const ItemConfig c = item_config(run, *target.items());
  RunContext context = make_context(run, target, label);
  // Two blocks of the matrix products for every thread, or enough chains to fill a GPU: few enough to be lost
  // when interrupted.
  const int at_once = context.cuda ? context.shards << 16 : 2 * 192 * context.all_threads,
            per = std::clamp(at_once / c.runs, 1, target.items()->count);
  const MemoryPlan memory = memory_of(context, c, per);
  check_memory(memory, true);
  const RunFiles files = open_run(run, target, c.effective);
  if (files.finished) return from_json<ItemResult>(*files.finished);
  say_device(run, context);
  check_memory(memory, run.quiet);
  const auto print = progress_printer(run.quiet, run.target, context.health);
  const auto clock = Clock::now();
  context.progress = [show = interruptible(print)](const std::string&, double share) {
    show("pilot", share);
  };
  ItemPilot pilot;
  if (c.method != "bound")
    pilot = run_item_pilot(with_own_numbers(context, "pilot"), c.base == "prior", c.num_leapfrog,
                           c.target_acceptance, c.step_size);
  Rounds rounds{c, pilot, per, files.checkpoint, print, clock};
  const ItemRun found = rounds.run(context);
  if (label.empty() && !Processes::all().first()) throw FirstSpeaks();  // in a study all go on
  ItemResult s = result_of_items(run, context, c, pilot, found);
  s.cost.wall = seconds_since(start);
  s = settled(s);
  save_items(s, files, run, *target.items(), found.table);
  return s;
}

}  // namespace lockstep
