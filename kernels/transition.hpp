// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transition leaves the density of its model invariant. It is a struct of static functions in a header of its own
// and a line in kernels/transitions.list; kernels/hmc.hpp is the worked example. In each iteration it is called, for
// a group of chains (L their lanes, E those of energies; W their rows: state, parameters, workspace, and its own data),
//
//   known_steps<R>(spec, iteration, known)   on the host: how many steps every chain will take, or -1 where that is not
//                                            known beforehand, or they differ (KnownRows)
//   begin<L, E>(model, spec, draw, w)        with w.x the position, w.g the gradient there; how many steps it wants
//   move(model, draw, s, proposal, w)        before step s = 1, 2, ..: to where the gradient is wanted
//   push(model, draw, s, proposal, w)        with that gradient in w.g
//   end(model, proposal, w)                  after the last: log_ratio
//
// and then w.x, w.g are accepted with probability min(1, density(x) / density(position) exp(log_ratio)), or left, and
//
//   decided(model, spec, draw, proposal, w)   with the state as it is now in w.position, w.cache
//
// is told. Lanes that wait for others are moved and pushed too, with s > steps: that must change nothing.
// Between steps w.xe and w.ce are the driver's; when `end` is called w.x, w.g and w.ce must belong together.
// Several transitions may follow one another in an iteration (EngineSpec::then), each with random numbers and data of its
// own; one that takes no step then takes the gradient where it leads, if another wants it, and counts it.
//
// Its own data it declares (TransitionInfo) and finds in the rows of its chains, all in double, lanes wide_t<L>:
//   w.fields[row]            what a chain carries from iteration to iteration, zero at first
//   w.count(k, value)        adds to its counter k, of an enum that ends with kCounters: as many as it has names for
//   w.shared.get(k, index)   its k-th list, one for each unit of chains (Engine::set_shared); w.shared.size(k)
// and likewise the numbers that a user sets, a double for all chains:
//   w.settings[k]            its k-th setting
#include <limits>
#include <string>
#include <vector>

#include "kernels/launch_spec.hpp"

namespace lockstep {

/// Rows of double of each chain: `fixed` and, for each row of a position, `per_row`. In w.fields they follow one
/// another in the order in which they are declared.
struct TransitionField {
  std::string name;
  int fixed = 0, per_row = 0;
  bool saved = true;  // part of Engine::state(); false: means nothing after an iteration
  int rows(int of_position) const { return fixed + per_row * of_position; }
};

/// A number that the user sets as those of every sampler (sampler.NAME): read, shown, saved and compared as they are.
struct TransitionSetting {
  std::string name, help;
  double standard = 0;  // where the user gives none
  double least = -std::numeric_limits<double>::infinity(), most = std::numeric_limits<double>::infinity();
  bool whole = false;  // a whole number
};
/// Settings that a transition may have.
inline constexpr int kMostSettings = 8;

/// What a run must not count too often to be trusted; named as the counter is.
struct TransitionGate {
  int counter = 0;
  double most = 0;     // of a transition of a chain on average
  std::string advice;  // what it means where there is more, and what to do
  bool fails = true;   // or it is advice alone
};

/// What is known before an iteration of its chains, found as in their rows.
template <class R>
struct KnownRows {
  const R* parameters = nullptr;  // step_size and trajectory_time; null: chains may differ
  const double* settings = nullptr;
};
/// A transition's known_steps in one precision, of a chain with this step size and trajectory time.
using KnownSteps = int (*)(const LaunchSpec& spec, std::uint32_t iteration, const double* parameters,
                           const double* settings);
template <class Transition, class R>
int known_steps(const LaunchSpec& spec, std::uint32_t iteration, const double* parameters,
                const double* settings) {
  const R own[] = {static_cast<R>(parameters[0]), static_cast<R>(parameters[1])};
  return Transition::template known_steps<R>(spec, iteration, KnownRows<R>{own, settings});
}

/// What the host needs to know of a transition.
struct TransitionInfo {
  std::string name, summary, formula, source;
  bool gradients = true;    // kGradients; without, far proposals are no divergences
  bool trajectory = false;  // of a length that is chosen (num_leapfrog, trajectory_time), else of one step
  double target_acceptance =
      0.9;                    // of dual averaging (of HMC at 0.8 the banana's tails are biased, and silent)
  bool harmonic_mean = true;  // over chains: false where proposals are meant to be rejected
  bool windows = false;       // warms up in Stan's windows unless told otherwise
  bool alone =
      false;  // no other follows it in an iteration: it ends when it sees fit, or carries what others would not move
  std::vector<TransitionField> fields = {};
  std::vector<std::string> counters = {};  // after the rows of StatRow in Engine::stats()
  std::vector<std::string> shared = {};    // lists of numbers, of a length of its own for each unit
  std::vector<TransitionSetting> settings = {};
  std::vector<std::string> ascending = {};  // of these, none above the next
  std::vector<TransitionGate> gates = {};
  // Filled in where it is compiled:
  KnownSteps known_steps[2] = {};  // of states in float and in double
};

/// What a transition is unless it says otherwise.
struct TransitionDefaults {
  static constexpr bool kGradients = true;  // a step takes the gradient
  static constexpr bool kEnergies =
      false;  // every step takes the log density, into w.ce; else the last one at least
  /// `push` may raise proposal.steps: it ends when it sees fit. The block driver then lets each chain begin its next
  /// iteration while others go on with theirs; begin wants one step at least.
  static constexpr bool kSelfEnding = false;
  static constexpr int kCounters = 0;  // else of the enum that it counts by
  template <class Model, class D, class P, class W>
  LOCKSTEP_FN static void decided(const Model&, const LaunchSpec&, const D&, const P&, const W&) {}
};

/// The rest of a transition that takes no step.
struct WithoutGradients : TransitionDefaults {
  static constexpr bool kGradients = false;
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t, const KnownRows<R>&) {
    return 0;
  }
  template <class Model, class D, class L, class P, class W>
  LOCKSTEP_FN static void move(const Model&, const D&, L, const P&, const W&) {}
  template <class Model, class D, class L, class P, class W>
  LOCKSTEP_FN static void push(const Model&, const D&, L, const P&, const W&) {}
  template <class Model, class P, class W>
  LOCKSTEP_FN static void end(const Model&, P&, const W&) {}
};

}  // namespace lockstep
