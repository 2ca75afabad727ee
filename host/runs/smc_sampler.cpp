// SPDX-License-Identifier: Apache-2.0
#include "host/runs/smc_sampler.hpp"

#include <cmath>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/schedules.hpp"
#include "host/modes/mode_jumps.hpp"

namespace lockstep {

std::vector<int> systematic_resampling(const std::vector<double>& weight, int count, double offset) {
  std::vector<int> from(count);
  if (count == 0) return from;
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  double cumulative = weight[0];
  int at = 0;
  for (int p = 0; p < count; ++p) {
    while (at + 1 < int(weight.size()) && cumulative < (p + offset) / count * total)
      cumulative += weight[++at];
    from[p] = at;
  }
  return from;
}

double largest_step(double most, double least, int halvings, const std::function<bool(double)>& fits) {
  if (fits(most)) return most;
  double low = 0, high = most;
  for (int k = 0; k < halvings; ++k) {
    const double middle = 0.5 * (low + high);
    (fits(middle) ? low : high) = middle;
  }
  return std::max(low, least);
}

SmcSampler::SmcSampler(const RunContext& context, std::unique_ptr<Engine> engine,
                       std::vector<std::uint32_t> units, const std::vector<double>& position,
                       SmcOptions options)
    : context_(context),
      engine_(std::move(engine)),
      units_(std::move(units)),
      options_(std::move(options)),
      particles_(engine_->chains() / int(units_.size())) {
  const std::size_t n = units_.size();
  for (auto* v : {&state_.beta, &state_.log_z, &state_.variance, &state_.gradients}) v->assign(n, 0.0);
  state_.raises.assign(n, 0);
  state_.arrived.resize(n);
  state_.log_weight.assign(engine_->chains(), 0.0);
  state_.ancestor.resize(engine_->chains());
  std::iota(state_.ancestor.begin(), state_.ancestor.end(), 0);
  state_.step_size.assign(options_.levels == Levels::own ? n : 1, options_.step_size);
  state_.acceptance.assign(state_.step_size.size(), 0.0);
  state_.metric = options_.metric;
  state_.iteration = options_.launch.begin;
  restart_at(position);
}

bool SmcSampler::step() {
  if (state_.levels >= options_.most_levels || finished()) return false;
  if (state_.levels > 0) raise();
  const int moves = state_.levels > 0 ? options_.moves : options_.first_moves;
  for (int m = 0; m < moves; ++m) move();
  ++state_.levels;
  keep_arrived();
  return true;
}

bool SmcSampler::finished() const {
  return std::all_of(state_.beta.begin(), state_.beta.end(), [](double beta) { return beta >= 1; });
}

double SmcSampler::total_gradients() const {
  return std::accumulate(state_.gradients.begin(), state_.gradients.end(), 0.0);
}

std::vector<double> SmcSampler::position() const {
  auto x = engine_->position();
  for (std::size_t u = 0; u < units_.size(); ++u)
    for (int i = 0; i < engine_->dim() && waits(u); ++i)
      std::copy_n(state_.arrived[u].begin() + std::size_t(i) * particles_, particles_,
                  x.begin() + std::size_t(i) * engine_->chains() + u * particles_);
  return x;
}

void SmcSampler::keep_arrived() {
  if (finished()) return;  // nothing moves any more
  std::vector<double> x;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (waits(u) || state_.beta[u] < 1) continue;
    if (x.empty()) x = engine_->position();
    for (int i = 0; i < engine_->dim(); ++i) {
      const auto row = x.begin() + std::size_t(i) * engine_->chains() + u * particles_;
      state_.arrived[u].insert(state_.arrived[u].end(), row, row + particles_);
    }
  }
}

std::vector<double> SmcSampler::deltas() const {
  const auto cache = engine_->cache();
  const int n = engine_->chains();
  std::vector<double> delta(cache.begin() + n, cache.begin() + 2 * n);
  for (double& v : delta)
    if (!std::isfinite(v)) v = kNoWeight;
  return delta;
}

