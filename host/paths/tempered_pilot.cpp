// SPDX-License-Identifier: Apache-2.0
#include "host/paths/tempered_pilot.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/schedules.hpp"
#include "targets/registry.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kPilotIterations = 0x60000000u;  // the pilot's own range of iteration numbers

class Population {
 public:
  Population(const RunContext& context, const GaussianBase& base, const PilotOptions& options)
      : context_(context), options_(options), per_(options.particles / options.groups) {
    std::vector<std::uint32_t> units(options.groups);
    std::iota(units.begin(), units.end(), 0u);
    engine_ = base.path_engine(context, units, per_);
    const int n = engine_->chains();
    log_weight_.assign(n, 0.0);
    group_log_z_.assign(options.groups, 0.0);
    ancestor_.resize(n);
    std::iota(ancestor_.begin(), ancestor_.end(), 0);
    restart_at(base.draws(context.key, iteration_, n, per_), 0);
  }

  /// Half way down to the step at which increments reach the rate wanted, or all the way to 1.
  double next_beta() const {
    const auto delta = deltas();
    const auto rate = [&](double step) {
      std::vector<double> increment(delta.size());
      for (std::size_t i = 0; i < delta.size(); ++i) increment[i] = -step * delta[i];
      return increment_rate(log_weight_, increment);
    };
    double low = 0, high = 1 - beta_;
    if (rate(high) <= options_.rate) return 1;
    for (int k = 0; k < 50; ++k) {
      const double middle = 0.5 * (low + high);
      (rate(middle) <= options_.rate ? low : high) = middle;
    }
    return std::min(1.0, beta_ + std::max(low, 1e-9));
  }

  void raise_to(double beta) {
    const auto delta = deltas();
    const int n = engine_->chains();
    std::vector<int> from(n);
    std::iota(from.begin(), from.end(), 0);
    bool any = false;
    for (int g = 0; g < options_.groups; ++g) {
      LogSum before, after;
      for (int c = g * per_; c < (g + 1) * per_; ++c) {
        before.add(log_weight_[c]);
        log_weight_[c] -= (beta - beta_) * delta[c];
        after.add(log_weight_[c]);
      }
      group_log_z_[g] += after.log() - before.log();
      double square = 0;
      for (int c = g * per_; c < (g + 1) * per_; ++c) {
        log_weight_[c] -= after.log();
        square += std::exp(2 * log_weight_[c]);
      }
      if (1 / square >= 0.5 * per_) continue;
      any = true;
      const auto kept = resample(g, per_);
      std::copy(kept.begin(), kept.end(), from.begin() + g * per_);
      std::fill_n(log_weight_.begin() + g * per_, per_, -std::log(double(per_)));
    }
    if (any) {
      const auto old = engine_->position();
      auto x = old;
      for (int i = 0; i < engine_->dim(); ++i)
        for (int c = 0; c < n; ++c) x[std::size_t(i) * n + c] = old[std::size_t(i) * n + from[c]];
      for (int& c : from) c = ancestor_[c];
      ancestor_.swap(from);
      restart_at(x, beta);
    } else {
      engine_->set_beta(std::vector<double>(n, beta));
    }
    beta_ = beta;
  }

  void move() {
    set_per_unit(*engine_, ParameterLayout::step_size, {step_});
    LaunchSpec spec;
    spec.key = context_.key;
    spec.begin = iteration_;
    spec.end = ++iteration_;
    spec.num_leapfrog = options_.num_leapfrog;
    engine_->advance(spec);
    const auto stats = engine_->take_stats();
    const int n = engine_->chains();
    // By weight: particles that no longer count must not hold the steps of the others.
    double a = 0, total = 0;
    for (int c = 0; c < n; ++c) {
      const double w = std::exp(log_weight_[c]);
      a += w * stats[std::size_t(stat_acceptance) * n + c];
      total += w;
      gradients_ += stats[std::size_t(stat_gradients) * n + c];
      divergences_ += stats[std::size_t(stat_divergences) * n + c];
    }
    acceptance_ = a / total;
    step_ = std::clamp(step_ * std::exp(1.5 * (acceptance_ - options_.target_acceptance)), 1e-6, 2.0);
  }

