// SPDX-License-Identifier: Apache-2.0
// Warm-up: from the scout to frozen step sizes, trajectory times, metric and base.
#include <cmath>
#include <numeric>

#include "host/runs/adaptation.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/starts.hpp"
#include "host/runs/window.hpp"

namespace lockstep {
namespace {

/// Adapts step size and trajectory time of every unit while an engine runs.
class Tuner {
 public:
  Tuner(const SamplerConfig& config, Frozen& frozen) : config_(config), frozen_(frozen) {
    for (std::size_t u = 0; u < frozen.step_size.size(); ++u) {
      averaging_.emplace_back(frozen.step_size[u], config.target_acceptance);
      chees_.emplace_back(frozen.trajectory_time[u]);
    }
  }
  void update(const std::vector<double>& acceptance, const std::vector<double>& chees, bool learn_time) {
    for (std::size_t u = 0; u < averaging_.size(); ++u) {
      if (config_.step_size == 0) {
        averaging_[u].update(acceptance[u]);
        frozen_.step_size[u] = averaging_[u].step_size();
      }
      if (learn_time) chees_[u].update(chees[u]);
      if (config_.trajectory_time == 0)
        frozen_.trajectory_time[u] = chees_[u].trajectory_time(frozen_.step_size[u]);
    }
  }
  void restart() {
    for (std::size_t u = 0; u < averaging_.size(); ++u)
      averaging_[u].restart(averaging_[u].average(), config_.target_acceptance);
  }
  void freeze() {
    for (std::size_t u = 0; u < averaging_.size(); ++u) {
      if (config_.step_size == 0) frozen_.step_size[u] = averaging_[u].average();
      if (config_.trajectory_time == 0) frozen_.trajectory_time[u] = chees_[u].average(frozen_.step_size[u]);
    }
  }

