// SPDX-License-Identifier: Apache-2.0
#include "host/commands/item_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <type_traits>

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
#ifdef LOCKSTEP_CUDA
#include "targets/cuda_device.hpp"
#endif

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::vector<double> part(const std::vector<double>& all, int item, int runs) {
  return {all.begin() + std::ptrdiff_t(item) * runs, all.begin() + std::ptrdiff_t(item + 1) * runs};
}

/// Items that a process takes in a round: of as many as all have room for, or of what is left, in proportion
/// to its room, in order of rank.
struct Share {
  int first, last, round_end;
};
Share share_of_round(const std::vector<double>& room, int rank, int done, int count) {
  const double all = std::accumulate(room.begin(), room.end(), 0.0),
               before = std::accumulate(room.begin(), room.begin() + rank, 0.0),
               taken = std::min(all, double(count - done));
  const auto end = [&](double part) { return done + int(taken * part / all); };
  return {end(before), end(before + room[rank]), end(all)};
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

std::vector<double> ItemTable::numbers() const {
  std::vector<double> all = {double(done())};
  const auto add = [&](const char*, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>)
      all.push_back(value);
    else
      all.insert(all.end(), value.begin(), value.end());
  };
  ItemTable(*this).fields(add);
  return all;
}

void ItemTable::append(const std::vector<double>& numbers) {
  const auto count = std::ptrdiff_t(numbers[0]);
  auto at = numbers.begin() + 1;
  const auto add = [&](const char*, auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      value += *at++;
    } else {
      value.insert(value.end(), at, at + count);
      at += count;
    }
  };
  fields(add);
}

Json item_evidence(const RunOptions& run, const TargetInstance& target, bool& was_interrupted,
                   const std::string& label) {
  const auto start = Clock::now();
  const Items& items = *target.items();
  const ItemConfig c = item_config(run, items);
  Processes& processes = Processes::all();
  RunOptions own = run;  // of this process
  own.quiet |= !processes.first();
  if (own.threads == 0) own.threads = processes.threads();
#ifdef LOCKSTEP_CUDA
  if (processes.size() > 1 && run.device != "cpu") use_cuda_device(processes.rank_here());
#endif
  RunContext context = make_context(own, target, label);
  // Two blocks of the matrix products for every thread, or enough chains to fill a GPU: few enough to be lost
  // when interrupted.
  const int at_once = context.cuda ? 1 << 16 : 2 * 192 * context.threads,
            per = std::clamp(at_once / c.runs, 1, items.count);
  RunSize size;
  size.dim = target.dim();
  size.chains = std::int64_t(per) * std::max(c.runs, c.bound_draws);
  size.iterations = 0;  // sums are kept by image
  MemoryPlan memory = planned_memory(context, {.kind = ModelKind::path}, size);
  memory.host += 28.0 * double(items.values.size());  // in three precisions, and as read
  memory.host *= processes.here();
  if (context.cuda)  // what the products hold: positions, gradients and log densities, layers, a workspace
    memory.device +=
        double(size.chains) * (8.0 * size.dim + 40) + 64 * 1048576.0 + 12.0 * double(items.values.size());
  check_memory(memory, true);
  RunFiles files;  // of the first process
  if (processes.first()) files = open_run(run, target, c.effective);
  if (processes.any(files.finished.has_value())) {
    if (processes.first()) return *files.finished;
    throw FirstSpeaks();
  }
  CheckpointPlan plan = files.checkpoint;
  say_device(own, context);
  check_memory(memory, own.quiet);
  const auto print = progress_printer(own.quiet, run.target, context.health);
  context.progress = [show = interruptible(print)](const std::string&, double share) {
    show("pilot", share);
  };
  auto clock = Clock::now();
  ItemPilot pilot;  // the same in every process
  try {
    if (c.method != "bound")
      pilot = run_item_pilot(with_own_numbers(context, "pilot"), c.base == "prior", c.num_leapfrog,
                             c.target_acceptance, c.step_size);
  } catch (const Interrupted&) {
    was_interrupted = true;
  }
  if (processes.any(was_interrupted)) {
    if (processes.first()) throw Interrupted();
    throw FirstSpeaks();
  }
  ItemTable table;  // of the first process
  double seconds = 0;
  const auto fields = [&](Checkpoint& archive) {
    archive("table", table);
    archive("seconds", seconds);
  };
  if (plan.resume) plan.load(fields);
  const Tally tally(context, [&] { return RunHealth::Counts{table.gradients, table.divergences}; });
  const auto room = processes.share(per), threads = processes.share(context.threads);
  int done = int(processes.of_first(table.done()));
  while (done < items.count && !was_interrupted) {
    const Share part = share_of_round(room, processes.rank(), done, items.count);
    std::vector<std::uint32_t> which(part.last - part.first);
    std::iota(which.begin(), which.end(), std::uint32_t(part.first));
    ItemTable found;
    // A round goes its way once or, where there is a way back or a guess to begin with, twice.
    const int ways = c.method == "bdmc" || c.tempers() ? 2 : 1;
    int way = 0;
    double before = 0;
    context.progress = [&](const std::string&, double share) {
      if (terminated() && processes.size() == 1) throw Interrupted();
      if (share < before) way = std::min(way + 1, ways - 1);
      before = share;
      const double of_round = (way + share) / ways, items_done = done + (part.round_end - done) * of_round;
      print(interrupted() ? "the last images (again: stop at once)" : "images", items_done / items.count);
    };
    try {
      if (!which.empty()) run_items(context, c, pilot, which, found);
    } catch (const Interrupted&) {
      if (done == 0) throw;
      found = {};  // what earlier rounds have found is saved
    }
    for (const auto& numbers : processes.gather(found.numbers())) table.append(numbers);
    done = int(processes.of_first(table.done()));
    seconds += seconds_since(clock);
    clock = Clock::now();
    was_interrupted = processes.any(done < items.count && interrupted());
    if (done < items.count && plan.due(was_interrupted)) plan.save(fields);
  }
  if (!processes.first()) throw FirstSpeaks();
  context.threads = int(std::accumulate(threads.begin(), threads.end(), 0.0));
  return report_items(run, files, context, c, pilot, table, seconds, seconds_since(start), was_interrupted);
}

}  // namespace lockstep
