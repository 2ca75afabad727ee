// SPDX-License-Identifier: Apache-2.0
#include "host/commands/item_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "host/commands/item_report.hpp"
#include "host/commands/summary.hpp"
#include "host/engines/checkpoint.hpp"
#include "host/estimators/annealed_weights.hpp"
#include "host/paths/base_fit.hpp"
#include "host/runs/run_context.hpp"
#include "host/util/clock.hpp"
#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "host/util/interrupt.hpp"
#include "host/util/processes.hpp"
#include "kernels/random_stream.hpp"

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

/// What the runs of a batch of items came to; back: of annealing both ways.
struct BatchFound {
  std::vector<WeightSummary> bound;  // [item]
  ItemRuns forward = {}, back = {};
};

std::vector<WeightSummary> summaries(const ItemRuns& r, int items) {
  const int runs = int(r.log_weight.size()) / items;
  std::vector<WeightSummary> all;
  all.reserve(std::size_t(items));
  for (int i = 0; i < items; ++i) all.push_back(summarise_weights(part(r.log_weight, i, runs)));
  return all;
}

/// Item `i` of the batch as the next row.
void add_item(ItemTable& table, const ItemConfig& c, const BatchFound& found, int i) {
  const WeightSummary& bound = found.bound[i];
  const ItemRuns& forward = found.forward;
  LogZ z = bound.log_mean, lower = z, upper{NAN, NAN};
  double ess = bound.ess, reverse_ess = NAN;
  if (c.tempers()) {
    z = forward.log_z[i];
    lower = {NAN, NAN};
    ess = NAN;
  } else if (c.moves()) {
    const WeightSummary f = summarise_weights(part(forward.log_weight, i, c.runs));
    z = lower = f.log_mean;
    ess = f.ess;
  }
  if (c.of->both_ways) {
    const auto up = part(forward.log_weight, i, c.runs), down = part(found.back.log_weight, i, c.runs);
    const WeightSummary r = summarise_weights(down);
    upper = {-r.log_mean.estimate, r.log_mean.se};
    reverse_ess = r.ess;
    const LogZ bennett = bennett_acceptance_ratio(up, down);
    if (std::isfinite(bennett.estimate))
      z = with_larger_error(bennett, bennett_bootstrap_se(up, down, 50), c.runs);
  }
  table.bound.push_back(bound.log_mean.estimate);
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
  table.acceptance.push_back(c.moves() ? forward.acceptance[i] : NAN);
}

/// Adds a batch of items to the table.
void run_items(const RunContext& outer, const ItemConfig& c, const ItemPilot& pilot,
               const std::vector<std::uint32_t>& items, ItemTable& table) {
  RunContext context = outer;  // has behind it what its parts have done
  const auto counted = [&](ItemRuns r) {
    table.gradients += r.gradients;
    table.divergences += r.divergences;
    context.before.gradients += r.gradients;
    context.before.divergences += r.divergences;
    return r;
  };
  const int n = int(items.size());
  ItemBatch batch{items, c.runs, c.base == "prior"};
  const ItemBatch few{items, 4, batch.prior}, many{items, c.bound_draws, batch.prior};
  BatchFound found{summaries(counted(importance_bound(with_own_numbers(context, "bound"), many)), n)};
  ItemSchedule schedule;
  if (c.moves()) schedule = pilot.on(c.ladder(pilot.barrier()), c.num_leapfrog);
  if (c.tempers()) {
    // The guess of log Z that makes both ends of the path equally likely: a short annealing.
    const ItemSchedule quick =
        pilot.on(pilot.barrier().equal_ladder(std::max(50, c.steps / 20)), c.num_leapfrog);
    const auto guess =
        summaries(counted(anneal_items(with_own_numbers(context, "guess"), few, quick, false)), n);
    for (int i = 0; i < n; ++i)
      batch.log_zeta.push_back(  // as the engine holds it
          float(std::max(guess[i].log_mean.estimate, found.bound[i].log_mean.estimate)));
    found.forward = counted(temper_items(context, batch, schedule, c.of->tempering, c.steps, c.discard));
  } else if (c.moves()) {
    found.forward = counted(anneal_items(context, batch, schedule, false));
  }
  if (c.of->both_ways)
    found.back = counted(anneal_items(with_own_numbers(context, "reverse"), batch, schedule, true));
  for (int i = 0; i < n; ++i) add_item(table, c, found, i);
}

/// Rounds of items, `per` of them at a time, until all are done or somebody wants to stop: what is found.
/// `clock`: since when time counts.
ItemRun run_rounds(RunContext& context, const ItemConfig& c, const ItemPilot& pilot, int per,
                   CheckpointPlan& plan, Clock::time_point clock) {
  const Processes& processes = Processes::all();
  const int count = context.target->items()->count;
  ItemRun all;
  if (plan.resume) plan.load(all);
  all.seconds_before = all.seconds;
  int done = all.table.done();
  while (done < count && !all.interrupted) {
    std::vector<std::uint32_t> which(std::min(per, count - done));
    std::iota(which.begin(), which.end(), std::uint32_t(done));
    context.before = {all.table.gradients, all.table.divergences};
    context.progress->begin({.name = "images",
                             .when_last = "the last images (again: stop at once)",
                             .begin = double(done) / count,
                             .end = double(done + int(which.size())) / count,
                             // There, and back or with a guess to begin with.
                             .ways = c.of->both_ways || c.tempers() ? 2 : 1});
    try {
      ItemTable table = all.table;
      run_items(context, c, pilot, which, table);
      all.table = std::move(table);
    } catch (const Interrupted&) {
      if (done == 0) throw;  // what earlier rounds have found is saved
    }
    done = all.table.done();
    all.seconds += seconds_since(clock);
    clock = Clock::now();
    all.interrupted = done < count && processes.interrupted();
    if (done < count && plan.due(all.interrupted)) plan.save(all);
  }
  return all;
}

}  // namespace

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
  RunFiles files = open_run(run, target, c.effective);
  if (files.finished) return from_json<ItemResult>(*files.finished);
  say_device(run, context);
  check_memory(memory, run.quiet);
  context.progress = progress_printer(run.quiet, run.target);
  const auto clock = Clock::now();
  ItemPilot pilot;
  if (c.moves())
    pilot = run_item_pilot(with_own_numbers(context, "pilot"), c.base == "prior", c.num_leapfrog,
                           c.target_acceptance, c.step_size);
  const ItemRun found = run_rounds(context, c, pilot, per, files.checkpoint, clock);
  if (label.empty() && !Processes::all().first()) throw FirstSpeaks();  // in a study all go on
  ItemResult s = result_of_items(run, context, c, pilot, found);
  s.cost.wall = found.seconds_before + seconds_since(start);
  s = settled(s);
  save_items(s, files, run, *target.items(), found.table);
  return s;
}

}  // namespace lockstep