  /// `count` particles of a group by weight (systematic resampling), as chain numbers.
  std::vector<int> resample(int group, int count) const {
    std::vector<int> out(count);
    const double offset = draw(group * per_).uniform(Purpose::resample);
    double cumulative = std::exp(log_weight_[group * per_]), total = 0;
    for (int p = 0; p < per_; ++p) total += std::exp(log_weight_[group * per_ + p]);
    int from = 0;
    for (int p = 0; p < count; ++p) {
      while (from + 1 < per_ && cumulative < (p + offset) / count * total)
        cumulative += std::exp(log_weight_[group * per_ + ++from]);
      out[p] = group * per_ + from;
    }
    return out;
  }

  /// Particles of the base from which those of each group come, and how many of the latter are effective.
  void count_groups(std::vector<int>& ancestors, std::vector<double>& ess) const {
    for (int g = 0; g < options_.groups; ++g) {
      const int first = g * per_;
      ancestors.push_back(
          int(std::set<int>(ancestor_.begin() + first, ancestor_.begin() + first + per_).size()));
      double square = 0;
      for (int c = first; c < first + per_; ++c) square += std::exp(2 * log_weight_[c]);
      ess.push_back(1 / square);
    }
  }
  std::vector<double> position() const { return engine_->position(); }
  std::vector<double> gradient() const { return engine_->gradient(); }
  const std::vector<double>& log_weight() const { return log_weight_; }
  const std::vector<double>& group_log_z() const { return group_log_z_; }
  double beta() const { return beta_; }
  double step() const { return step_; }
  double acceptance() const { return acceptance_; }
  double gradients() const { return gradients_; }
  double divergences() const { return divergences_; }
  int dim() const { return engine_->dim(); }

 private:
  Draw<double> draw(int chain) const {
    return {context_.key, iteration_, std::uint32_t(chain % per_), std::uint32_t(chain / per_)};
  }
  std::vector<double> deltas() const {
    const auto cache = engine_->cache();
    const int n = engine_->chains();
    std::vector<double> delta(cache.begin() + n, cache.begin() + 2 * n);
    for (double& v : delta)
      if (!std::isfinite(v)) v = 1e300;  // where the target is zero or broken: no weight
    return delta;
  }
  void restart_at(const std::vector<double>& x, double beta) {
    const int n = engine_->chains();
    set_per_unit(*engine_, ParameterLayout::beta, {beta});
    engine_->set_position(x);
    engine_->initialize();
    gradients_ += n;
  }

  const RunContext& context_;
  const PilotOptions& options_;
  int per_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> log_weight_, group_log_z_;
  std::vector<int> ancestor_;  // [particle]: which particle of the base it comes from
  double beta_ = 0, step_ = 0.3, acceptance_ = 0, gradients_ = 0, divergences_ = 0;
  std::uint32_t iteration_ = kPilotIterations;
};

}  // namespace

Jackknife Pilot::log_z_of_groups() const {
  const int groups = int(group_log_z.size());
  BlockLogSums sums(groups, 1);
  for (int g = 0; g < groups; ++g) sums.add(g, 0, group_log_z[g]);
  return sums.combine({1}) + -std::log(double(groups));
}

std::vector<int> Pilot::draw_levels(const StreamKey& key, int seeds, double end) const {
  const int levels = int(ladder.size());
  std::vector<int> level(seeds);
  for (int s = 0; s < seeds; ++s) {
    const Draw<double> draw{key, kPilotIterations, std::uint32_t(s), 0};
    const double at = draw.uniform(Purpose::seed_level) * (levels - 2 + 2 * end) - end;  // levels 1.. from 0
    level[s] = at < 0 ? 0 : std::min(levels - 1, 1 + int(at));
  }
  return level;
}

std::vector<double> Pilot::positions(const std::vector<int>& level, const std::vector<int>& seed) const {
  const std::size_t n = level.size(), rows = last.size() / last_weight.size(),
                    seeds = states[0].size() / rows;
  std::vector<double> x(rows * n);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t c = 0; c < n; ++c) x[i * n + c] = states[level[c]][i * seeds + seed[c]];
  return x;
}

CommunicationBarrier Pilot::barriers() const {
  const int steps = int(ladder.size()) - 1;
  return {ladder, std::vector<double>(steps, barrier / steps)};
}

