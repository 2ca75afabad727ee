// SPDX-License-Identifier: Apache-2.0
#pragma once
// Targets with many items (images): the path of each from its own normal base to its posterior, and runs
// along them. Unit u of a batch is item u, so that what an item gives does not depend on which others run
// beside it.
#include "host/estimators/log_sums.hpp"
#include "host/estimators/schedules.hpp"
#include "host/runs/smc_sampler.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// What moves chains along the paths, the same for all items; frozen before anything is recorded.
struct ItemSchedule {
  std::vector<double> ladder, step_size;  // [level], from 0 to 1
  std::vector<double> log_z;              // [level]: mean over items of log (z_beta / zeta^beta), for weights
  int num_leapfrog = 10;
};

/// A group of items with as many runs each; chain r of item i is number i * runs + r.
struct ItemBatch {
  std::vector<std::uint32_t> items;
  int runs = 1;
  bool prior = false;                 // paths begin at N(0, I), whatever base the target has
  std::vector<double> log_zeta = {};  // [item] a guess of log Z that is taken out of the target; empty: 0
};

struct ItemRuns {
  std::vector<double> log_weight;  // [item][run]: of unbiased estimates of Z, reverse: of 1 / Z
  std::vector<LogZ> log_z;         // [item]: of tempered runs
  std::vector<double> acceptance;  // [item]
  // [item], of tempered runs: round trips of beta a run, and log Z of the second half less that of the first.
  std::vector<double> round_trips, drift;
  double gradients = 0, divergences = 0;
};

/// Engine on the paths of a batch; its bases, and a metric of their standard deviations, are set.
std::unique_ptr<Engine> item_engine(const RunContext& context, const ItemBatch& batch,
                                    Control control = Control::none);

/// Independent draws of the items' bases, [axis][chain].
std::vector<double> item_draws(const RunContext& context, const ItemBatch& batch, std::uint32_t iteration);

/// log (1/n) sum over n draws of the base of density / base, with its standard error by the delta method: in
/// expectation a lower bound of log Z (Burda, Grosse & Salakhutdinov 2016). No gradient is needed, n are
/// counted.
ItemRuns importance_bound(const RunContext& context, const ItemBatch& batch);

/// Annealed importance sampling (Neal 2001) from draws of the bases to the posteriors, or, reverse, from the
/// exact draw of each item, the same for all its runs: their mean weight stays unbiased for 1 / Z, and its
/// error shows over items, not over runs (Wu et al. 2017).
ItemRuns anneal_items(const RunContext& context, const ItemBatch& batch, const ItemSchedule& schedule,
                      bool reverse);

/// Simulated (levels), Gibbs or joint continuous tempering from draws of the bases at beta = 0: as many
/// transitions as the schedule has steps, of which the first `discard` are not recorded; log Z with the
/// inverse temperature integrated out, its error by the jackknife over runs.
ItemRuns temper_items(const RunContext& context, const ItemBatch& batch, const ItemSchedule& schedule,
                      Tempering tempering, int iterations, double discard);

/// What a pilot over some items, evenly spread, found along the path: step sizes, and its communication
/// barrier, from which the schedule comes.
struct ItemPilot {
  std::vector<double> ladder, step_size, log_z, rates;  // [level]; rates: [step]
  double acceptance = 0, gradients = 0;
  CommunicationBarrier barrier() const { return {ladder, rates}; }
  /// Step sizes and log z on another ladder, interpolated.
  ItemSchedule on(std::vector<double> other, int num_leapfrog) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("ladder", ladder);
    archive("step_size", step_size);
    archive("log_z", log_z);
    archive("rates", rates);
    archive("acceptance", acceptance);
    archive("gradients", gradients);
  }
};

/// These items annealed, with a step size that follows their acceptance, or, where one above 0 is given, that.
///
/// The context must live as long. Between two levels it can be stopped: a new one, made the same way, that
/// has read `fields` goes on bit for bit.
class ItemPilotRun {
 public:
  ItemPilotRun(const RunContext& context, bool prior, int num_leapfrog, double target_acceptance,
               double step_size);
  /// One level further; false at the end.
  bool step();
  /// Between two levels.
  void tell() const;
  /// What was found, once, at the end.
  ItemPilot finish();

  template <class Archive>
  void fields(Archive& archive) {
    archive("runs", *runs_);
    archive("found", found_);
    archive("log_z", log_z_);
  }

 private:
  static constexpr int kSteps = 100;

  const RunContext& context_;
  std::vector<double> ladder_;
  std::unique_ptr<SmcSampler> runs_;
  ItemPilot found_;                         // so far; step sizes as they came
  std::vector<std::vector<double>> log_z_;  // [level][item]
};

inline ItemPilot run_item_pilot(const RunContext& context, bool prior, int num_leapfrog,
                                double target_acceptance, double step_size) {
  ItemPilotRun run(context, prior, num_leapfrog, target_acceptance, step_size);
  while (run.step()) run.tell();
  return run.finish();
}

}  // namespace lockstep
