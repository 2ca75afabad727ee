// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "host/engines/base_density.hpp"
#include "host/estimators/pe_evidence.hpp"
#include "host/options/sampler_config.hpp"
#include "targets/engine.hpp"

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
  std::vector<LogZ> scout_variance;  // [unit][axis]: of its particles
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
    archive("scout_variance", scout_variance);
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

/// Writes step sizes and trajectory times into an engine, and the scale of the logits of beta:
/// sampler.scale_u, and at least what moves them by .01 a step. Where x forces steps to be tiny, beta would
/// stay where it began (docs/decisions/0014-modes.md).
void set_steps(Engine& engine, const SamplerConfig& config, const Frozen& frozen);
/// Writes all frozen parameters into an engine of units x chains.
void set_frozen(Engine& engine, const SamplerConfig& config, const std::vector<std::uint32_t>& units,
                const Frozen& frozen);

}  // namespace lockstep
