// SPDX-License-Identifier: Apache-2.0
#include "host/paths/item_paths.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "host/engines/base_density.hpp"
#include "host/engines/sharded_engine.hpp"
#include "host/estimators/log_z_estimators.hpp"
#include "host/paths/annealing.hpp"

namespace lockstep {
namespace {

/// The weight of an estimate that has gone wrong.
double weight_of(double log_weight) { return std::isfinite(log_weight) ? log_weight : -INFINITY; }

/// Mean and standard deviation, on an axis, of the base of an item.
std::array<double, 2> base_of(const Items& items, const ItemBatch& batch, std::uint32_t item, int axis) {
  if (batch.prior) return {0, 1};
  const std::size_t at = std::size_t(item) * (items.base_mean.size() / items.count) + axis;
  return {items.base_mean[at], items.base_sd[at]};
}

void count(ItemRuns& out, const std::vector<double>& stats, const ItemBatch& batch, int transitions) {
  const int n = int(batch.items.size()) * batch.runs;
  for (std::size_t i = 0; i < batch.items.size(); ++i) {
    double a = 0;
    for (int r = 0; r < batch.runs; ++r) {
      const std::size_t c = i * batch.runs + r;
      a += stats[std::size_t(stat_acceptance) * n + c] / (double(batch.runs) * std::max(transitions, 1));
      out.gradients += stats[std::size_t(stat_gradients) * n + c];
      out.divergences += stats[std::size_t(stat_divergences) * n + c];
    }
    out.acceptance.push_back(a);
  }
}

}  // namespace

std::unique_ptr<Engine> item_engine(const RunContext& context, const ItemBatch& batch, Control control) {
  const Items& items = *context.target->items();
  const int d = context.target->dim();
  auto engine = make_engine(
      context, engine_spec(context, {.kind = ModelKind::path, .control = control}, batch.items, batch.runs));
  BaseAxes base;
  for (std::uint32_t item : batch.items) {
    double sum = -0.5 * d * std::log(2 * kPi);
    for (int i = 0; i < d; ++i) {
      const auto [m, s] = base_of(items, batch, item, i);
      base.mean.push_back(m);
      base.sd.push_back(s);
      sum -= std::log(s);
    }
    base.log_norm.push_back(sum);
  }
  write_bases(*engine, base);
  set_axis(*engine, engine->layout().scale(), base.sd, d);
  set_per_unit(*engine, ParameterLayout::scale_u, {1.4});
  set_per_unit(*engine, ParameterLayout::log_zeta,
               batch.log_zeta.empty() ? std::vector<double>{0} : batch.log_zeta);
  return engine;
}

std::vector<double> item_draws(const RunContext& context, const ItemBatch& batch, std::uint32_t iteration) {
  const Items& items = *context.target->items();
  const int d = context.target->dim(), n = int(batch.items.size()) * batch.runs;
  std::vector<double> x(std::size_t(d) * n);
  for (int c = 0; c < n; ++c) {
    const std::uint32_t item = batch.items[c / batch.runs];
    const Draw<double> draw{context.key, iteration, std::uint32_t(c % batch.runs), item};
    const auto z = normals(draw, Purpose::base, d);
    for (int i = 0; i < d; ++i) {
      const auto [mean, sd] = base_of(items, batch, item, i);
      x[std::size_t(i) * n + c] = mean + sd * z[i];
    }
  }
  return x;
}

ItemRuns importance_bound(const RunContext& context, const ItemBatch& batch) {
  auto engine = item_engine(context, batch);
  engine->set_position(item_draws(context, batch, 0));
  engine->initialize();
  const auto cache = engine->cache();
  const int n = engine->chains();
  ItemRuns out;
  out.gradients = n;
  for (int c = 0; c < n; ++c) out.log_weight.push_back(weight_of(-cache[n + c]));
  out.acceptance.assign(batch.items.size(), 1);
  return out;
}

ItemRuns anneal_items(const RunContext& context, const ItemBatch& batch, const ItemSchedule& schedule,
                      bool reverse) {
  const Items& items = *context.target->items();
  const int d = context.target->dim(), n = int(batch.items.size()) * batch.runs;
  auto x = reverse ? std::vector<double>(std::size_t(d) * n) : item_draws(context, batch, 0);
  for (int i = 0; i < d && reverse; ++i)
    for (int c = 0; c < n; ++c)
      x[std::size_t(i) * n + c] = items.exact[std::size_t(batch.items[c / batch.runs]) * d + i];
  const auto engine = item_engine(context, batch);
  AnnealedChains chains =
      anneal_chains(context, *engine,
                    {schedule.ladder, schedule.step_size, schedule.num_leapfrog, reverse, "", 16, false}, x);
  ItemRuns out;
  out.gradients = n;
  out.log_weight = std::move(chains.log_weight);
  count(out, chains.stats, batch, int(schedule.ladder.size()) - 2);
  return out;
}

namespace {

/// What tempered chains leave of each item, and of its halves.
class ItemRecorder {
 public:
  ItemRecorder(const ItemBatch& batch, int chains, int iterations, int middle)
      : runs_(batch.runs),
        iterations_(iterations),
        middle_(middle),
        acceptance_(batch.items.size(), 0.0),
        round_trips_(acceptance_),
        top_(chains, 0.0),
        bottom_(top_),
        half_top_(top_),
        half_bottom_(top_),
        gradients_(chains) {}

