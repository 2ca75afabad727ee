// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/chain_result.hpp"
#include "host/runs/draw_plan.hpp"
#include "host/runs/run.hpp"

namespace lockstep {

/// Numbers of stored draws that a launch keeps at most.
inline constexpr std::int64_t kLaunchDraws = std::int64_t(1) << 22;

/// Length of the launch at iteration t: the batch length that t iterations have led to, so that long runs do
/// not stop for breath every 64 iterations.
std::int64_t launch_length(std::int64_t t);

/// Batches that the sums of a unit of so many chains are kept in at most.
std::int64_t most_batches(int chains);

/// Chunk sums of one unit, merged pairwise whenever there are twice as many as wanted, so that the batches
/// depend on nothing but the number of iterations.
class Batches {
 public:
  Batches(int chains, const MomentLayout& layout, int known_starts);
  /// Adds the sums [row][chain] of `iterations` iterations to the open batch, starting a new one at its
  /// length. The unit's chains begin at `first` of `total`.
  void add(const std::vector<double>& moments, int first, int total, std::int64_t iterations);
  UnitMoments take(std::vector<double> stats) const;
  /// First and second moments alone, which are few beside the cross moments.
  UnitMoments take_marginal() const;
  std::int64_t iterations() const { return iterations_; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
    archive("length", length_);
    archive("open", open_);
    archive("iterations", iterations_);
  }

 private:
  int chains_, known_starts_;
  MomentLayout layout_;
  std::int64_t most_, length_ = kChunk, open_ = 0, iterations_ = 0;
  std::vector<std::vector<double>> sums_;  // [chain][batch * row]
};

/// Until when a run goes on: up to an iteration of each unit. Where nobody knows the gradients of an iteration before it is
/// made, that is one which no budget reaches, and a unit ends when it has spent so many.
struct RunEnd {
  std::vector<std::int64_t> last;
  std::vector<double> gradients = {};
};

/// What a run has recorded so far: the sums of each unit, its evidence, and stored draws.
class Recording {
 public:
  /// `known_starts`: of UnitMoments.
  Recording(const SamplerConfig& config, const ChainRunOptions& options, const MomentLayout& layout,
            RunEnd end, int known_starts, int threads);

  /// What warm-up has settled: an estimate of log Z goes by it.
  void take_frozen(const Frozen& frozen);
  /// Which draws are stored, and what an engine is asked to keep of each launch for them and the overview.
  void prepare(EngineSpec& spec) const;
  /// The next launch goes up to the next chunk boundary, the next unit's end, or where no more draws can be
  /// stored; sets what it stores.
  void place(LaunchSpec& launch);
  /// Takes what it leaves.
  void record(Launched& launched);
  /// Ends the units that have spent their gradients (RunEnd), each at the first boundary where it has. Returns the least
  /// share of them that a unit has spent, 0 where there is no such budget.
  double end_spent();
  /// Whether it ended where a run may stop. Sums run on over launches that were cut short for somebody else's
  /// sake, so that not one bit depends on company; and a run stops at boundaries only, so that none depends on
  /// an interruption.
  bool at_boundary() const { return since_ == recorded_; }

  /// Estimates of the first unit so far.
  UnitMoments so_far() const { return batches_[0].take(stats_[0]); }
  UnitMoments marginal_so_far() const { return batches_[0].take_marginal(); }
  /// One of the statistics so far, over all units.
  double stat(StatRow row) const {
    double sum = 0;
    for (const auto& stats : stats_) sum += stats[row];
    return sum;
  }
  /// The evidence of a unit so far.
  LogZ log_z(std::size_t unit, const Frozen& frozen) const {
    return evidence_[unit].value(frozen.log_zeta[unit]);
  }
  /// Hands everything to the result of the run, which has what warm-up handed on.
  void finish(ChainRunResult& result);

  template <class Archive>
  void fields(Archive& archive) {
    archive("batches", batches_);
    archive("stats", stats_);
    archive("evidence", evidence_);
    archive("draws", draws_);
    archive("overview", overview_);
    archive("since", since_);
  }

 private:
  /// Takes the engine's running sums of iterations [begin, end) for the units that end there, or for all that
  /// are still going where `reset` starts new sums.
  void add_sums(Engine& engine, std::int64_t begin, std::int64_t end, bool reset);
  /// Adds the present pairs of the units still going: the chains' states at chunk boundaries are enough,
  /// neighbours being correlated. The launch began at `begin`.
  void add_evidence(Engine& engine, std::int64_t begin, std::int64_t end);
  /// Takes the draws that it stored.
  void add_draws(Engine& engine);

  const SamplerConfig& config_;
  int chains_, dim_, threads_;  // chains: per unit
  std::int64_t end_;            // of the last unit
  DrawPlan plan_;
  bool weighted_;
  int capacity_ = 0;           // draws that a launch can store
  int stored_ = 0, seen_ = 0;  // draws of the launch in hand; its draws of the overview
  Overview overview_;
  std::vector<std::int64_t> last_;
  std::vector<double> budget_;                    // RunEnd::gradients
  std::int64_t since_ = 0, recorded_ = 0;         // where the engine's running sums begin and end
  std::vector<Batches> batches_;                  // [unit]
  std::vector<std::vector<double>> stats_;        // [unit][StatRow, then the transition's counters]
  std::vector<PseudoExtendedEvidence> evidence_;  // [unit], or none
  StoredDraws draws_;
};

}  // namespace lockstep
