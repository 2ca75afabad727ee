// SPDX-License-Identifier: Apache-2.0
// Warm-up: from the scout to frozen step sizes, trajectory times, metric and base.
#include "host/runs/adapt.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "host/engines/points_file.hpp"
#include "host/engines/sharded_engine.hpp"
#include "host/modes/given_points.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/runs/base_widening.hpp"
#include "host/runs/carried_fields.hpp"
#include "host/runs/found_modes.hpp"
#include "host/runs/gates.hpp"
#include "host/runs/path_profile.hpp"
#include "host/runs/recording.hpp"
#include "host/runs/run.hpp"
#include "host/runs/starts.hpp"
#include "host/runs/tuner.hpp"
#include "host/runs/window.hpp"
#include "kernels/iterations.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

/// Warm-up of all units at once: a recorder that adapts.
class WarmUp {
 public:
  WarmUp(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
         const ScoutResult& found, const std::vector<SearchResult>& modes)
      : context_(context),
        config_(config),
        options_(options),
        found_(found),
        units_(options.pooled ? std::vector<std::uint32_t>{options.units[0]} : options.units),
        known_(near_starts(options.init, *context.target)),
        dim_(context.target->dim()),
        window_(int(units_.size()), dim_, config.model.dense_metric),
        centre_(units_.size() * dim_, 0.0) {
    guess(modes);
    if (out_.of_modes()) context_ = with_jumps(context, units_, modes, frozen().full_base);
    // A crowd of chains adapts each replicate, however few go on to be recorded.
    const int recorded = options.pooled ? int(options.units.size()) * options.chains : options.chains;
    per_ = std::max(recorded, config.adapt && !config.windows ? config.warmup_chains : 1);
    // Iterations are traded for chains, but not below 200.
    iterations_ = config.windows ? options.warmup
                                 : std::max<std::int64_t>(std::min<std::int64_t>(options.warmup, 200),
                                                          options.warmup * options.chains / per_);
    // The metric is learned from warm-up where no scout has seen the whole target.
    if (config.adapt && config.metric != "unit" &&
        (found.particles == 0 || config.model.dense_metric || config.windows))
      metric_ = config.windows ? stan_windows(iterations_) : doubling_windows(iterations_);
    learn_time_ = config.adapt && config.transition->trajectory && config.trajectory_time == 0 &&
                  config.num_leapfrog == 0;
    for (std::size_t u = 0; u < units_.size(); ++u)
      prepared_.push_back((u < found.gradients.size() ? found.gradients[u] : 0) +
                          (u < modes.size() ? modes[u].gradients : 0));
  }

  Adapted run() {
    if (config_.flatten) flatten(context_, config_, units_, frozen());
    widening_.emplace(context_, config_, frozen(), iterations_);
    EngineSpec spec = engine_spec(context_, frozen().model, units_, per_);
    spec.transition = config_.transition;
    spec.settings = {config_.settings};
    if (options_.warmup_draws) {
      spec.draws = 1;
      out_.warmup.chains.resize(options_.chains);
      std::iota(out_.warmup.chains.begin(), out_.warmup.chains.end(), 0);
      spec.stored_chains = out_.warmup.chains;
    }
    const auto engine = make_engine(context_, spec);
    set_superchains();
    RunLoop loop{.context = context_,
                 .engine = *engine,
                 .name = "adapting",
                 .end = iterations_,
                 .launch = options_.launch(context_, config_),
                 .first = kWarmupIterations,
                 .stage = "warm-up"};
    loop.launch.chees = learn_time_;
    if (!loop.take_up(*this)) begin(*engine);
    set_frozen(*engine, config_, units_, frozen());
    if (learn_time_) set_axis(*engine, engine->layout().centre(), centre_, dim_);
    const auto& gradients = frozen().warmup_gradients;
    while (loop.next()) {
      set_steps(*engine, config_, frozen());
      loop.launch.end = loop.launch.begin + 1;
      loop.launch.record = widening_->within(loop.t);
      Launched launched = loop.advance();
      record(launched);
      loop.save(*this);
      loop.tell({std::accumulate(gradients.begin(), gradients.end(), 0.0), NAN});
    }
    if (config_.adapt) tuner_->freeze();
    shorten(1, 2 * kLeastIterations, options_.chains);
    out_.jump_acceptance = jumps_.accepted / jumps_.proposed;
    out_.warmup_transitions = double(per_) * double(iterations_);
    hand_on(*engine);
    return std::move(out_);
  }

