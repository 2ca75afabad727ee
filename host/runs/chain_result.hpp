// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run of chains is asked for, and what it comes to.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "host/engines/units.hpp"
#include "host/estimators/moments.hpp"
#include "host/estimators/pe_evidence.hpp"
#include "host/estimators/tours.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/modes/mode_jumps.hpp"
#include "host/modes/search_result.hpp"
#include "host/options/options.hpp"
#include "host/options/sampler_config.hpp"
#include "host/runs/frozen.hpp"
#include "host/runs/overview.hpp"
#include "host/runs/stored_draws.hpp"

namespace lockstep {

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
  LaunchSpec launch(const RunContext& context, const SamplerConfig& config) const {
    LaunchSpec launch;
    launch.key = context.key;
    launch.num_leapfrog = config.num_leapfrog;
    launch.jitter = config.jitter;
    return launch;
  }
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

/// What draws say when each stands for its orbit: the estimate of E f is the mean over draws of sum_y w f(y), w the
/// probabilities of that step, which is the mean of f after it, given x (waste recycling: Frenkel 2004; Delmas & Jourdain
/// 2009). It is unbiased where draws are, and holds of the variance between modes only what the weights vary: nothing where
/// modes are normal, nor then, for means, of that within them, for y and its mirror image cancel. A gradient a point.
struct Recycled {
  double states = 0, evaluations = 0;
  /// Empty where those of the chains themselves are all known better: of a run fewer draws are taken than it has. Errors are no
  /// smaller than what a run of so many draws can exclude.
  std::optional<WeightedMoments> moments;
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

}  // namespace lockstep
