// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/schedules.hpp"
#include "host/options/evidence_method.hpp"

namespace lockstep {

/// Settings of a method of evidence, checked, with the defaults of `lockstep samplers NAME`.
struct EvidenceConfig {
  const EvidenceMethod* of = nullptr;  // the method's row
  const std::string& method() const { return of->info.name; }
  bool is(EvidenceKind kind) const { return of->kind == kind; }
  int groups = 8;
  // The base.
  // auto (mean-field where the target has one, else modes where they suffice, else scout), gaussian, mean-field, scout,
  // modes, warmup, advi, mixture.
  std::string base = "auto";
  std::vector<double> base_mean, base_sd;
  double base_inflation = 1.2;
  int base_starts = 2000, scout_particles = 2048, bootstrap = -1;  // -1: by the base
  // The path.
  int num_leapfrog = 5, pilot_leapfrog = 5;
  double target_acceptance = 0.9, rate = 0.25, pilot_share = 0.2, discard = 0.2;
  int steps = 0;  // of the ladder of annealing and of parallel tempering; 0: by the barrier
  std::string schedule = "barrier";  // "pilot": the ladder is the pilot's own
  std::vector<double> given_ladder;  // of schedule "given"
  std::vector<double> weights;       // log weights of its levels; empty: from the pilot
  /// Whether simulated tempering is to leave the pilot's ladder.
  bool own_ladder() const { return is(EvidenceKind::chains) && of->scheduled && schedule != "pilot"; }
  /// The ladder of annealing or of simulated tempering, or where that of parallel tempering begins.
  std::vector<double> ladder(const CommunicationBarrier& barrier) const;
  const TransitionInfo* transition = nullptr;  // of chains that move along the path; null: the first, HMC
  std::vector<double> transition_settings;
  // How much, over everything.
  double gradients = 1e8;
  std::int64_t iterations = 0;                      // instead, where above 0: recorded, per chain
  int chains = 1024, particles = 4096, copies = 0;  // copies 0: by the budget
  int seeds = 1024;                                 // states that the pilot keeps at every level
  bool mode_jumps = true;
  bool base_draws = false;        // may stand beside the chains
  bool exact_draws = true;        // may be made use of, where the target has them
  bool start_at_base = false;     // chains begin with draws of the base, not with seeds
  SamplerConfig pseudo_extended;  // of method pe
  Settings effective;
  bool is_resumable() const { return of->is_resumable(); }
};

/// Of a run: its budget, or where it ends by an error or a length before that, at most 1e7.
double planned_gradients(const EvidenceConfig& config, const RunOptions& run);

/// UserError where one of these options (keys of RunOptions) is other than its default: `what` does not use it.
void refuse_unused(const RunOptions& run, const std::vector<std::string>& keys, const std::string& what);
/// Throws UserError. For method pe, `run` gets the chains and the warm-up that fit the budget.
EvidenceConfig evidence_config(RunOptions& run, int dim, Tails tails);

}  // namespace lockstep