 private:
  const SamplerConfig& config_;
  Frozen& frozen_;
  std::vector<DualAveraging> averaging_;
  std::vector<Chees> chees_;
};

/// The doubling rule at acceptance 1/2 (Hoffman & Gelman 2014, algorithm 4), all units at once, one step
/// each.
void first_step_sizes(const RunContext& context, Engine& engine, Frozen& frozen,
                      const std::vector<double>& x) {
  const int units = int(frozen.step_size.size());
  std::vector<int> direction(units, 0);
  std::vector<bool> settled(units, false);
  for (int trial = 0; trial < 40; ++trial) {
    set_per_unit(engine, ParameterLayout::step_size, frozen.step_size);
    engine.set_position(x);
    engine.initialize();
    LaunchSpec spec;
    spec.key = context.key;
    spec.begin = kWarmupIterations - 64 + trial;
    spec.end = spec.begin + 1;
    spec.num_leapfrog = 1;
    spec.jitter = false;
    engine.advance(spec);
    const auto stats = engine.take_stats();
    const auto acceptance = unit_means(stats, stat_acceptance, engine.chains(), units);
    const auto gradients = unit_means(stats, stat_gradients, engine.chains(), units);
    bool changed = false;
    for (int u = 0; u < units; ++u) {
      if (!settled[u])
        frozen.warmup_gradients[u] += (gradients[u] + engine.samples()) * (engine.chains() / units);
      const int way = acceptance[u] > 0.5 ? 1 : -1;
      if (direction[u] == 0) direction[u] = way;
      if (direction[u] != way) settled[u] = true;  // for good: further trials are for others
      if (settled[u]) continue;
      frozen.step_size[u] *= way > 0 ? 2 : 0.5;
      changed = true;
    }
    if (!changed) break;
  }
  engine.set_position(x);
}

}  // namespace

void set_frozen(Engine& engine, const SamplerConfig& config, const Frozen& frozen) {
  const ParameterLayout layout = engine.layout();
  const int d = engine.dim(), units = int(frozen.step_size.size());
  set_per_unit(engine, ParameterLayout::step_size, frozen.step_size);
  set_per_unit(engine, ParameterLayout::trajectory_time, frozen.trajectory_time);
  set_per_unit(engine, ParameterLayout::beta, std::vector<double>(units, 1.0));
  set_per_unit(engine, ParameterLayout::scale_u, std::vector<double>(units, config.scale_u));
  set_per_unit(engine, ParameterLayout::log_zeta, frozen.log_zeta);
  set_axis(engine, layout.scale(), frozen.scale, d);
  std::vector<double> inv(std::size_t(units) * d, 0.0), mean(std::size_t(units) * d, 0.0),
      log_norm(units, 0.0);
  for (int u = 0; u < units && !frozen.base_sd.empty(); ++u)
    for (int i = 0; i < d; ++i) {
      const double sd = frozen.base_sd[u * d + i];
      mean[u * d + i] = frozen.base_mean[u * d + i];
      inv[u * d + i] = 1 / sd;
      log_norm[u] -= 0.5 * std::log(2 * kPi) + std::log(sd);
    }
  set_axis(engine, layout.base_mean(), mean, d);
  set_axis(engine, layout.base_inv_sd(), inv, d);
  if (layout.dense_base) {
    for (int u = 0; u < units; ++u) log_norm[u] = -0.5 * (d * std::log(2 * kPi) + frozen.base_log_det[u]);
    set_axis(engine, layout.base_precision(), frozen.base_precision, layout.triangle());
  }
  set_per_unit(engine, ParameterLayout::base_log_norm, log_norm);
  if (layout.dense_metric) set_axis(engine, layout.metric_factor(), frozen.factor, layout.triangle());
}

void adapt(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
           ChainRunResult& result, std::vector<double>& positions, std::vector<int>& superchain) {
  const std::vector<std::uint32_t> units =
      options.pooled ? std::vector<std::uint32_t>{options.units[0]} : options.units;
  const int d = context.target->dim(), num_units = int(units.size());
  using Instrument = SamplerConfig::Instrument;
  Frozen& f = result.frozen;
  f.model = config.model;
  f.step_size.assign(num_units, config.step_size > 0 ? config.step_size : 0.1);
  f.scale.assign(std::size_t(num_units) * d, 1.0);
  f.log_zeta.assign(num_units, 0.0);
  f.scout_gradients.assign(num_units, 0.0);
  f.warmup_gradients.assign(num_units, 0.0);
  f.trajectory_time.assign(num_units, config.trajectory_time > 0 ? config.trajectory_time : 1.0);

  const std::vector<Eigen::VectorXd> known = read_starts(options.init, d);
  ScoutResult found;
  const bool bridge = config.instrument == Instrument::bridge;
  if (bridge || options.init == "scout") {
    found = scout(context, units, config.scout_particles, options.init_scale, known);
    f.scout_gradients = found.gradients;
    f.scout_log_z = found.log_z;
    f.scout_log_z_se = found.log_z_se;
    if (config.metric != "unit") f.scale = found.sd;
  }
  if (bridge) {
    f.base_mean = found.mean;
    f.base_sd = found.sd;
    for (double& s : f.base_sd) s *= config.base_inflation;
    for (int u = 0; u < num_units; ++u) f.log_zeta[u] = found.log_z[u] + config.tilt + 2 * found.log_z_se[u];
  } else if (config.instrument == Instrument::tempered) {
    for (double& z : f.log_zeta) z = config.tilt;
  }
  for (double& z : f.log_zeta) z = double(float(z));  // as the engine holds it
  if (!config.base_sd.empty()) {
    f.base_mean.clear();
    f.base_sd.clear();
    for (int u = 0; u < num_units; ++u) {
      f.base_mean.insert(f.base_mean.end(), config.base_mean.begin(), config.base_mean.end());
      f.base_sd.insert(f.base_sd.end(), config.base_sd.begin(), config.base_sd.end());
    }
  }
  const int triangle = d * (d + 1) / 2;
  const bool may_be_full = bridge && config.base_sd.empty() && !std::isfinite(config.model.box) && d > 1;
  if (may_be_full && (config.base_covariance == "full" ||
                      (config.base_covariance == "auto" && d <= 64 && correlated(found)))) {
    set_full_base(found, config, f);
  } else if (config.model.dense_metric) {
    f.factor.assign(std::size_t(num_units) * triangle, 0.0);
    for (int u = 0; u < num_units; ++u)
      for (int i = 0; i < d; ++i) f.factor[u * triangle + i * (i + 1) / 2 + i] = f.scale[u * d + i];
  }

  // A crowd of chains adapts each replicate, however few go on to be recorded.
  const int recorded = options.pooled ? int(options.units.size()) * options.chains : options.chains;
  const int per = std::max(recorded, config.adapt ? config.warmup_chains : 1);
  EngineSpec spec = engine_spec(context, f.model, units, per);
  spec.transition = config.transition;
  if (options.warmup_draws) {
    spec.draws = 1;
    result.warmup.chains.resize(options.chains);
    std::iota(result.warmup.chains.begin(), result.warmup.chains.end(), 0);
    spec.stored_chains = result.warmup.chains;
  }
  auto engine = context.target->engine(spec);
  superchain.resize(per);
  // Superchains of one size among the recorded chains, as nested R-hat needs them.
  int group = !options.superchains ? 1 : options.chains >= 64 ? 16 : options.chains >= 16 ? 2 : 1;
  // Each known point is to be some superchain's.
  if (!known.empty()) group = std::clamp(options.chains / int(known.size()), 1, group);
  while (options.chains % group != 0) --group;
  for (int c = 0; c < per; ++c) superchain[c] = c / group;
  const auto x = starts(context, *engine, config.model, options, units, found, known, superchain);
  set_frozen(*engine, config, f);
  engine->set_position(x);
  if (config.adapt && config.step_size == 0) first_step_sizes(context, *engine, f, x);
  set_frozen(*engine, config, f);
  engine->initialize();
  for (double& g : f.warmup_gradients) g += double(per) * engine->samples();

  // Iterations are traded for chains, but not below 200.
  const std::int64_t iterations = std::max<std::int64_t>(std::min<std::int64_t>(options.warmup, 200),
                                                         options.warmup * options.chains / per);
  Tuner tuner(config, f);
  Window window(num_units, d, config.model.dense_metric);
  std::vector<double> centre(std::size_t(num_units) * d, 0.0);
  // The metric is learned from warm-up where no scout has seen the whole target.
  const bool learn_metric =
      config.adapt && config.metric != "unit" && (found.particles == 0 || config.model.dense_metric);
  const Tally tally(context, [&] {
    return RunHealth::Counts{std::accumulate(f.warmup_gradients.begin(), f.warmup_gradients.end(), 0.0), NAN};
  });
  std::int64_t next_metric = std::min<std::int64_t>(iterations / 4, 75);
  for (std::int64_t t = 0; t < iterations; ++t) {
    set_per_unit(*engine, ParameterLayout::step_size, f.step_size);
    set_per_unit(*engine, ParameterLayout::trajectory_time, f.trajectory_time);
    LaunchSpec launch;
    launch.key = context.key;
    launch.begin = kWarmupIterations + std::uint32_t(t);
    launch.end = launch.begin + 1;
    launch.num_leapfrog = config.num_leapfrog;
    launch.jitter = config.jitter;
    launch.chees = config.adapt && config.transition == TransitionKind::hmc && config.trajectory_time == 0 &&
                   config.num_leapfrog == 0;
    engine->advance(launch);
    if (options.warmup_draws && t % options.thin == 0) {
      append_draws(result.warmup, *engine, 1, (iterations - 1) / options.thin + 1, false);
      result.warmup_step_size.push_back(f.step_size[0]);
    }
    const auto stats = engine->take_stats();
    const auto gradients = unit_means(stats, stat_gradients, engine->chains(), num_units);
    for (int u = 0; u < num_units; ++u) f.warmup_gradients[u] += gradients[u] * per;
    if (config.adapt) {
      tuner.update(config.harmonic ? harmonic_acceptance(stats, engine->chains(), num_units)
                                   : unit_means(stats, stat_acceptance, engine->chains(), num_units),
                   unit_means(stats, stat_chees, engine->chains(), num_units),
                   launch.chees && t >= iterations / 10);
      if (learn_metric || launch.chees) window.add(engine->position(), engine->chains(), engine->samples());
      if (launch.chees && t % 10 == 9) {
        for (int u = 0; u < num_units; ++u)
          for (int i = 0; i < d; ++i) centre[u * d + i] = window.mean(u, i);
        set_axis(*engine, engine->layout().centre(), centre, d);
      }
      if (learn_metric && t + 1 >= next_metric && t + 1 <= iterations - iterations / 5) {
        for (int u = 0; u < num_units; ++u) {
          const Eigen::MatrixXd s = window.covariance(u);
          for (int i = 0; i < d; ++i) f.scale[u * d + i] = std::sqrt(s(i, config.model.dense_metric ? i : 0));
          if (config.model.dense_metric) {
            const Eigen::MatrixXd c = s.llt().matrixL();
            for (int i = 0; i < d; ++i)
              for (int j = 0; j <= i; ++j) f.factor[u * triangle + i * (i + 1) / 2 + j] = c(i, j);
          }
        }
        window.clear();
        tuner.restart();
        next_metric = 2 * (t + 1);
        set_frozen(*engine, config, f);
      }
    }
    context.progress("warm-up", double(t) / iterations);
  }
  if (config.adapt) tuner.freeze();

  // Hand the recorded chains on: the first of each unit; under pooling, one crowd member per chain of the
  // batch.
  const auto end = engine->position();
  const int rows = engine->rows(), total = int(options.units.size()) * options.chains;
  positions.resize(std::size_t(rows) * total);
  for (int c = 0; c < total; ++c) {
    const int from = options.pooled ? c : c / options.chains * per + c % options.chains;
    for (int r = 0; r < rows; ++r)
      positions[std::size_t(r) * total + c] = end[std::size_t(r) * engine->chains() + from];
  }
  if (options.pooled) {
    auto spread = [&](std::vector<double>& v, std::size_t width) {
      if (v.empty()) return;
      const std::vector<double> one(v.begin(), v.begin() + width);
      v.clear();
      for (std::size_t u = 0; u < options.units.size(); ++u) v.insert(v.end(), one.begin(), one.end());
    };
    spread(f.base_precision, triangle);
    for (auto* v : {&f.step_size, &f.trajectory_time, &f.log_zeta, &f.base_log_det, &f.scout_gradients,
                    &f.warmup_gradients, &f.scout_log_z, &f.scout_log_z_se})
      spread(*v, 1);
    for (auto* v : {&f.scale, &f.base_mean, &f.base_sd}) spread(*v, d);
    spread(f.factor, triangle);
  }
  superchain.resize(options.chains);
  to_chain_major(result.warmup);
}

}  // namespace lockstep
