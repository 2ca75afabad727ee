// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/runs/chain_result.hpp"

namespace lockstep {

/// Learns what chains that begin anew go by (kernels/regeneration.hpp), sampler.adaptations times, between launches, from
/// the history so far: modes by a search of a tenth of the gradients spent, which begins where chains are too, the weights of
/// their normals by shares of visits, (n_k + 1) / (n + K), and log c by the mean of log w where chains are. A unit learns once
/// no chain is in a tour by what was before the last, at the first boundary from iteration 64 on, 128, 256, ..; each
/// chain takes it up when it begins anew, so that means over tours stay exact.
/// Where it learned a mode, tours begin to count there: see drop_tours. Then nobody is in one, and networks of wormholes,
/// jumps and darts go by all the modes too.
class RegenerationLearner {
 public:
  RegenerationLearner(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                      const std::vector<SearchResult>& modes);

  /// After iteration t, of chains that have spent so many gradients each unit.
  void update(Engine& engine, std::int64_t t, double spent);
  /// What was learned, into an engine that goes on with it: its lists, and where modes were learned, all that go by modes.
  void hand_on(Engine& engine) const;
  /// Gradients of searches for a unit; how often it has learned.
  double gradients(std::size_t unit) const { return units_[unit].gradients; }
  double epoch(std::size_t unit) const { return units_[unit].epoch; }
  /// Recorded iterations of a unit, of all its chains, until the last time that a mode was learned: no tour has them.
  double dropped_draws(std::size_t unit) const { return units_[unit].dropped; }
  /// What its searches cost and how many draws were dropped, into a result that has its tours.
  void finish(ChainRunResult& result) const;
  const ModeLibrary& library(std::size_t unit) const { return units_[unit].library; }
  /// As the kernel reads it.
  const std::vector<double>& list(std::size_t unit) const { return units_[unit].list; }
  bool idle() const { return units_.empty(); }

  template <class Archive>
  void fields(Archive& archive) {
    archive("units", units_);
  }

 private:
  struct Unit {
    ModeLibrary library;
    std::vector<double> visits;  // [mode]
    std::vector<double> list;    // as the kernel reads it
    std::vector<double> newest;  // the mixture at its head
    double epoch = 0, gradients = 0, due = 64, dropped = 0;

    template <class Archive>
    void fields(Archive& archive) {
      archive("library", library);
      archive("visits", visits);
      archive("list", list);
      archive("newest", newest);
      archive("epoch", epoch);
      archive("gradients", gradients);
      archive("due", due);
      archive("dropped", dropped);
    }
  };
  /// Whether there were any.
  bool add_modes(Unit& unit, std::uint32_t number, const Eigen::MatrixXd& x, double most);
  void drop_tours(Engine& engine, std::size_t unit);
  std::vector<double> mixture(const Unit& unit, const Eigen::MatrixXd& x,
                              const std::vector<double>& log_density) const;

  const RunContext& context_;
  const SamplerConfig& config_;
  const ChainRunOptions& options_;
  double spread_ = 0, level_ = 0, most_ = 0;
  std::vector<int> known_;  // [unit]: modes at the beginning
  std::vector<Unit> units_;
};

}  // namespace lockstep
