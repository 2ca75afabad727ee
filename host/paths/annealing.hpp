// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/paths/tempered_run.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

/// Steps of a trajectory of runs that linger, a quarter as long as others: into what these are too long for (the neck of a
/// funnel, where no run of a thousand levels came, nor any by longer steps) they lead those that are beside it.
inline constexpr int kLingerLeapfrog = 20;

struct AnnealingOptions {
  std::vector<double> ladder, step_size;  // 0 to 1 (reverse runs take them backwards)
  int runs = 1000, num_leapfrog = 1;
  int linger = 0;  // transitions at beta = 1 after the last level (forward)
  bool reverse = false;
  bool covariance = false;
};

struct AnnealingResult {
  std::vector<double> log_weight;  // [run]: of an unbiased estimate of Z / zeta; reverse: of zeta / Z
  WeightedMoments moments;         // of the last states, by weight (forward)
  std::vector<double> position;    // the last states, [row][run]
  BlockMeans drift;                // what these changed by while they lingered
  double acceptance = 0, divergences = 0, gradients = 0, seconds = 0;

  template <class Archive>
  void fields(Archive& archive) {
    archive("log_weight", log_weight);
    archive("moments", moments);
    archive("position", position);
    archive("drift", drift);
    archive("acceptance", acceptance);
    archive("divergences", divergences);
    archive("gradients", gradients);
    archive("seconds", seconds);
  }
};

/// Chains that were annealed along a ladder: the log weight of each (-infinity: it went wrong), the
/// engine's statistics, and what they drifted while they lingered.
struct AnnealedChains {
  std::vector<double> log_weight, stats;
  BlockMeans drift;
};

/// How: a transition at every level of the ladder but the first and the last; reverse: ladder and step sizes
/// backwards.
struct Annealing {
  std::vector<double> ladder, step_size;
  int num_leapfrog = 1;
  bool reverse = false;
  std::string stage;  // for progress
  int chunk = 64;     // iterations of a launch
  bool saves = true;  // and stops, where the user asks; or whoever asks for them does
  int linger = 0;     // transitions more at the last level: weights stay, and what moves with them is drift
};

/// Takes an engine's chains from `start` at the first level to the last.
AnnealedChains anneal_chains(const RunContext& context, Engine& engine, Annealing how,
                             const std::vector<double>& start);

/// Annealed importance sampling (Neal 2001), all runs in lock step: from independent draws of the base to the
/// target, or, reverse, from exact draws of the target to the base. Nothing adapts while it runs.
AnnealingResult anneal(const RunContext& context, const PathBase& base, const AnnealingOptions& options);

}  // namespace lockstep