std::pair<int, double> Pilot::place(double beta, const CommunicationBarrier& barrier) const {
  const int levels = int(step_size.size());
  const double at = barrier.cumulative(beta) / barrier.global() * (levels - 1);
  const int low = std::min(int(at), levels - 2);
  return {low, at - low};
}

double Pilot::step_size_at(double beta, const CommunicationBarrier& barrier) const {
  const auto [low, part] = place(beta, barrier);
  return step_size[low] * std::pow(step_size[low + 1] / step_size[low], part);
}

Pilot Pilot::on_ladder(std::vector<double> other) const {
  Pilot out = *this;
  out.states.clear();
  out.step_size.clear();
  out.log_z.clear();
  const auto barrier = barriers();
  for (double beta : other) {
    const auto [low, part] = place(beta, barrier);
    out.log_z.push_back((1 - part) * log_z[low] + part * log_z[low + 1]);
    out.step_size.push_back(step_size_at(beta, barrier));
    const auto above = std::lower_bound(ladder.begin(), ladder.end(), beta) - ladder.begin();
    out.states.push_back(states[std::min(std::size_t(above), states.size() - 1)]);
  }
  out.ladder = std::move(other);
  return out;
}

Pilot run_pilot(const RunContext& context, const GaussianBase& base, const PilotOptions& options) {
  Population people(context, base, options);
  const Tally tally(context, [&] { return RunHealth::Counts{people.gradients(), people.divergences()}; });
  Pilot out;
  const int seeds_per = options.seeds / options.groups, d = base.dim();
  const auto snap = [&] {
    const auto x = people.position();
    const int n = options.particles;
    std::vector<float> s(std::size_t(d) * options.seeds);
    for (int g = 0; g < options.groups; ++g) {
      const auto kept = people.resample(g, seeds_per);
      for (int p = 0; p < seeds_per; ++p)
        for (int i = 0; i < d; ++i)
          s[std::size_t(i) * options.seeds + g * seeds_per + p] = float(x[std::size_t(i) * n + kept[p]]);
    }
    out.states.push_back(std::move(s));
  };
  const auto level = [&] {
    for (int m = 0; m < options.moves; ++m) people.move();
    out.ladder.push_back(people.beta());
    out.step_size.push_back(people.step());
    LogSum z;
    for (double v : people.group_log_z()) z.add(v);
    out.log_z.push_back(z.log() - std::log(double(options.groups)));
    snap();
  };
  for (int m = 0; m < 4; ++m) people.move();  // settles the step size at the base
  level();
  while (people.beta() < 1 && int(out.ladder.size()) < options.most_levels) {
    const double next = int(out.ladder.size()) + 1 == options.most_levels ? 1 : people.next_beta();
    people.raise_to(next);
    level();
    context.progress("pilot", people.beta());
  }
  const int levels = int(out.ladder.size());
  out.barrier = (levels - 1) * options.rate / std::sqrt(kPi);
  out.group_log_z = people.group_log_z();
  people.count_groups(out.group_ancestors, out.group_ess);
  out.last = people.position();
  double sum = 0, square = 0;
  for (double w : people.log_weight()) {
    out.last_weight.push_back(std::exp(w));
    sum += out.last_weight.back();
    square += out.last_weight.back() * out.last_weight.back();
  }
  out.weight_ess = sum * sum / square;
  const auto gradient = people.gradient();
  const std::size_t n = out.last_weight.size();
  for (int i = 0; i < d; ++i) {
    double squares = 0;
    for (std::size_t p = 0; p < n; ++p)
      if (const double g = gradient[i * n + p]; std::isfinite(g)) squares += out.last_weight[p] * g * g;
    out.curvature.push_back(squares / sum);
  }
  out.acceptance = people.acceptance();
  out.gradients = people.gradients();
  out.divergences = people.divergences();
  // Step sizes wander with the noise of acceptance: smoothed over neighbouring levels.
  const auto raw = out.step_size;
  for (int k = 0; k < levels; ++k) {
    double s = 0, n = 0;
    for (int j = std::max(0, k - 2); j <= std::min(levels - 1, k + 2); ++j, ++n) s += std::log(raw[j]);
    out.step_size[k] = std::exp(s / n);
  }
  return out;
}

}  // namespace lockstep
