// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/log_z_estimators.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/paths/tempered_pilot.hpp"
#include "host/runs/recorders.hpp"

namespace lockstep {

/// What every run of chains that travel between beta = 0 and 1 is told.
struct PathRunOptions {
  int groups = 8, num_leapfrog = 5;
  double gradients = 0;         // budget, discarded share included
  std::int64_t iterations = 0;  // instead, where above 0: of each chain, the discarded ones not counted
  double discard = 0.2;         // share of the iterations that is not recorded
  double se = 0;                // stop when the standard error of log Z is below; 0: at the budget
  double least = 0;             // gradients before that: errors of short runs are not to be relied on
  bool covariance = false;
  std::int64_t draw_limit = 0;  // keep the states at the end of at most so many launches; 0: of every one
};

/// How many iterations each chain makes, and how many of them it discards: a multiple of `chunk`.
struct RunLength {
  std::int64_t total, discarded;
  /// From the options, where an iteration of all chains costs so many gradients; `least` for small budgets.
  RunLength(const PathRunOptions& options, double per_iteration, std::int64_t least, std::int64_t chunk);
};

/// What each reports.
struct PathRunResult {
  WeightedMoments moments;  // at beta = 1
  WeightedDraws draws;
  double acceptance = 0, divergences = 0, gradients = 0, round_trips = 0, seconds = 0;
  std::int64_t iterations = 0, discarded = 0;  // per chain
  bool interrupted = false;

  template <class Archive>
  void fields(Archive& archive) {
    archive("moments", moments);
    archive("draws", draws);
    archive("acceptance", acceptance);
    archive("divergences", divergences);
    archive("gradients", gradients);
    archive("round_trips", round_trips);
    archive("seconds", seconds);
    archive("iterations", iterations);
    archive("discarded", discarded);
  }
  /// From the statistics of so many chains, and what initialising them cost.
  void report(const StatSums& stats, int chains, double initial_gradients);
};

struct TemperedOptions : PathRunOptions {
  Tempering tempering = Tempering::levels;
  PathMoves moves = {};  // with the control of joint tempering
  int chains = 1024;
  std::vector<double> log_weight = {};  // v_k of the levels; empty: the pilot's
  bool start_at_base = false;  // chains begin with draws of the base at beta = 0, not with the pilot's seeds
  double tail = -INFINITY;     // of levels: Delta below which a state counts for TemperedResult::tail
  bool draws_suffice = false;  // for `se`, unless the tail is much of the target
  bool stones = false;         // log Z is that of by_stones, not with beta integrated out
};

/// log Z by stepping stones where beta is continuous. They can be off by more than groups tell, where a few rare visits are much
/// of a sum, and so can the estimate with beta integrated out, where beta has not settled: which holds is not known, and what
/// they differ by is part of the error.
LogZ by_stones(const LogZ& stepping, const LogZ& ends);

struct TemperedResult : PathRunResult {
  LogZ ends, stepping;           // log Z with beta integrated out, and by stepping stones
  LogZ drift;                    // second half less first half, of the former
  std::vector<double> counters;  // of the transition
  std::vector<double> top,
      tail;  // [group]: sums of p(beta = 1 | x) over all states, and over those of the tail
  std::vector<std::vector<double>> tail_moments;  // [group][MomentLayout row]: of states there, by weight

  template <class Archive>
  void fields(Archive& archive) {
    PathRunResult::fields(archive);
    archive("ends", ends);
    archive("stepping", stepping);
    archive("drift", drift);
    archive("counters", counters);
    archive("top", top);
    archive("tail", tail);
    archive("tail_moments", tail_moments);
  }
};

/// Simulated tempering on the pilot's ladder (Tempering::levels), with given weights or with the pilot's,
/// which spend an eighth of the time at either end; continuous tempering with beta drawn from its conditional
/// (Tempering::gibbs) or moved with x (Tempering::joint), from the pilot's seeds or, to see what they are
/// worth, from draws of the base. log Z by EndpointEvidence, whose terms are bounded (with a control of
/// plateaus it counts the draws at beta = 1 and 0), and by stepping stones over the ladder, which are right
/// whatever the marginal of beta, also while it settles. Standard errors by the jackknife over groups, whose
/// pilots and chains are independent of each other.
TemperedResult run_tempered(const RunContext& context, const PathBase& base, const Pilot& pilot,
                            const TemperedOptions& options);

/// Whether some transitions should take shorter steps: where discarded iterations diverged, there is a narrow
/// region that the usual step does not enter.
bool needs_short_steps(const StatSums& stats, double transitions);

}  // namespace lockstep
