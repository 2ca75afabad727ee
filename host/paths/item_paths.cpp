// SPDX-License-Identifier: Apache-2.0
#include "host/paths/item_paths.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "host/estimators/log_z_estimators.hpp"
#include "host/paths/annealing.hpp"
#include "host/runs/base_rows.hpp"
#include "host/runs/sharded_engine.hpp"

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
  BaseRows base;
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
  write_base(*engine, base);
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
    draw.normals(Purpose::base, d, [&](int i, double v) {
      const auto [mean, sd] = base_of(items, batch, item, i);
      x[std::size_t(i) * n + c] = mean + sd * v;
    });
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
  const Tally tally(context, [&] { return counts_of(*engine); });
  AnnealedChains chains = anneal_chains(
      context, *engine,
      {schedule.ladder, schedule.step_size, schedule.num_leapfrog, reverse, "", 16, Pace::inside}, x);
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
  RunHealth::Counts counts() const { return {gradients_, divergences_}; }

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

  template <class Archive>
  void fields(Archive& archive) {
    archive("acceptance", acceptance_);
    archive("round_trips", round_trips_);
    archive("top", top_);
    archive("bottom", bottom_);
    archive("half_top", half_top_);
    archive("half_bottom", half_bottom_);
    archive("gradients", gradients_);
    archive("divergences", divergences_);
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
  const Tally tally(context, [&] { return recorder.counts(); });
  RunLoop loop{.context = context, .engine = *engine, .name = "sampling", .end = iterations};
  loop.stage = "";
  loop.launch.key = context.key;
  loop.launch.num_leapfrog = schedule.num_leapfrog;
  loop.launch.jitter = schedule.num_leapfrog > 1;
  loop.launch.tempering = tempering;
  loop.run(
      [&](bool taken_up) {
        if (taken_up) return;
        set_per_unit(*engine, ParameterLayout::beta, {0});
        set_per_unit(*engine, ParameterLayout::step_size,
                     {by_levels ? schedule.step_size.front() : shortest});
        auto x = item_draws(context, batch, 0);
        // Beginning where beta = 0.05: at the base the control would take long to leave.
        if (joint) x.insert(x.end(), engine->chains(), -3.0);
        engine->set_position(x);
        engine->initialize();
      },
      [&](LaunchSpec& launch) {
        const std::int64_t t = loop.t, boundary = t < discarded ? discarded
                                                  : t < middle  ? middle
                                                                : iterations;
        launch.end = std::uint32_t(std::min(t + 16, boundary));
        launch.record = t >= discarded;
      },
      [] { return Pace::inside; }, recorder);  // a round of items is done or not
  return recorder.value(batch.log_zeta, by_levels ? weight.front() - weight.back() : 0);
}

ItemPilotRun::ItemPilotRun(const RunContext& context, bool prior, int num_leapfrog, double target_acceptance,
                           double step_size)
    : context_(context) {
  constexpr int kMostItems = 24;
  ItemBatch batch;
  batch.runs = 8;
  batch.prior = prior;
  const int count = context.target->items()->count, chosen = std::min(count, kMostItems);
  for (int i = 0; i < chosen; ++i)
    batch.items.push_back(std::uint32_t((2 * std::int64_t(i) + 1) * count / (2 * chosen)));
  auto engine = item_engine(context, batch);
  SmcOptions options;
  options.levels = SmcOptions::Levels::given;
  const std::vector<double> none(kSteps + 1, 0.0);
  options.ladder = ladder_ = engine->set_ladder(sigmoid_ladder(kSteps), none, none);
  options.most_levels = kSteps + 1;
  options.first_moves = 10;  // the step size settles
  options.launch.num_leapfrog = num_leapfrog;
  options.launch.jitter = num_leapfrog > 1;
  if (step_size > 0) options.step_size = step_size;
  options.controller = {step_size > 0 ? 0 : 0.7, target_acceptance};
  runs_ = std::make_unique<SmcSampler>(context, std::move(engine), batch.items, item_draws(context, batch, 0),
                                       options);
}

void ItemPilotRun::record() {
  const SmcState& now = runs_->state();
  const int k = now.levels - 1, per = runs_->particles(), items = int(now.log_z.size());
  found_.step_size.push_back(now.step_size[0]);
  log_z_.push_back(now.log_z);
  if (k == kSteps) return;
  const auto delta = runs_->deltas();
  double variance = 0;
  for (int i = 0; i < items; ++i) {
    double mean = 0, square = 0;
    for (int c = i * per; c < (i + 1) * per; ++c) {
      mean += delta[c] / per;
      square += delta[c] * delta[c] / per;
    }
    variance += std::max(0.0, square - mean * mean) / items;
  }
  found_.rates.push_back((ladder_[k + 1] - ladder_[k]) *
                         std::sqrt((std::isfinite(variance) ? variance : 0) / kPi));
}

ItemPilot ItemPilotRun::run(const std::function<void()>& between) {
  const SmcState& now = runs_->state();
  const Tally tally(context_, [&] { return RunHealth::Counts{runs_->total_gradients(), NAN}; });
  runs_->run([&] {
    record();
    between();
    context_.progress("pilot", double(now.levels - 1) / kSteps);
  });
  ItemPilot out = std::move(found_);
  out.ladder = ladder_;
  out.acceptance = now.acceptance[0];
  out.gradients = runs_->total_gradients();
  out.step_size = smoothed_steps(out.step_size, 3);
  const std::size_t items = now.log_z.size();
  for (int k = 0; k <= kSteps; ++k) {
    double z = 0;
    for (std::size_t i = 0; i < items; ++i)
      z += (log_z_[k][i] - ladder_[k] * log_z_[kSteps][i]) / double(items);
    out.log_z.push_back(z);
  }
  return out;
}

ItemSchedule ItemPilot::on(std::vector<double> other, int num_leapfrog) const {
  ItemSchedule s;
  s.num_leapfrog = num_leapfrog;
  for (double beta : other) {
    const auto above = std::upper_bound(ladder.begin(), ladder.end(), beta) - ladder.begin();
    const std::size_t low = std::clamp<std::ptrdiff_t>(above - 1, 0, std::ptrdiff_t(ladder.size()) - 2);
    const double part = (beta - ladder[low]) / (ladder[low + 1] - ladder[low]);
    s.step_size.push_back(step_size[low] * std::pow(step_size[low + 1] / step_size[low], part));
    s.log_z.push_back((1 - part) * log_z[low] + part * log_z[low + 1]);
  }
  s.ladder = std::move(other);
  return s;
}

}  // namespace lockstep