  void record(Launched& launched) {
    Engine& engine = launched.engine;
    const std::int64_t t = launched.spec.begin - kWarmupIterations;
    const int units = int(units_.size());
    Frozen& f = frozen();
    if (options_.warmup_draws && t % options_.thin == 0) {
      out_.warmup.append(engine, 1, false, context_.threads);
      out_.warmup_step_size.push_back(f.step_size[0]);
    }
    const auto& stats = launched.stats();
    const auto gradients = unit_means(stats, stat_gradients, engine.chains(), units);
    for (int u = 0; u < units; ++u) f.warmup_gradients[u] += gradients[u] * per_;
    if (2 * t >= iterations_) jumps_.add(stats, *config_.transition, engine.chains());
    if (!config_.adapt) return;
    tuner_->update(followed_acceptance(stats, engine.chains()),
                   unit_means(stats, stat_chees, engine.chains(), units),
                   learn_time_ && t >= iterations_ / 10);
    shorten(kMostPrepared, iterations_ - t - 1, per_);
    if (metric_.within(t) || learn_time_) window_.add(engine.position(), engine.chains(), engine.samples());
    if (learn_time_ && t % 10 == 9) {
      for (int u = 0; u < units; ++u)
        for (int i = 0; i < dim_; ++i) centre_[u * dim_ + i] = window_.mean(u, i);
      set_axis(engine, engine.layout().centre(), centre_, dim_);
    }
    if (metric_.end(t + 1)) {
      take_metric();
      set_frozen(engine, config_, units_, f);
      if (config_.windows && config_.step_size == 0) find_step_sizes(engine, engine.position());
    }
    widening_->record(launched, t);
    if (const auto widened = widening_->widened(t + 1, f); !widened.empty()) {
      set_frozen(engine, config_, units_, f);
      engine.initialize();
      for (const std::size_t u : widened) {
        f.warmup_gradients[u] += double(per_) * engine.samples();
        tuner_->restart(u);
      }
    }
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("adapted", out_);
    archive("tuner", *tuner_);
    archive("window", window_);
    archive("widening", *widening_);
    archive("centre", centre_);
    archive("jumps_proposed", jumps_.proposed);
    archive("jumps_accepted", jumps_.accepted);
  }

 private:
  Frozen& frozen() { return out_.frozen; }

