// SPDX-License-Identifier: Apache-2.0
// The pilot over some items.
#include "host/paths/item_paths.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep {

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

bool ItemPilotRun::step() {
  if (!runs_->step()) return false;
  const SmcState& now = runs_->state();
  const int k = now.levels - 1, per = runs_->particles(), items = int(now.log_z.size());
  found_.step_size.push_back(now.step_size[0]);
  log_z_.push_back(now.log_z);
  if (k == kSteps) return true;
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
  return true;
}

void ItemPilotRun::tell() const {
  context_.tell("pilot", double(runs_->state().levels - 1) / kSteps, {runs_->total_gradients(), NAN});
}

ItemPilot ItemPilotRun::finish() {
  const SmcState& now = runs_->state();
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
