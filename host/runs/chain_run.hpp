// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/moments.hpp"
#include "host/estimators/pe_evidence.hpp"
#include "host/estimators/tours.hpp"
#include "host/options/sampler_config.hpp"
#include "host/runs/base_density.hpp"
#include "host/runs/checkpoint.hpp"
#include "host/runs/mode_jumps.hpp"
#include "host/runs/overview.hpp"
#include "host/runs/recycling.hpp"
#include "host/runs/scout.hpp"
#include "host/runs/stored_draws.hpp"

namespace lockstep {

/// What adaptation settled for each unit, frozen before the first recorded iteration.
struct Frozen {
  ModelSpec model;  // the sampler's, with a full base and metric where they are asked for
  std::vector<double> step_size, trajectory_time;  // [unit]
  std::vector<double> scale;                       // [unit][axis]: square root of the inverse mass
  std::vector<double> factor;                      // [unit][triangle]: Cholesky factor, dense metric only
  std::vector<double> base_mean, base_sd;          // [unit][axis]; empty without a base
  std::vector<BaseDensity> full_base;              // [unit]; else of axes
  std::vector<double> log_zeta;                    // [unit]
  std::vector<double> bend;                        // [unit][4]; empty: 0
  std::vector<double> scout_gradients, search_gradients, warmup_gradients;
  std::vector<double> scout_log_z, scout_log_z_se;
  std::vector<BaseBridge> bridge;    // [unit], where the sampler gives log Z
  std::vector<double> warmup_log_z;  // [unit], where warm-up widened the base (base_widening.hpp); else NaN

  template <class Archive>
  void fields(Archive& archive) {
    archive("dense_metric", model.dense_metric);  // what adaptation may change in the model
    archive("base", model.base);
    archive("step_size", step_size);
    archive("trajectory_time", trajectory_time);
    archive("scale", scale);
    archive("factor", factor);
    archive("base_mean", base_mean);
    archive("base_sd", base_sd);
    archive("full_base", full_base);
    archive("log_zeta", log_zeta);
    archive("bend", bend);
    archive("scout_gradients", scout_gradients);
    archive("search_gradients", search_gradients);
    archive("warmup_gradients", warmup_gradients);
    archive("scout_log_z", scout_log_z);
    archive("scout_log_z_se", scout_log_z_se);
    archive("warmup_log_z", warmup_log_z);
    archive("bridge", bridge);
  }
  /// Gradients that a unit took before it recorded.
  double preparation(std::size_t unit) const {
    return scout_gradients[unit] + search_gradients[unit] + warmup_gradients[unit];
  }
  /// What one unit has settled, for so many.
  void spread(int units);
};

/// Of a unit's g, bend and all, what log Z goes by.
TiltedIntegral integral_of(const SamplerConfig& config, const Frozen& frozen, std::size_t unit);

/// Of a budget that pays for all of a run, what scout, search and warm-ups may take.
inline constexpr double kMostPrepared = 0.5;

/// What the options of a run say of each unit (chains and gradients are per unit, `se` is of every mean, as a
/// share of its sd, and draws of the warm-up are of one unit alone), and what its caller adds.
struct ChainRunOptions : ChainOptions {
  std::vector<std::uint32_t> units;
  bool whole_budget = false;  // of gradients, which pays for scout and warm-up too (kMostPrepared of it)
  double log_z_se = 0;        // stop when log Z is known to within this
  double planned = 0;         // gradients of the run, where that is not `gradients` or what its length says
  bool searches = false;      // for modes that are not known, before the warm-up
  bool superchains = true;    // chains share starts in groups, for nested R-hat
  bool pooled = false;        // one adaptation for all units
  bool covariance = false;
  std::int64_t longest = std::numeric_limits<std::int64_t>::max();  // end here, whatever the budget
  std::int64_t overview = 0;  // keep x of all chains of all units at so many iterations at most (Overview)
  int draw_units = 0;         // keep draws of the first so many units only; 0: of all

  /// What every launch of chains has, of the warm-up and recorded.
  LaunchSpec launch(const RunContext& context, const SamplerConfig& config) const;
};

/// What warm-up hands on.
struct Adapted {
  Frozen frozen;
  StoredDraws warmup;                    // x and what goes with it, never weighted
  std::vector<double> warmup_step_size;  // [draw]
  std::vector<double> positions;         // [row][unit * chains], then carried fields (carried_fields.hpp)
  std::vector<int> superchain;           // [chain of a unit]
  double warmup_seconds = 0, warmup_transitions = 0;  // the latter of one unit
  double jump_acceptance = NAN;  // in the second half of the warm-up, where chains jump between modes
  bool of_modes() const { return !frozen.full_base.empty() && frozen.full_base[0].components.size() > 1; }
  /// Whether that is worth their gradients; chains must also reach all of a base that is made of modes.
  bool jumps() const { return of_modes() || !(jump_acceptance < kIdleJumps); }
  std::vector<SearchResult> modes;  // [unit], of an adaptation; empty: not searched for

  template <class Archive>
  void fields(Archive& archive) {
    archive("frozen", frozen);
    archive("warmup", warmup);
    archive("warmup_step_size", warmup_step_size);
    archive("positions", positions);
    archive("superchain", superchain);
    archive("warmup_seconds", warmup_seconds);
    archive("warmup_transitions", warmup_transitions);
    archive("jump_acceptance", jump_acceptance);
    archive("modes", modes);
  }
};

struct ChainRunResult : Adapted {
  int followers = 0;               // RunContext::followers
  std::vector<TourMeans> tours;    // [unit], where chains begin anew
  std::vector<Recycled> recycled;  // [unit], where the sampler recycles
  std::vector<UnitMoments> units;
  std::vector<LogZ> log_z;  // [unit], where the sampler gives it (bridge on [0, 1])
  StoredDraws draws;        // where asked for
  Overview overview;
  double sampling_seconds = 0;
  bool interrupted = false;
};

/// Scout, warm-up, record: every unit on its own (unless pooled), all in lock step. A run that was
/// interrupted and resumed gives the same bits as one that was not.
ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options);

/// Scout and warm-up alone.
Adapted adapt(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options);

/// Writes step sizes and trajectory times into an engine, and the scale of the logits of beta:
/// sampler.scale_u, and at least what moves them by .01 a step. Where x forces steps to be tiny, beta would
/// stay where it began (docs/decisions/0014-modes.md).
void set_steps(Engine& engine, const SamplerConfig& config, const Frozen& frozen);
/// Writes all frozen parameters into an engine of units x chains.
void set_frozen(Engine& engine, const SamplerConfig& config, const std::vector<std::uint32_t>& units,
                const Frozen& frozen);

}  // namespace lockstep