  /// [unit], what the step sizes follow: the harmonic mean over chains, which hears of the few that are stuck; but where
  /// few are for good, as on a thin ridge, steps are not shortened for them until all others accept all but everything.
  std::vector<double> followed_acceptance(const std::vector<double>& stats, int chains) const {
    constexpr double kMost = 0.98;
    auto mean = unit_means(stats, stat_acceptance, chains, int(units_.size()));
    if (!config_.harmonic) return mean;
    const auto harmonic = harmonic_acceptance(stats, chains, int(units_.size()));
    const double least = std::max(5.0, (1 - config_.target_acceptance) / (1 - kMost));
    for (std::size_t u = 0; u < mean.size(); ++u) mean[u] = std::max(harmonic[u], 1 - least * (1 - mean[u]));
    return mean;
  }
  /// Shortens trajectories of a given time to what this share of a budget that pays for all still pays of so many iterations: the
  /// warm-up takes half of it at most, with scout and search (or a quarter, if these took more), and a run that can be judged
  /// is to be left. A budget of iterations, or of what is recorded alone, shortens nothing.
  void shorten(double share, std::int64_t iterations, int chains) {
    constexpr double kLeast = 0.25;
    const double wanted = config_.trajectory_time;
    if (!options_.whole_budget || !(options_.gradients > 0) || !(wanted > 0) || iterations <= 0) return;
    Frozen& f = frozen();
    const double copies = config_.model.pseudo_samples;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const double left = std::max(share * options_.gradients - prepared_[u], kLeast * options_.gradients) -
                          f.warmup_gradients[u];
      const double most = std::max(1.0, left / (double(iterations) * chains * copies));
      f.trajectory_time[u] = std::min(wanted, most * f.step_size[u]);
    }
  }
  int triangle() const { return dim_ * (dim_ + 1) / 2; }

  /// What adaptation begins with: what the scout has found, in the sampler's terms.
  void guess(const std::vector<SearchResult>& modes) {
    const int units = int(units_.size());
    const bool bridge = config_.instrument == SamplerConfig::Instrument::bridge;
    Frozen& f = frozen();
    f.model = config_.model;
    f.step_size.assign(units, config_.step_size > 0 ? config_.step_size : 0.1);
    f.scale.assign(std::size_t(units) * dim_, 1.0);
    f.warmup_log_z.assign(units, NAN);
    f.log_zeta.assign(units, 0.0);
    f.scout_gradients.assign(units, 0.0);
    f.warmup_gradients.assign(units, 0.0);
    f.trajectory_time.assign(units, config_.trajectory_time > 0 ? config_.trajectory_time : 1.0);
    if (found_.particles > 0) {
      f.scout_gradients = found_.gradients;
      f.scout_log_z = found_.log_z;
      f.scout_log_z_se = found_.log_z_se;
      f.scout_variance = found_.variance;
      if (config_.metric != "unit" && !config_.windows) f.scale = found_.sd;
    }
    if (bridge) {
      f.base_mean = found_.mean;
      f.base_sd = found_.sd;
      for (double& s : f.base_sd) s *= config_.base_inflation;
      for (int u = 0; u < units; ++u) f.log_zeta[u] = found_.log_z[u] + config_.tilt + 2 * found_.log_z_se[u];
    } else if (config_.instrument == SamplerConfig::Instrument::tempered) {
      for (double& z : f.log_zeta) z = config_.tilt;
    }
    for (double& z : f.log_zeta) z = double(float(z));  // as the engine holds it
    if (!config_.base_sd.empty()) {
      f.base_mean.clear();
      f.base_sd.clear();
      for (int u = 0; u < units; ++u) {
        f.base_mean.insert(f.base_mean.end(), config_.base_mean.begin(), config_.base_mean.end());
        f.base_sd.insert(f.base_sd.end(), config_.base_sd.begin(), config_.base_sd.end());
      }
    }
    const bool may_be_full =
        bridge && config_.base_sd.empty() && !std::isfinite(config_.model.box) && dim_ > 1;
    if (may_be_full && (config_.base_covariance == "full" ||
                        (config_.base_covariance == "auto" && dim_ <= 64 && correlated(found_)))) {
      set_full_base(found_, config_, f);
    } else if (config_.model.dense_metric) {
      f.factor.assign(std::size_t(units) * triangle(), 0.0);
      for (int u = 0; u < units; ++u)
        for (int i = 0; i < dim_; ++i) f.factor[u * triangle() + i * (i + 1) / 2 + i] = f.scale[u * dim_ + i];
    }
    if (bridge && config_.base_sd.empty()) {
      if (f.full_base.empty() && !std::isfinite(config_.model.box)) reach_modes(modes, f);
      set_mode_bases(found_, config_, modes, f);
    }
    tuner_.emplace(config_, f);
  }

  /// Superchains of one size among the recorded chains, as nested R-hat needs them.
  void set_superchains() {
    out_.superchain.resize(per_);
    int group = !options_.superchains ? 1 : options_.chains >= 64 ? 16 : options_.chains >= 16 ? 2 : 1;
    // Each known point is to be some superchain's.
    if (!known_.empty()) group = std::clamp(options_.chains / int(known_.size()), 1, group);
    while (options_.chains % group != 0) --group;
    for (int c = 0; c < per_; ++c) out_.superchain[c] = c / group;
  }

  void begin(Engine& engine) {
    Frozen& f = frozen();
    const auto x =
        starts(context_, engine, {options_.init, config_.model.box, units_, found_, known_, out_.superchain});
    set_frozen(engine, config_, units_, f);
    engine.set_position(x);
    find_step_sizes(engine, x);
  }

  /// At these positions, where they are to adapt; and adapts from there.
  void find_step_sizes(Engine& engine, const std::vector<double>& x) {
    Frozen& f = frozen();
    if (config_.adapt && config_.step_size == 0) first_step_sizes(context_, engine, f, x);
    set_frozen(engine, config_, units_, f);
    engine.initialize();
    for (double& g : f.warmup_gradients) g += double(per_) * engine.samples();
    tuner_.emplace(config_, f);
  }

  void take_metric() {
    Frozen& f = frozen();
    const bool dense = config_.model.dense_metric;
    for (int u = 0; u < int(units_.size()); ++u) {
      const Eigen::MatrixXd s = window_.covariance(u);
      for (int i = 0; i < dim_; ++i) f.scale[u * dim_ + i] = std::sqrt(s(i, dense ? i : 0));
      if (!dense) continue;
      const Eigen::MatrixXd c = s.llt().matrixL();
      for (int i = 0; i < dim_; ++i)
        for (int j = 0; j <= i; ++j) f.factor[u * triangle() + i * (i + 1) / 2 + j] = c(i, j);
    }
    window_.clear();
    tuner_->restart();
  }

  /// Hands the recorded chains on: the first of each unit; under pooling, one crowd member per chain of the
  /// batch.
  void hand_on(Engine& engine) {
    auto end = engine.position();
    const auto carried = carried_fields(engine, *config_.transition);
    end.insert(end.end(), carried.begin(), carried.end());
    const int rows = int(end.size() / engine.chains()), total = int(options_.units.size()) * options_.chains;
    out_.positions.resize(std::size_t(rows) * total);
    for (int c = 0; c < total; ++c) {
      const int from = options_.pooled ? c : c / options_.chains * per_ + c % options_.chains;
      for (int r = 0; r < rows; ++r)
        out_.positions[std::size_t(r) * total + c] = end[std::size_t(r) * engine.chains() + from];
    }
    if (options_.pooled) frozen().spread(int(options_.units.size()));
    out_.superchain.resize(options_.chains);
    if (out_.warmup.draws > 0) out_.warmup.join();  // of one a launch
  }

  RunContext context_;
  const SamplerConfig& config_;
  const ChainRunOptions& options_;
  const ScoutResult& found_;
  const std::vector<std::uint32_t> units_;
  const std::vector<Eigen::VectorXd> known_;
  const int dim_;
  int per_ = 1;  // chains of a unit
  std::int64_t iterations_ = 0;
  MetricWindows metric_;
  bool learn_time_ = false;
  Adapted out_;
  JumpCounts jumps_;
  std::optional<Tuner> tuner_;
  std::optional<BaseWidening> widening_;
  Window window_;
  std::vector<double> centre_;
  std::vector<double> prepared_;  // [unit]: gradients of scout and search
};

