// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/moments.hpp"
#include "host/estimators/pe_evidence.hpp"
#include "host/options/sampler_config.hpp"
#include "host/runs/checkpoint.hpp"
#include "host/runs/overview.hpp"
#include "host/runs/scout.hpp"

namespace lockstep {

/// What adaptation settled for each unit, frozen before the first recorded iteration.
struct Frozen {
  ModelSpec model;  // the sampler's, with a full base and metric where they are asked for
  std::vector<double> step_size, trajectory_time;    // [unit]
  std::vector<double> scale;                         // [unit][axis]: square root of the inverse mass
  std::vector<double> factor;                        // [unit][triangle]: Cholesky factor, dense metric only
  std::vector<double> base_mean, base_sd;            // [unit][axis]; empty without a base
  std::vector<double> base_precision, base_log_det;  // [unit][triangle], [unit]: full base only
  std::vector<double> log_zeta;                      // [unit]
  std::vector<double> scout_gradients, warmup_gradients;
  std::vector<double> scout_log_z, scout_log_z_se;

  template <class Archive>
  void fields(Archive& archive) {
    archive("dense_metric", model.dense_metric);  // what adaptation may change in the model
    archive("dense_base", model.dense_base);
    archive("step_size", step_size);
    archive("trajectory_time", trajectory_time);
    archive("scale", scale);
    archive("factor", factor);
    archive("base_mean", base_mean);
    archive("base_sd", base_sd);
    archive("base_precision", base_precision);
    archive("base_log_det", base_log_det);
    archive("log_zeta", log_zeta);
    archive("scout_gradients", scout_gradients);
    archive("warmup_gradients", warmup_gradients);
    archive("scout_log_z", scout_log_z);
    archive("scout_log_z_se", scout_log_z_se);
  }
};

/// Stored draws of a run, [chain][draw][..].
struct StoredDraws {
  int draws = 0;
  std::int64_t first = 0;   // the iteration of the first
  std::vector<int> chains;  // of the batch
  std::vector<float> x, log_density, acceptance, steps, diverging, energy;
  std::vector<double> weighted_x, log_weight, beta;

  /// f(array) of everything that there is one of for each draw.
  template <class F>
  void arrays(F f) {
    for (auto* v : {&x, &log_density, &acceptance, &steps, &diverging, &energy}) f(*v);
    for (auto* v : {&weighted_x, &log_weight, &beta}) f(*v);
  }
  template <class Archive>
  void fields(Archive& archive) {
    archive("count", draws);
    archive("chains", chains);
    archive("x", x);
    archive("log_density", log_density);
    archive("acceptance", acceptance);
    archive("steps", steps);
    archive("diverging", diverging);
    archive("energy", energy);
    archive("weighted_x", weighted_x);
    archive("log_weight", log_weight);
    archive("beta", beta);
  }
};

struct ChainRunOptions {
  std::vector<std::uint32_t> units;
  int chains = 1;  // per unit
  std::int64_t warmup = 1000, iterations = 1000;
  double gradients = 0;       // per unit; 0: none
  bool whole_budget = false;  // which pays for scout and warm-up too
  double se = 0;              // stop when every mean is known to this share of its sd
  double log_z_se = 0;        // or log Z to within this
  std::string init = "scout";
  double init_scale = 10;
  bool superchains = true;  // chains share starts in groups, for nested R-hat
  bool pooled = false;      // one adaptation for all units
  bool covariance = false;
  std::int64_t longest = std::numeric_limits<std::int64_t>::max();  // end here, whatever the budget
  std::int64_t draws = 0;       // stored, at most so many of a coordinate, or kAllDraws
  bool weighted_draws = false;  // and the weighted states that they come from
  bool warmup_draws = false;    // of one unit
  std::int64_t overview = 0;    // keep x of all chains at so many iterations at most (Overview); of one unit
  int draw_units = 0;           // keep draws of the first so many units only; 0: of all
  int thin = 1;
  CheckpointPlan checkpoint;
};

struct ChainRunResult {
  Frozen frozen;
  std::vector<UnitMoments> units;
  std::vector<LogZ> log_z;  // [unit], where the sampler gives it (bridge on [0, 1])
  StoredDraws draws;        // where asked for
  Overview overview;
  StoredDraws warmup;                    // x and what goes with it, never weighted
  std::vector<double> warmup_step_size;  // [draw]
  double warmup_seconds = 0, sampling_seconds = 0;
  bool interrupted = false;
};

/// Scout, warm-up, record: every unit on its own (unless pooled), all in lock step. A run that was
/// interrupted and resumed gives the same bits as one that was not.
ChainRunResult run_chains(const RunContext& context, const SamplerConfig& config,
                          const ChainRunOptions& options);

/// Warm-up alone, which gives `frozen` and, where they are asked for, the warm-up's draws; `positions`
/// receives [row][unit * chains].
void adapt(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
           ChainRunResult& result, std::vector<double>& positions, std::vector<int>& superchain);

/// Writes the frozen parameters into an engine of units x chains.
void set_frozen(Engine& engine, const SamplerConfig& config, const Frozen& frozen);

}  // namespace lockstep
