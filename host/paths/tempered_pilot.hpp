// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/log_sums.hpp"
#include "host/estimators/schedules.hpp"
#include "host/paths/path_base.hpp"
#include "host/runs/smc_sampler.hpp"
#include "host/runs/state_moments.hpp"

namespace lockstep {

/// Settings of the pilot and of the transitions at every level.
struct PilotOptions {
  int groups = 8;        // independent populations: what errors are judged by
  int particles = 1024;  // in all, a multiple of groups
  int seeds = 1024;      // chains to start, a multiple of groups
  int num_leapfrog = 5, moves = 1;
  static constexpr int kSettling = 4;  // transitions more at the base, which settle the step size
  double target_acceptance = 0.9;
  double rate = 0.25;  // of increments from level to level (schedules.hpp), which sets the number of levels
  int most_levels = 400;
  double longest = 1;  // step in beta from level to level
  /// Transitions at beta = 1 after the last level: what particles drift there, Delta in the first of them.
  int linger = 0, linger_of_delta = 0;
};

/// What a pilot found: everything that is then frozen, and where chains begin.
struct Pilot {
  std::vector<double> ladder, log_z, step_size;  // [level]; log_z from the base's, all groups together
  std::vector<double> group_log_z;               // [group]: log (Z / zeta) at beta = 1
  std::vector<int> group_ancestors;  // [group]: particles of the base from which the last ones come
  std::vector<double> group_ess;     // [group]: of the last level's weights, in particles
  double barrier = 0;
  std::vector<std::vector<float>> states;  // [level]: [row][seed]; seed s is of group s * groups / seeds
  double weight_ess = 0;                   // of the last level, over all groups, in particles
  // The particles at beta = 1: [row][particle], and their weights, which sum to 1 within a group.
  std::vector<double> last, last_weight;
  std::vector<double> curvature;  // [axis]: mean square of the target's gradient over them
  double acceptance = 0, gradients = 0, divergences = 0;
  double jump_acceptance = NAN;  // where particles jump between modes
  /// By how much block_means, of Delta = log base - log (target / zeta) in the first transitions, changed while particles
  /// lingered at beta = 1. By weight they are of the target, which transitions keep: but for chance nothing changes, unless
  /// most of them are where few should be.
  BlockMeans drift;

  /// log (Z / zeta) by the mean over groups, with its jackknife.
  Jackknife log_z_of_groups() const;
  /// Levels drawn uniformly, but the first and the last `end` times as often; one for each seed.
  std::vector<int> draw_levels(const StreamKey& key, int seeds, double end) const;
  /// Where seeds begin, [row][chain]: chain c takes seed seed[c] at level[c].
  std::vector<double> positions(const std::vector<int>& level, const std::vector<int>& seed) const;
  /// The same on another ladder: states of the next level above, log Z and step sizes in between.
  Pilot on_ladder(std::vector<double> other) const;
  /// Lambda(beta): every step of the ladder counts alike.
  CommunicationBarrier barriers() const;
  /// Step size at any beta, from the levels' by interpolation in the barrier.
  double step_size_at(double beta, const CommunicationBarrier& barrier) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("ladder", ladder);
    archive("log_z", log_z);
    archive("step_size", step_size);
    archive("group_log_z", group_log_z);
    archive("group_ancestors", group_ancestors);
    archive("group_ess", group_ess);
    archive("barrier", barrier);
    archive("states", states);
    archive("weight_ess", weight_ess);
    archive("last", last);
    archive("last_weight", last_weight);
    archive("curvature", curvature);
    archive("acceptance", acceptance);
    archive("gradients", gradients);
    archive("divergences", divergences);
    archive("jump_acceptance", jump_acceptance);
    archive("drift", drift);
  }

 private:
  /// The level below beta, and how far beta is from it to the next, in the barrier.
  std::pair<int, double> place(double beta, const CommunicationBarrier& barrier) const;
};

/// Sequential Monte Carlo from the base to the target, in independent groups of particles on one common
/// adaptive ladder (SmcOptions::Levels::common). Seeds at all levels: see docs/decisions/0007-evidence.md.
///
/// The context must live as long. Between two levels it can be stopped: a new one, made the same way, that
/// has read `fields` goes on bit for bit.
class PilotRun {
 public:
  PilotRun(const RunContext& context, const PathBase& base, const PilotOptions& options);
  /// One level further, or one transition at the last; false at the end.
  bool step();
  /// Between two levels.
  void tell() const;
  /// What was found, once, at the end.
  Pilot finish();

  template <class Archive>
  void fields(Archive& archive) {
    archive("particles", particles_);
    archive("found", found_);
    archive("lingered", lingered_);
  }

 private:
  void record_level();
  bool linger();
  BlockMeans means(const BlockMeans& about) const;

  const RunContext& context_;
  PilotOptions options_;
  SmcSampler particles_;
  Pilot found_;       // so far; step sizes as they came
  int lingered_ = 0;  // transitions after the last level
};

/// Made, run and saved.
Pilot run_pilot(const RunContext& context, const PathBase& base, const PilotOptions& options);
/// The same as a stage of that name.
const Pilot& pilot_stage(const RunContext& context, const std::string& name, const PathBase& base,
                         const PilotOptions& options);

}  // namespace lockstep