Adapted warmed_up(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                  ScoutResult found, const FoundModes& modes, const std::vector<std::uint32_t>& units) {
  const RunContext jumping =
      with_lists(config.mode_jumps ? with_jumps(context, units, modes.of) : context, config, units, modes.of);
  const auto stream = [&](std::uint32_t unit) {  // no start of the search has its number
    return RandomStream(Purpose::mode_start, context.key, (std::uint64_t(unit) << 32) | 0xffffffffu);
  };
  // Points of --init have room already.
  const bool makes_room = config.mode_jumps && read_starts(options.init, context.target->dim()).empty();
  for (std::size_t u = 0; u < modes.of.size(); ++u) {
    const ModeLibrary& library = modes.of[u].library;
    if (modes.of[u].full()) continue;
    correct_log_z(found, u, library, *context.target);
    if (makes_room) include_modes(found, u, library, stream(units[u]));
  }
  return WarmUp(jumping, config, options, found, modes.of).run();
}

}  // namespace

Adapted adapt(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options) {
  const auto clock = Clock::now();
  constexpr int kMostWarmUps = 3;  // each with the modes that the one before has come upon
  const bool scouts = config.instrument == SamplerConfig::Instrument::bridge || options.init == "scout";
  const std::vector<std::uint32_t> units =
      options.pooled ? std::vector<std::uint32_t>{options.units[0]} : options.units;
  Stage<ScoutResult> stage(*context.stages, "scout");
  if (!stage.done())
    stage.keep(!scouts ? ScoutResult()
                       : scout(context, units, config.scout_particles, options.init_scale,
                               near_starts(options.init, *context.target)));
  const ScoutResult& found = stage.result();
  Stage<FoundModes> search(*context.stages, "modes");
  if (!search.done()) search.keep(found_modes(context, config, options, found, units));
  FoundModes modes = search.result();
  Adapted out;
  for (int pass = 1;; ++pass) {
    Stage<FoundModes> next(*context.stages, fmt::format("modes {}", pass + 1));
    if (!next.done()) {
      Stage<Adapted> warm_up(*context.stages, "warm-up");
      if (!warm_up.done()) warm_up.keep(warmed_up(context, config, options, found, modes, units));
      if (pass == kMostWarmUps || !more_modes(context, config, options, found, warm_up.result(), modes)) {
        out = std::move(warm_up.result());
        break;
      }
      next.keep(std::move(modes));
    }
    modes = next.result();
  }
  for (std::size_t u = 0; u < options.units.size(); ++u)
    out.frozen.warmup_gradients[u] += modes.warm_ups[options.pooled ? 0 : u];
  out.modes = std::move(modes.of);
  // Adapted together they go by the modes of the first.
  if (options.pooled && !out.modes.empty()) out.modes.resize(options.units.size(), out.modes[0]);
  out.frozen.search_gradients.clear();
  for (std::size_t u = 0; u < options.units.size(); ++u)
    out.frozen.search_gradients.push_back(out.modes.empty() ? 0 : out.modes[u].gradients);
  if (gives_evidence(config)) bridge_to_bases(context, config, options, out.frozen);
  out.warmup_seconds = seconds_since(clock);
  return out;
}

}  // namespace lockstep
