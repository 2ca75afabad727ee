// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a launch is told, and the memory it works on.
#include "kernels/philox.hpp"

namespace lockstep {

/// How a chain's inverse temperature moves, once an iteration (kernels/tempering.hpp).
enum class Tempering {
  fixed,   // not at all
  gibbs,   // drawn given x, uniform on [0, 1] before the data: continuous tempering
  levels,  // drawn given x from a ladder with weights: simulated tempering
  anneal,  // steps down the ladder by one, and the weight is kept: annealed importance sampling
  swap,    // exchanged between the chains of a unit, one at each level of the ladder: parallel tempering
  joint    // a function of one more coordinate of the state, moved by the transition itself
};

/// Joint tempering: how the inverse temperature depends on the control coordinate u.
enum class Control {
  none,      // beta is the chain's own parameter
  logistic,  // beta = sigmoid(u), uniform on [0, 1] a priori (Graham & Storkey 2017, section 4)
  plateaus   // of period 4 in u, 1 for |u| <= 1/2 and 0 for |u| >= 3/2 (Gobbo & Leimkuhler 2015)
};

/// One launch: iterations [begin, end) of every chain.
struct LaunchSpec {
  StreamKey key;  // of the run
  std::uint32_t begin = 0, end = 0;
  Purpose momentum = Purpose::momentum, accept = Purpose::accept;  // the scout draws from its own streams
  int num_leapfrog = 0;      // > 0: jittered uniformly on 1 .. 2 num_leapfrog - 1; 0: from trajectory_time
  int max_leapfrog = 1024;   // cap on the steps of one trajectory
  bool jitter = true;        // false: exactly num_leapfrog (or trajectory_time / step_size) steps
  bool short_steps = false;  // a fifth of the iterations take steps of 1/4 or 1/16
  bool record = false;       // add to the accumulators
  bool chees = false;        // add to the ChEES statistic, where the first transition has trajectories
  bool covariance = false;   // accumulate cross moments too
  Tempering tempering = Tempering::fixed;
  int first_level = 0;  // anneal: the ladder's index at iteration `begin`
  // Where there is a draws buffer: store every thin-th draw from iteration begin + store_from on. Likewise
  // for the overview.
  int thin = 1, store_from = 0;
  int overview_thin = 1, overview_from = 0;
  bool backwards = false;  // the transitions of an iteration in the reverse of their order
};

/// Rows of what a chain remembers beside its state (int): zero after set_position, saved with the state.
enum ChainRow {
  chain_mode,  // of the last unweighted draw, from 1 on; 0 before
  chain_trip,  // 1 on the way from beta = 0 to 1, 2 on the way back, 0 before
  kChainRows
};

/// Rows of the per-chain statistics (double).
enum StatRow {
  stat_acceptance,
  stat_accepted,
  stat_divergences,
  stat_gradients,
  stat_chees,
  stat_switches,
  stat_base_weight,  // sum of p(beta = 0 | x), up to a constant
  stat_log_weight,   // anneal: sum of (beta_k - beta_{k+1}) Delta
  stat_round_trips,  // beta from 0 to 1 and back
  kStatRows
};

/// Rows of a stored draw, after the dim rows of the unweighted draw x.
enum DrawRow {
  draw_log_density,
  draw_acceptance,
  draw_steps,
  draw_diverging,  // 1 or 0
  draw_energy,     // the Hamiltonian of the state the transition ended in, with the momentum it has there
  kDrawExtraRows
};
inline constexpr int kOverviewExtraRows = 1;  // the acceptance

/// Rows of the moment accumulators (double), all summed over iterations with the samples' weights.
struct MomentLayout {
  int dim = 0, quantities = 0;
  bool covariance = false;
  enum Row { count, weight_square, beta_mean, first };  // iterations; sum of w^2; mean beta of the samples
  LOCKSTEP_FN constexpr int mean() const { return first; }
  LOCKSTEP_FN constexpr int second() const { return first + dim; }
  LOCKSTEP_FN constexpr int quantity() const { return first + 2 * dim; }
  LOCKSTEP_FN constexpr int cross() const { return first + 2 * dim + quantities; }  // i > j, by rows
  LOCKSTEP_FN constexpr int rows() const { return cross() + (covariance ? dim * (dim - 1) / 2 : 0); }
};

/// All chains of one shape, tile by tile; R is the precision of state and gradients, E of energies and
/// weights.
template <class R, class E>
struct BatchView {
  int chains = 0, tiles = 0;
  int block_threads = 0;                        // of a launch on a GPU; 0: as many as fit best
  R *position = nullptr, *gradient = nullptr;   // [tile][rows][32]
  E* cache = nullptr;                           // [tile][cache_rows][32]
  R* parameters = nullptr;                      // [tile][ParameterLayout::rows][32]
  const R* base = nullptr;                      // of units (Engine::set_base)
  const E* base_energy = nullptr;               // the same numbers
  const int* base_place = nullptr;              // [tile][first, step] of them: step 32 where chains differ
  double *stats = nullptr, *moments = nullptr;  // [tile][..rows][32]
  // Of the transition (TransitionInfo): its fields and counters, what the chains of a unit share, its settings.
  double *fields = nullptr, *counters = nullptr;  // [tile][..rows][32]
  int field_rows = 0, counter_rows = 0;
  const double* shared = nullptr;              // the values of all lists
  const std::int32_t* shared_place = nullptr;  // [list][first, size][tiles * 32]
  const double* settings = nullptr;
  int* remembered = nullptr;                              // [tile][ChainRow][32]
  const std::uint32_t *chain = nullptr, *unit = nullptr;  // [tile][32]
  E* work_energy = nullptr;  // working rows of energies, position and cache, where they are in memory
  // The ladder of inverse temperatures, 0 to 1, with the log weight and the step size of each level.
  const double *ladder = nullptr, *level_weight = nullptr, *level_step = nullptr;
  int levels = 0;
  int* holder = nullptr;           // swap: [unit][level], the chain that is at the level
  double* trace = nullptr;         // [iteration of the launch][beta, Delta][tiles * 32], or none
  float* draws = nullptr;          // [draw][dim + kDrawExtraRows][stored_chains], or none
  const int* draw_slot = nullptr;  // [tile][32]: the chain's place among the stored ones, or -1
  int stored_chains = 0;
  float* overview = nullptr;  // [draw][dim + 1][tiles * 32], or none: x and the acceptance, of every chain
};

}  // namespace lockstep