  void record(Launched& launched) {
    const auto &stats = launched.stats(), &moments = launched.moments();
    const std::size_t n = launched.chains();
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t i = c / runs_;
      acceptance_[i] += stats[stat_acceptance * n + c] / (double(runs_) * iterations_);
      round_trips_[i] += stats[stat_round_trips * n + c] / runs_;
      gradients_ += stats[stat_gradients * n + c];
      divergences_ += stats[stat_divergences * n + c];
      if (!launched.spec.record) continue;
      top_[c] += moments[MomentLayout::count * n + c];
      bottom_[c] += stats[stat_base_weight * n + c];
    }
    if (int(launched.spec.end) != middle_) return;
    half_top_ = top_;
    half_bottom_ = bottom_;
  }
  RunHealth health() const { return {gradients_, divergences_}; }

  /// `log_zeta` of each item, or none; `log_prior`: of EndpointEvidence::value.
  ItemRuns value(const std::vector<double>& log_zeta, double log_prior) const {
    ItemRuns out;
    out.acceptance = acceptance_;
    out.round_trips = round_trips_;
    out.gradients = gradients_;
    out.divergences = divergences_;
    for (std::size_t i = 0; i < acceptance_.size(); ++i) {
      EndpointEvidence ends(runs_), first(runs_), second(runs_);
      for (int r = 0; r < runs_; ++r) {
        const std::size_t c = i * runs_ + r;
        ends.add(r, top_[c], bottom_[c]);
        first.add(r, half_top_[c], half_bottom_[c]);
        second.add(r, top_[c] - half_top_[c], bottom_[c] - half_bottom_[c]);
      }
      out.log_z.push_back(ends.value(log_zeta.empty() ? 0 : log_zeta[i], log_prior).value());
      out.drift.push_back((second.value(0) - first.value(0)).estimate);
    }
    return out;
  }

 private:
  int runs_, iterations_, middle_;
  std::vector<double> acceptance_, round_trips_;               // [item]
  std::vector<double> top_, bottom_, half_top_, half_bottom_;  // [chain]; half: the first
  double gradients_, divergences_ = 0;
};

}  // namespace

ItemRuns temper_items(const RunContext& context, const ItemBatch& batch, const ItemSchedule& schedule,
                      Tempering tempering, int iterations, double discard) {
  const bool by_levels = tempering == Tempering::levels, joint = tempering == Tempering::joint;
  auto engine = item_engine(context, batch, joint ? Control::logistic : Control::none);
  std::vector<double> weight;
  for (double z : schedule.log_z) weight.push_back(-z);
  engine->set_ladder(schedule.ladder, weight, schedule.step_size);
  const double shortest = *std::min_element(schedule.step_size.begin(), schedule.step_size.end());
  const int discarded = int(discard * iterations);
  const int middle = discarded + (iterations - discarded) / 2;
  ItemRecorder recorder(batch, engine->chains(), iterations, middle);
  RunLoop loop{.context = context, .engine = *engine, .name = "sampling", .end = iterations};
  loop.stage = "";
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = schedule.num_leapfrog;
  loop.launch.jitter = schedule.num_leapfrog > 1;
  loop.launch.tempering = tempering;
  set_per_unit(*engine, ParameterLayout::beta, {0});
  set_per_unit(*engine, ParameterLayout::step_size, {by_levels ? schedule.step_size.front() : shortest});
  auto x = item_draws(context, batch, 0);
  // Beginning where beta = 0.05: at the base the control would take long to leave.
  if (joint) x.insert(x.end(), engine->chains(), -3.0);
  engine->set_position(x);
  engine->initialize();
  while (loop.next()) {  // never saved: a round of items is done or not
    const std::int64_t t = loop.t, boundary = t < discarded ? discarded : t < middle ? middle : iterations;
    loop.launch.end = std::uint32_t(std::min(t + 16, boundary));
    loop.launch.record = t >= discarded;
    Launched launched = loop.advance();
    recorder.record(launched);
    loop.tell(recorder.health());
  }
  return recorder.value(batch.log_zeta, by_levels ? weight.front() - weight.back() : 0);
}

}  // namespace lockstep
