// SPDX-License-Identifier: Apache-2.0
#include "host/options/sampler_config.hpp"

#include <fmt/format.h>

#include "host/util/errors.hpp"
#include "host/util/settings.hpp"
#include "host/util/suggest.hpp"
#include "kernels/iterations.hpp"
#include "kernels/regeneration.hpp"

namespace lockstep {
namespace {

/// int z(beta) g(beta) d beta must be finite, or the chain drifts to beta = 0 and x = infinity.
void require_proper(const ModelSpec& m, int dim, Tails tails) {
  if (m.box < std::numeric_limits<double>::infinity()) return;
  if (tails == Tails::heavy)
    throw UserError(
        "pure tempering of a heavy-tailed target is improper (its tempered densities have no integral). "
        "Use sampler.instrument=bridge, or a sampler.box");
  if (!m.learned ? m.fixed_beta > 0 : m.low > 0) return;
  if (m.learned && m.g_exponent > 0.5 * dim - 1) return;
  throw UserError(fmt::format(
      "pure tempering down to beta = 0 is improper in {} dimensions (the chain drifts to beta = 0 and x = "
      "infinity). "
      "Set sampler.beta_min above 0, sampler.box, sampler.g_exponent above {}, or sampler.instrument=bridge",
      dim, 0.5 * dim - 1));
}

using Instrument = SamplerConfig::Instrument;

void read_pseudo_extended(SamplerConfig& c, SettingsReader& s, const RunOptions& run, int dim, Tails tails) {
  const bool paper = run.paper_settings;
  c.model.kind = ModelKind::pseudo_extended;
  c.model.pseudo_samples = int(s.integer("pseudo_samples", paper ? 2 : 5, 1, 64));
  const auto instrument =
      s.one_of("instrument", paper ? "tempered" : "bridge", {"bridge", "tempered", "fixed"});
  c.instrument = instrument == "bridge"  ? Instrument::bridge
                 : instrument == "fixed" ? Instrument::fixed
                                         : Instrument::tempered;
  const bool tempered = c.instrument == Instrument::tempered;
  c.model.learned = c.instrument != Instrument::fixed && !s.has("beta");
  if (c.instrument == Instrument::fixed || (c.instrument == Instrument::bridge && s.has("base_sd"))) {
    read_normal_base(s, dim, c.base_mean, c.base_sd);
  }
  if (c.instrument != Instrument::fixed) {
    if (c.model.learned) {
      c.model.low = s.in_range("beta_min", tempered ? 0.001 : 0.0, 0, 1);
      c.model.high = s.in_range("beta_max", 1, 0, 1);
      if (!(c.model.low < c.model.high)) s.refuse("beta_max", "above beta_min");
      const char* never = tempered                      ? "instrument is tempered"
                          : s.has("box")                ? "box is given"
                          : c.model.pseudo_samples == 1 ? "pseudo_samples is 1"
                                                        : nullptr;
      if (never) s.no_effect({"flatten"}, never);
      c.flatten = !never && s.get<bool>("flatten", true);
      c.spreads = c.flatten && !s.has("g_exponent");
      c.model.g_exponent = c.spreads ? -0.5 : s.in_range("g_exponent", tempered ? 0.0 : -0.5, -0.99, 1000);
    } else {
      c.model.fixed_beta = s.in_range("beta", 0.5, 0, 1);
      for (const char* key : {"beta_min", "beta_max", "g_exponent", "scale_u", "flatten"})
        if (s.has(key))
          throw UserError(
              fmt::format("setting {} of sampler pe says how beta moves (setting beta fixes it). Leave one "
                          "of them out.",
                          key));
    }
    if (c.instrument == Instrument::bridge) {
      c.tilt = s.in_range("tilt", 3, -1000, 1000);
      c.base_inflation = s.in_range("base_inflation", 1.2, 0.1, 100);
      c.base_covariance = s.one_of("base_covariance", "auto", {"auto", "diagonal", "full"});
      const std::string base = s.has("base_sd") ? "gaussian" : s.has("base_covariance") ? "scout" : "auto";
      c.base = s.one_of("base", base, {"auto", "gaussian", "scout", "modes"});
      if (c.base == "gaussian" && !s.has("base_sd"))
        s.refuse("base", "gaussian with sampler.base_sd, or another");
      if (s.has("base_mean") && !s.has("base_sd")) s.refuse("base_mean", "beside sampler.base_sd");
      if (c.base != "gaussian" && s.has("base_sd")) s.refuse("base", "gaussian, or without sampler.base_sd");
      if (c.base == "modes") s.no_effect({"base_covariance", "base_inflation"}, "base is modes");
      c.least_tilt = s.has("scale_u") ? 0 : 0.01;
      if (c.model.learned) c.scale_u = s.positive("scale_u", 7);
    } else {
      c.tilt = s.in_range("tilt", 0, -1000, 1000);
    }
  }
  if (s.has("box")) c.model.box = s.positive("box", 1);
  if (tempered) require_proper(c.model, dim, tails);
}

void read_trajectory(SamplerConfig& c, SettingsReader& s) {
  // The bridge's best time hardly depends on the target once the metric is the target's own spread: measured,
  // 0.8 costs half the gradients per effective draw of what ChEES finds on the extended space
  // (docs/decisions/0006-defaults.md).
  const double standard_time = c.instrument == Instrument::bridge ? 0.8 : 0;
  c.num_leapfrog = s.has("num_leapfrog") ? int(s.integer("num_leapfrog", 10, 1, 1024)) : 0;
  const bool sets_time = s.has("trajectory_time") || (standard_time > 0 && c.num_leapfrog == 0);
  c.trajectory_time = sets_time ? s.positive("trajectory_time", standard_time) : standard_time;
  if (c.num_leapfrog > 0 && s.has("trajectory_time"))
    throw UserError(
        fmt::format("settings num_leapfrog and trajectory_time of sampler {} are both given (either sets the "
                    "length of a trajectory). Leave one of them out.",
                    c.name));
  c.jitter = s.get<bool>("jitter", true);
}

/// Those of the transition's settings that have to ascend, and do not.
void refuse_descending(const SamplerConfig& c, SettingsReader& s) {
  const auto value = [&](const std::string& name) {
    const auto& all = c.transition->settings;
    const auto is = [&](const TransitionSetting& one) { return one.name == name; };
    return c.settings.at(std::size_t(std::find_if(all.begin(), all.end(), is) - all.begin()));
  };
  const auto& names = c.transition->ascending;
  for (std::size_t k = 0; k + 1 < names.size(); ++k) {
    const double low = value(names[k]), high = value(names[k + 1]);
    if (low > high && s.has(names[k]))
      s.refuse(names[k], fmt::format("it must be at most {}, {:g}", names[k + 1], high));
    if (low > high) s.refuse(names[k + 1], fmt::format("it must be at least {}, {:g}", names[k], low));
  }
}

/// The transition's own settings; those of others would change nothing.
void read_own_settings(SamplerConfig& c, SettingsReader& s, const RunOptions& run,
                       const Transitions& transitions) {
  for (const TransitionSetting& own : c.transition->settings) c.settings.push_back(read_own_setting(s, own));
  refuse_descending(c, s);
  const auto known = s.known();
  for (const TransitionInfo* t : transitions)
    for (const TransitionSetting& other : t->settings)
      if (run.sampler_settings.contains(other.name) &&
          std::find(known.begin(), known.end(), other.name) == known.end())
        s.no_effect({other.name}, fmt::format("{} has it, not {}", t->name, c.transition->name));
}

/// Of a transition along a network of wormholes: what others of its settings make idle.
void read_network(SamplerConfig& c, SettingsReader& s) {
  const auto& shared = c.transition->shared;
  if (std::find(shared.begin(), shared.end(), "network") == shared.end()) return;
  bool worlds = false;
  for (std::size_t k = 0; k < c.settings.size(); ++k) {
    const std::string& name = c.transition->settings[k].name;
    worlds = worlds || (name == "worlds" && c.settings[k] > 1.5);
    if (s.has(name)) c.network_settings.push_back(name);
  }
  if (worlds)
    s.no_effect({"complete"}, "between two worlds wormholes lead from any mode to any");
  else
    s.no_effect({"separation"}, "there is one world unless sampler.worlds is 2");
  if (has_own_metric(*c.transition))
    s.no_effect({"metric"}, c.transition->name + " has its own: the identity, but for wormholes");
}

void refuse_several_samples(SettingsReader& s, const SamplerConfig& c, const std::string& name) {
  if (c.model.kind != ModelKind::plain)
    s.refuse(name, "false with sampler pe, whose states are of several samples");
}

/// Whether a transition that follows the sampler's own is switched on by its name, and its settings.
bool reads_follower(SettingsReader& s, const SamplerConfig& c, const std::string& name,
                    std::vector<double>& settings) {
  const TransitionInfo& follower = *find_transition(name);
  if (!s.has(name) || !s.get(name, false)) {
    for (const TransitionSetting& own : follower.settings)
      s.no_effect({own.name}, fmt::format("sampler.{} is not true", name));
    return false;
  }
  refuse_several_samples(s, c, name);
  if (c.transition->alone)
    s.refuse(name, "false with transition " + c.transition->name + ", which ends when it sees fit");
  for (const TransitionSetting& own : follower.settings) settings.push_back(read_own_setting(s, own));
  return true;
}

/// What is asked for and cannot be, or would change nothing.
void refuse_idle(const SamplerConfig& c, SettingsReader& s, const RunOptions& run) {
  if (!c.transition->gradients && run.gradients > 0)
    throw UserError(fmt::format(
        "{} computes no gradients (a budget of them would never be spent). Give --iterations, without "
        "--gradients{}",
        c.name == c.transition->name ? "sampler " + c.name
                                     : "transition " + c.transition->name + " of sampler " + c.name,
        c.name == c.transition->name ? "" : ", or another sampler.transition"));
  if (!c.transition->trajectory && run.gradients / (double(run.chains) * c.model.pseudo_samples) > 1 << 30)
    throw UserError(
        "--gradients asks for over 2^30 iterations of a chain (the random numbers are not enough). "
        "Give fewer, or more --chains");
  if (!c.transition->trajectory) s.no_effect(kTrajectoryKeys, c.transition->name + " has no trajectories");
  if (run.iterations > kMostIterations)
    throw UserError(
        fmt::format("--iterations is {} (the random numbers of a chain are numbered up to {}). Give fewer, "
                    "and more --chains",
                    run.iterations, kMostIterations));
  if (c.step_size > 0) s.no_effect({"target_acceptance", "acceptance_mean"}, "step_size is given");
  if (!c.adapt) s.no_effect({"warmup_chains"}, "nothing adapts");
  if (c.windows) s.no_effect({"warmup_chains"}, "in windows the recorded chains adapt themselves");
  if (run.init != "scout" && c.instrument != Instrument::bridge)
    s.no_effect({"scout_particles"}, "chains start at --init " + run.init + ", and no scout searches");
  if (c.instrument == Instrument::bridge && !c.base_sd.empty())
    s.no_effect({"base_inflation", "base_covariance"}, "base_sd is given");
  if (c.regeneration && !c.learns_modes())
    s.no_effect({"starts", "residual"}, "sampler.adaptations is 0: nothing is learned while it runs");
  if (c.first_starts() > 0 && !run.modes.empty())
    s.refuse("starts", "0 with --modes, which says what is known at first");
  if (c.base == "modes" && !c.mode_jumps)
    s.refuse("mode_jumps", "true with base modes, all of which no trajectory reaches");
  if (std::isfinite(c.model.box)) {
    if (c.base_covariance == "full") s.refuse("base_covariance", "diagonal or auto with sampler.box");
    if (c.base == "modes") s.refuse("base", "scout or gaussian with sampler.box");
  }
  const bool hmc = c.transition == transition_registry().front(), plain = c.model.kind == ModelKind::plain;
  if (run.paper_settings && plain && (!hmc || c.step_size > 0))
    throw UserError(fmt::format("--paper-settings has no effect on sampler {} (the papers' {}). Leave it out",
                                c.name, hmc ? "only say how its steps adapt" : "are of others"));
  if (run.init_scale != RunOptions().init_scale && run.init != "scout" && c.instrument != Instrument::bridge)
    throw UserError(fmt::format(
        "--init-scale has no effect on sampler {} with --init {} (no scout searches). Leave one of them out",
        c.name, run.init));
  if (!c.adapt && c.step_size == 0)
    throw UserError("sampler.adapt=none without sampler.step_size (nothing would choose the step). Set it");
}

}  // namespace

SamplerConfig sampler_config(const RunOptions& run, int dim, Tails tails, const Transitions& transitions) {
  SamplerConfig c;
  c.name = run.sampler.empty() ? "pe" : run.sampler;
  const auto of_transitions = names_of(transitions);
  std::vector<std::string> names = of_transitions;
  names.insert(names.begin() + 1, "pe");
  if (std::find(names.begin(), names.end(), c.name) == names.end())
    throw UserError("there is no sampler " + c.name + " (a run needs one it knows). " +
                    instead_of_sampler(c.name, names) + " See: lockstep samplers");
  SettingsReader s(run.sampler_settings, "sampler " + c.name);
  const bool pe = c.name == "pe", paper = run.paper_settings;
  if (pe) read_pseudo_extended(c, s, run, dim, tails);
  const std::string transition = pe ? s.one_of("transition", of_transitions.front(), of_transitions) : c.name;
  c.transition = transitions[std::find(of_transitions.begin(), of_transitions.end(), transition) -
                             of_transitions.begin()];
  c.metric = s.one_of("metric", "diagonal", {"unit", "diagonal", "dense"});
  c.model.dense_metric = c.metric == "dense";
  if (c.model.dense_metric && std::isfinite(c.model.box))
    s.refuse("metric", "unit or diagonal with sampler.box");
  c.step_size = s.has("step_size") ? s.positive("step_size", 1) : 0;
  const bool hmc = c.transition == transition_registry().front();
  if (c.transition->trajectory) read_trajectory(c, s);
  c.target_acceptance = s.in_range("target_acceptance",
                                   hmc && paper ? 0.8
                                   : hmc && pe  ? kExtendedAcceptance
                                                : c.transition->target_acceptance,
                                   0.05, 0.999);
  const auto adapt =
      s.one_of("adapt", !pe && c.transition->windows ? "windows" : "auto", {"auto", "windows", "none"});
  c.adapt = adapt != "none";
  c.windows = adapt == "windows";
  // The harmonic mean is deaf to no stuck chain; a random walk is meant to be rejected, and the papers' runs
  // adapted each chain by its own acceptance.
  const bool harmonic = !paper && c.transition->harmonic_mean;
  c.harmonic = s.one_of("acceptance_mean", harmonic ? "harmonic" : "arithmetic",
                        {"harmonic", "arithmetic"}) == "harmonic";
  // Beside the warm-up of many chains twice as many cost little, and bases are seldom narrower than the target.
  c.scout_particles = int(s.integer("scout_particles", run.chains >= 64 ? 4096 : 2048, 16, 1 << 20));
  c.warmup_chains = int(s.integer("warmup_chains", 32, 1, 1 << 16));
  if (c.transition->alone)
    s.no_effect({"mode_jumps"}, "beside transition " + c.transition->name + " there can be no other");
  c.darting = reads_follower(s, c, "darting", c.darting_settings);
  if (c.darting) s.no_effect({"mode_jumps"}, "sampler.darting takes their place");
  c.mode_jumps = !c.transition->alone && (c.darting || s.get("mode_jumps", true));
  c.regeneration = reads_follower(s, c, "regeneration", c.regeneration_settings);
  c.recycle = s.has("recycle") && s.get("recycle", false);
  if (c.recycle) refuse_several_samples(s, c, "recycle");
  if (c.recycle && c.regeneration)
    s.refuse("recycle", "false with sampler.regeneration, whose means are those over tours");
  c.needs_modes = (s.has("mode_jumps") && c.mode_jumps) || c.base == "modes" || c.darting || c.regeneration ||
                  c.recycle || !c.transition->shared.empty();
  reads_exact_draws(s);  // no sampler makes use of them
  read_own_settings(c, s, run, transitions);
  read_network(c, s);
  refuse_idle(c, s, run);
  s.finish();
  c.effective = s.effective();
  return c;
}

bool SamplerConfig::learns_modes() const {
  return regeneration && regeneration_settings[Regeneration::adaptations] > 0;
}

int SamplerConfig::first_starts() const {
  return learns_modes() ? int(regeneration_settings[Regeneration::starts]) : 0;
}

double read_own_setting(SettingsReader& s, const TransitionSetting& own) {
  const double value = s.in_range(own.name, own.standard, own.least, own.most);
  if (own.whole && value != std::floor(value)) s.refuse(own.name, "it must be a whole number");
  return value;
}

void read_normal_base(SettingsReader& s, int dim, std::vector<double>& mean, std::vector<double>& sd) {
  constexpr double kLeast = SettingsReader::kLeastPositive, kMost = SettingsReader::kMostPositive;
  mean = s.numbers("base_mean", 0, dim, -kMost, kMost);
  sd = s.numbers("base_sd", 1, dim, kLeast, kMost);
}

bool reads_exact_draws(SettingsReader& s) {
  return s.one_of("exact_draws", "auto", {"auto", "none"}) == "auto";
}

bool gives_evidence(const SamplerConfig& c) {
  return c.instrument == SamplerConfig::Instrument::bridge && c.model.learned && c.model.pseudo_samples > 1 &&
         c.model.low == 0 && c.model.high == 1;
}

}  // namespace lockstep
