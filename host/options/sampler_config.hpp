// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/options.hpp"
#include "host/options/samplers.hpp"
#include "targets/registry.hpp"

namespace lockstep {

class SettingsReader;

/// A sampler's settings, checked, with the defaults of `lockstep samplers NAME`.
struct SamplerConfig {
  std::string name;  // of a transition, or pe
  ModelSpec model;
  const TransitionInfo* transition = transition_registry().front();
  std::vector<double> settings;  // of the transition's own
  enum class Instrument { none, bridge, tempered, fixed } instrument = Instrument::none;
  std::string metric = "diagonal";  // unit | diagonal | dense
  bool adapt = true;
  bool windows = false;        // each replicate's own chains adapt, in Stan's windows
  double step_size = 0;        // 0: adapted by dual averaging
  int num_leapfrog = 0;        // 0: from the trajectory time
  double trajectory_time = 0;  // in the metric's units; 0: ChEES
  double target_acceptance = 0.8;
  bool harmonic = true;  // dual averaging follows the harmonic mean acceptance over chains
  bool jitter = true;
  // Base of the bridge, or the fixed instrument.
  double base_inflation = 1.2;           // of its standard deviations
  double tilt = 3;                       // log zeta = log Z-hat + tilt + 2 se
  bool flatten = false;                  // takes the path's normalising constants out of g
  bool spreads = false;                  // and lets beta go where the path is long
  std::string base_covariance = "auto";  // diagonal, full, or full where the scout sees correlated axes
  double scale_u = 1;                    // of the logits of beta in the metric
  double least_tilt = 0;  // and what moves them by so much a step: x may force steps to be tiny
  std::vector<double> base_mean, base_sd;  // of instrument fixed; empty for the bridge: learned
  int scout_particles = 2048;
  int warmup_chains = 32;                      // at least so many chains adapt a replicate
  bool mode_jumps = true;                      // where the run searches for modes
  bool darting = false, regeneration = false;  // darts in place of jumps; tours (kernels/regeneration.hpp)
  std::vector<double> darting_settings, regeneration_settings;
  bool recycle = false;  // means over all places that jumps lead to (recycling.hpp)
  /// Whether modes may be learned while it runs (regeneration_learner.hpp).
  bool learns_modes() const;
  /// Of the first search, where others follow at regenerations: its descents. 0: the usual search.
  int first_starts() const;
  std::vector<std::string>
      network_settings;      // given, of a network of wormholes: idle where there are not two modes
  bool needs_modes = false;  // asks for what is made of modes: a study then searches for them too
  // Of the bridge: auto (modes where they suffice, else scout), gaussian (base_mean, base_sd), scout, modes.
  std::string base = "auto";
  Settings effective;  // for summary.json
};

/// Settings of a run's sampler for a target of `dim` dimensions and known tails. Throws UserError for unknown
/// names and improper tempering (methods: int z(beta) g(beta) d beta must be finite).
SamplerConfig sampler_config(const RunOptions& run, int dim, Tails tails,
                             const Transitions& transitions = transition_registry());

/// A setting that a transition declares, checked.
double read_own_setting(SettingsReader& s, const TransitionSetting& own);

/// Settings base_mean and base_sd, 0 and 1 where they are not given.
void read_normal_base(SettingsReader& s, int dim, std::vector<double>& mean, std::vector<double>& sd);

/// Setting exact_draws: whether those of a target may be made use of (auto), or not (none), as of a target of the user's.
bool reads_exact_draws(SettingsReader& s);

/// Whether log Z can be had: learned temperatures all the way from a proper base, with another pseudo-sample.
bool gives_evidence(const SamplerConfig& config);

}  // namespace lockstep