std::vector<int> SmcSampler::resample(int unit, int count) const {
  std::vector<double> weight(particles_);
  for (int p = 0; p < particles_; ++p) weight[p] = std::exp(state_.log_weight[unit * particles_ + p]);
  return resample(unit, count, weight);
}

std::vector<int> SmcSampler::resample(int unit, int count, const std::vector<double>& weight) const {
  const Draw<double> draw{context_.key, state_.iteration, 0, units_[unit]};
  auto from = systematic_resampling(weight, count, draw.uniform(Purpose::resample));
  for (int& c : from) c += unit * particles_;
  return from;
}

void SmcSampler::raise() {
  const auto delta = deltas();
  const bool own = options_.levels == Levels::own;
  const double next = own ? 1 : next_level(delta), rise = next - state_.beta[0];
  std::vector<int> from(engine_->chains());
  std::iota(from.begin(), from.end(), 0);
  bool resampled = false;
#pragma omp parallel for num_threads(context_.threads) reduction(|| : resampled) schedule(dynamic)
  for (std::size_t u = 0; u < units_.size(); ++u) {
    if (waits(u)) continue;
    ++state_.raises[u];
    const double* own_delta = delta.data() + u * particles_;
    const auto weight = own ? raise_alone(u, own_delta) : reweight(u, own_delta, rise);
    if (!own) state_.beta[u] = next;
    if (weight.empty()) continue;
    resampled = true;
    const auto kept = resample(int(u), particles_, weight);
    std::copy(kept.begin(), kept.end(), from.begin() + u * particles_);
  }
  if (resampled)
    take(from);
  else
    engine_->set_beta(std::vector<double>(engine_->chains(), next));
}

/// Half way down, again and again, to the longest step that increments allow, or all the way to 1.
double SmcSampler::next_level(const std::vector<double>& delta) const {
  if (options_.levels == Levels::given) return options_.ladder[state_.levels];
  if (state_.levels + 1 == options_.most_levels) return 1;
  std::vector<double> increment(delta.size());
  const double beta = state_.beta[0], most = std::min(1 - beta, options_.longest);
  const double step = largest_step(most, 1e-9, 50, [&](double s) {
    for (std::size_t i = 0; i < delta.size(); ++i) increment[i] = -s * delta[i];
    return increment_rate(state_.log_weight, increment) <= options_.rate;
  });
  return step >= 1 - beta ? 1 : beta + step;
}

std::vector<double> SmcSampler::raise_alone(std::size_t u, const double* delta) {
  std::vector<double> weight(particles_);
  double lowest = std::numeric_limits<double>::infinity(), sum = 0, ess = 0;
  for (int p = 0; p < particles_; ++p)
    if (delta[p] < kNoWeight) lowest = std::min(lowest, delta[p]);
  const auto weigh = [&](double step) {
    double square = 0;
    sum = 0;
    for (int p = 0; p < particles_; ++p) {
      weight[p] = delta[p] < kNoWeight ? std::exp(-step * (delta[p] - lowest)) : 0;
      sum += weight[p];
      square += weight[p] * weight[p];
    }
    ess = sum > 0 ? sum * sum / square : 0;
  };
  double& beta = state_.beta[u];
  const double step = largest_step(1 - beta, 1e-12, 60, [&](double s) {
    weigh(s);
    return ess >= 0.5 * particles_;
  });
  weigh(step);
  state_.log_z[u] += std::log(sum / particles_) - step * lowest;
  state_.variance[u] += (particles_ / std::max(ess, 1.0) - 1) / particles_;
  beta = step >= 1 - beta ? 1 : beta + step;
  return weight;
}

