// SPDX-License-Identifier: Apache-2.0
#pragma once
// One batch of chains on many engines: of several processes, or of several GPUs of one. Runs see an Engine.
#include <functional>
#include <memory>
#include <vector>

#include "host/engines/units.hpp"

namespace lockstep {

/// The stretches that chains are cut into, as even as whole tiles allow, or whole units where they must stay
/// together: where each begins, and the end of the last. Some are empty where there are more shards than chains.
/// `unit`: of each chain.
std::vector<int> cut_chains(const std::vector<std::uint32_t>& unit, int shards, bool whole_units);

/// Owns the engines of this process, each with a stretch of the chains (a shard), and answers for all: with
/// the rows of every shard of every process side by side, in the order of chains. Since no bit of a chain
/// depends on the others of its batch, it gives the bits of one engine. What returns numbers of chains is an
/// exchange: all processes call the same methods in the same order, and learn there that one has failed.
/// Padding columns are zero.
class ShardedEngine : public Engine {
 public:
  /// Makes the engine of a slice, on the thread that is going to run it; `shard`: of how many in this process.
  using Make = std::function<std::unique_ptr<Engine>(const EngineSpec& slice, int shard)>;
  /// `shards`: of this process, one at least. `whole_units`: chains of a unit swap, so they stay together.
  ShardedEngine(const EngineSpec& whole, int shards, bool whole_units, const Make& make);
  ~ShardedEngine() override;

  int dim() const override { return any().dim(); }
  int samples() const override { return any().samples(); }
  int rows() const override { return any().rows(); }
  int cache_rows() const override { return any().cache_rows(); }
  ParameterLayout layout() const override { return any().layout(); }
  MomentLayout moment_layout() const override { return any().moment_layout(); }

  void set_parameters(int first, std::span<const double> rows) override;
  void set_position(std::span<const double> rows) override;
  std::vector<double> position() override;
  std::vector<double> gradient() override;
  std::vector<double> cache() override;
  std::vector<double> state() override;
  void set_state(std::span<const double> rows) override;
  std::vector<double> fields() override;
  void set_shared(int list, const UnitList& of_unit) override;
  void set_base(const UnitList& of_unit) override;
  void initialize() override;
  void set_beta(std::span<const double> per_chain) override;
  std::vector<double> beta() override;
  std::vector<double> set_ladder(std::vector<double> beta, std::vector<double> log_weight,
                                 std::vector<double> step_size) override;
  void advance(const LaunchSpec& spec) override;
  std::vector<double> trace() override;
  std::vector<double> stats(bool reset) override;
  std::vector<double> moments(bool reset) override;
  std::span<const float> draws(int count) override;
  std::vector<float> overview() override;
  /// Of this process.
  std::size_t bytes() const override;

 private:
  class Thread;
  struct Shard {
    int first = 0, chains = 0;       // without chains its engine has one, for its shape, that never moves
    int stored = 0;                  // of them, chains whose draws are stored
    std::unique_ptr<Thread> thread;  // where there are several in this process
    std::unique_ptr<Engine> engine;
  };
  /// A table that is to be put together: how many columns a shard has of it, each process, and all (with
  /// padding); and how many rows (0: as many as the engines say).
  struct Table {
    int Shard::*width;
    const std::vector<int>& columns;
    int stride;
    std::size_t rows = 0;
  };

  const Engine& any() const { return *shards_.front().engine; }
  static EngineSpec slice(const EngineSpec& whole, const Shard& shard, int shards);
  /// f(shard) of all in this process, each on its thread; throws what the first of them has thrown.
  void each(const std::function<void(Shard&)>& f);
  /// f(engine, its chains' columns of [row][chain]) of those that have chains.
  template <class F>
  void give(std::span<const double> rows, F&& f);
  template <class T, class Read>
  std::vector<T> gather(const Table& table, const Read& read);
  template <class Read>
  std::vector<double> of_chains(const Read& read);

  std::vector<Shard> shards_;          // of this process
  std::vector<int> columns_, stored_;  // chains of each process; those whose draws are stored
  std::size_t trace_rows_, overview_rows_;
  std::vector<float> seen_;  // draws
  bool all_stored_;
};

/// The engine of a run: the target's own, or where several processes or GPUs share the run, its shards.
std::unique_ptr<Engine> make_engine(const RunContext& context, const EngineSpec& spec);

/// Gives it the context's lists: those of its first transition, then of jumps and of regenerations.
void set_lists(Engine& engine, const RunContext& context, const TransitionInfo& first,
               const std::vector<std::uint32_t>& units);

}  // namespace lockstep
