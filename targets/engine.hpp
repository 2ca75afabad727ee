// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the host sees of a batch of chains: a model (target, path or pseudo-extended target) bound to a back
// end. One interface for every density, precision and device; numbers cross it in double, row by row.
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/lane_parameters.hpp"
#include "kernels/launch_spec.hpp"
#include "kernels/transition.hpp"

namespace lockstep {

enum class ModelKind { plain, path, pseudo_extended };
enum class Precision {
  single,
  mixed,
  double_
};  // state / energies: float/float, float/double, double/double

struct ModelSpec {
  ModelKind kind = ModelKind::plain;
  int pseudo_samples = 1;
  bool learned = true;  // inverse temperatures are part of the state
  double fixed_beta = 0, low = 0, high = 1, g_exponent = 0;
  double box = std::numeric_limits<double>::infinity();
  bool dense_metric = false;
  int base = 0;  // of a path or a pseudo-extended target, among BaseDensities (kernels/base.hpp)
  Control control = Control::none;  // of a path
};

struct EngineSpec {
  ModelSpec model;
  const TransitionInfo* transition = nullptr;      // of the registry; null: its first, HMC
  std::vector<const TransitionInfo*> then = {};    // made after it in every iteration: at most 15
  std::vector<std::vector<double>> settings = {};  // of each of them; where there are none, its defaults
  Precision precision = Precision::mixed;
  bool blocks = false;  // the block driver also where a fused one is compiled: the same bits, slower
  int pack_width = 0;   // 0: the machine's; of the fused driver in tests others. 1: the scalar reference
  int threads = 1;
  bool cuda = false;
  int block_threads = 0;  // on a GPU: 32, 64, 128 or 256; 0: as many as fit best
  bool covariance = false;
  int draws = 0;                   // draws kept per launch; 0: none
  std::vector<int> stored_chains;  // whose draws these are, ascending; empty: all
  int overview = 0;                // draws of the overview kept per launch; 0: none
  int trace = 0;  // iterations per launch whose (beta, Delta) are kept; 0: none (models on a path only)
  std::vector<std::uint32_t> chain, unit;  // of every chain of the batch
};

/// Every sampler of kernels/transitions.list, in its order.
const std::vector<const TransitionInfo*>& transition_registry();
/// The transition of a name, sampler or not, or null.
const TransitionInfo* find_transition(const std::string& name);
inline const TransitionInfo& transition_of(const EngineSpec& spec) {
  return spec.transition != nullptr ? *spec.transition : *transition_registry().front();
}

/// A list of numbers for each unit of chains.
using UnitList = std::map<std::uint32_t, std::vector<double>>;

/// All transitions of an iteration.
inline std::vector<const TransitionInfo*> transitions_of(const EngineSpec& spec) {
  std::vector<const TransitionInfo*> all{&transition_of(spec)};
  all.insert(all.end(), spec.then.begin(), spec.then.end());
  return all;
}

class Engine {
 public:
  virtual ~Engine() = default;
  virtual int dim() const = 0;
  virtual int samples() const = 0;
  virtual int rows() const = 0;  // of a position
  virtual int cache_rows() const = 0;
  virtual ParameterLayout layout() const = 0;
  virtual MomentLayout moment_layout() const = 0;
  int chains() const { return chains_; }

  // All [row][chain].
  virtual void set_parameters(int first, std::span<const double> rows) = 0;  // as many rows as are given
  virtual void set_position(std::span<const double> rows) = 0;
  virtual std::vector<double> position() = 0;
  virtual std::vector<double> gradient() = 0;
  virtual std::vector<double> cache() = 0;
  /// All that the chains carry from one launch to the next, in rows: position, gradient, cache, inverse
  /// temperature, step size, what they remember (ChainRow), statistics since the last reset, the transitions' saved
  /// fields, which chain holds which level, counted from its own place (not the moments). An interrupted run goes on
  /// from it bit for bit, without initialize.
  virtual std::vector<double> state() = 0;
  virtual void set_state(std::span<const double> rows) = 0;
  /// The fields of its transitions (TransitionInfo::fields), one after the other; set_position makes them zero.
  virtual std::vector<double> fields() = 0;
  /// Sets the list of that number of the transitions' (TransitionInfo::shared, one after the other) for the chains of
  /// every unit; a unit that is not named has an empty one, as all have at first. Not part of state().
  virtual void set_shared(int list, const UnitList& of_unit) = 0;
  /// The numbers of a base that the chains of a unit share (kernels/base.hpp), for every unit. Not part of state().
  virtual void set_base(const UnitList& of_unit) = 0;
  /// Gradient and energy at the present positions; call after set_position or set_parameter.
  virtual void initialize() = 0;
  /// Models on a path: sets the inverse temperatures, and lets the cached log densities follow. No gradient.
  virtual void set_beta(std::span<const double> per_chain) = 0;
  virtual std::vector<double> beta() = 0;
  /// The ladder that tempering and annealing move on, with the log weight and the step size of each level.
  /// Returns its inverse temperatures as the state's precision holds them: those are the ones that count.
  ///
  /// For Tempering::swap a unit's chains are as many as the levels; chain k of a unit begins at level k, and
  /// the host sets the inverse temperatures and step sizes that go with that.
  virtual std::vector<double> set_ladder(std::vector<double> beta, std::vector<double> log_weight,
                                         std::vector<double> step_size) = 0;
  virtual void advance(const LaunchSpec& spec) = 0;
  /// (beta, Delta) of the last launch: [iteration][beta, Delta][padded chains].
  virtual std::vector<double> trace() = 0;
  /// Statistics (StatRow, then the transition's counters) and moments (MomentLayout) summed since the last reset.
  virtual std::vector<double> stats(bool reset) = 0;
  virtual std::vector<double> moments(bool reset) = 0;
  std::vector<double> take_stats() { return stats(true); }
  std::vector<double> take_moments() { return moments(true); }
  /// The first so many draws of the last launch: [draw][dim + kDrawExtraRows][stored chain], or of [padded
  /// chains] where all are stored. They lie there until the next launch, or the next call.
  virtual std::span<const float> draws(int count) = 0;
  /// Its overview, x and the acceptance: [draw][dim + kOverviewExtraRows][padded chains].
  virtual std::vector<float> overview() = 0;
  /// Memory of its chains, where it runs.
  virtual std::size_t bytes() const = 0;
  int padded_chains() const { return (chains_ + kTile - 1) / kTile * kTile; }

 protected:
  explicit Engine(int chains) : chains_(chains) {}
  int chains_;
};

}  // namespace lockstep