std::vector<double> SmcSampler::reweight(std::size_t u, const double* delta, double rise) {
  double* log_weight = state_.log_weight.data() + u * particles_;
  LogSum before, after;
  for (int p = 0; p < particles_; ++p) {
    before.add(log_weight[p]);
    log_weight[p] -= rise * delta[p];
    after.add(log_weight[p]);
  }
  if (options_.levels == Levels::given) {
    state_.log_z[u] = after.log() - std::log(double(particles_));
    return {};
  }
  state_.log_z[u] += after.log() - before.log();
  double square = 0;
  for (int p = 0; p < particles_; ++p) {
    log_weight[p] -= after.log();
    square += std::exp(2 * log_weight[p]);
  }
  if (1 / square >= 0.5 * particles_) return {};
  std::vector<double> weight(particles_);
  for (int p = 0; p < particles_; ++p) weight[p] = std::exp(log_weight[p]);
  std::fill_n(log_weight, particles_, -std::log(double(particles_)));
  return weight;
}

/// Every chain goes on from where `from` of it is.
void SmcSampler::take(const std::vector<int>& from) {
  const auto old = engine_->position();
  auto x = old;
  const int n = engine_->chains();
#pragma omp parallel for num_threads(context_.threads)
  for (int i = 0; i < engine_->dim(); ++i)
    for (int c = 0; c < n; ++c) x[std::size_t(i) * n + c] = old[std::size_t(i) * n + from[c]];
  const auto ancestor = state_.ancestor;
  for (int c = 0; c < n; ++c) state_.ancestor[c] = ancestor[from[c]];
  learn_metric(x);
  restart_at(x);
}

void SmcSampler::learn_metric(const std::vector<double>& x) {
  const int d = engine_->dim();
  for (std::size_t u = 0; u < units_.size() && !state_.metric.empty(); ++u)
    for (int i = 0; i < d && !waits(u); ++i) {
      const double* row = x.data() + std::size_t(i) * engine_->chains() + u * particles_;
      double mean = 0, square = 0;
      for (int p = 0; p < particles_; ++p) mean += row[p] / particles_;
      for (int p = 0; p < particles_; ++p) square += (row[p] - mean) * (row[p] - mean) / particles_;
      state_.metric[u * d + i] = std::max(std::sqrt(square), options_.least_scale);
    }
}

void SmcSampler::restart_at(const std::vector<double>& x) {
  set_per_unit(*engine_, ParameterLayout::beta, state_.beta);
  if (!state_.metric.empty()) set_axis(*engine_, engine_->layout().scale(), state_.metric, engine_->dim());
  engine_->set_position(x);
  engine_->initialize();
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (!waits(u)) state_.gradients[u] += particles_;
}

void SmcSampler::move() {
  set_per_unit(*engine_, ParameterLayout::step_size, state_.step_size);
  LaunchSpec launch = options_.launch;
  launch.key = context_.key;
  launch.begin = state_.iteration;
  launch.end = ++state_.iteration;
  engine_->advance(launch);
  const auto stats = engine_->take_stats();
  const int n = engine_->chains();
  const auto sum = [&](StatRow row, int first, int count) {
    const auto begin = stats.begin() + std::ptrdiff_t(row) * n + first;
    return std::accumulate(begin, begin + count, 0.0);
  };
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (!waits(u)) state_.gradients[u] += sum(stat_gradients, int(u) * particles_, particles_);
  state_.divergences += sum(stat_divergences, 0, n);
  if (context_.jumps) {
    JumpCounts jumps;
    jumps.add(stats, *find_transition("hmc"), n);
    state_.jumps_proposed += jumps.proposed;
    state_.jumps_accepted += jumps.accepted;
  }
  state_.acceptance = acceptance(stats);
  for (std::size_t k = 0; k < state_.step_size.size(); ++k)
    state_.step_size[k] = options_.controller.next(state_.step_size[k], state_.acceptance[k]);
}

std::vector<double> SmcSampler::acceptance(const std::vector<double>& stats) const {
  const int n = engine_->chains();
  if (options_.levels != Levels::common)
    return unit_means(stats, stat_acceptance, n, int(state_.step_size.size()));
  // By weight: particles that no longer count must not hold the steps of the others.
  double sum = 0, total = 0;
  for (int c = 0; c < n; ++c) {
    const double w = std::exp(state_.log_weight[c]);
    sum += w * stats[std::size_t(stat_acceptance) * n + c];
    total += w;
  }
  return {sum / total};
}

}  // namespace lockstep
