// SPDX-License-Identifier: Apache-2.0
#pragma once
// A transition leaves the density of its model invariant. It is a struct of static functions in a header of its own
// and a line in kernels/transitions.list; kernels/hmc.hpp is the worked example. In each iteration it is called, for
// a group of chains (L their lanes, E those of energies; W their rows: state, parameters, workspace),
//
//   known_steps<R>(spec, iteration)      on the host: how many gradients every chain will want, or -1 where they differ
//   begin<L, E>(model, spec, draw, w)    with w.x the position, w.g the gradient there; how many gradients it wants
//   move(model, s, proposal, w)          before gradient s = 1, 2, ..: to where it is wanted
//   push(model, s, proposal, w)          with that gradient in w.g
//   end(model, proposal, w)              after the last: log_ratio
//
// and then w.x, w.g are accepted with probability min(1, density(x) / density(position) exp(log_ratio)), or left.
#include <string>

#include "kernels/launch_spec.hpp"

namespace lockstep {

/// What the host needs to know of a transition.
struct TransitionInfo {
  std::string name, summary, formula, source;
  bool gradients = true;    // takes at least one each iteration; without, far proposals are no divergences
  bool trajectory = false;  // of a length that is chosen (num_leapfrog, trajectory_time), else of one step
  double target_acceptance =
      0.9;                    // of dual averaging (of HMC at 0.8 the banana's tails are biased, and silent)
  bool harmonic_mean = true;  // over chains: false where proposals are meant to be rejected
};

/// The rest of a transition that wants no gradient.
struct WithoutGradients {
  template <class R>
  static int known_steps(const LaunchSpec&, std::uint32_t) {
    return 0;
  }
  template <class Model, class P, class W>
  LOCKSTEP_FN static void move(const Model&, int, const P&, const W&) {}
  template <class Model, class P, class W>
  LOCKSTEP_FN static void push(const Model&, int, const P&, const W&) {}
  template <class Model, class P, class W>
  LOCKSTEP_FN static void end(const Model&, P&, const W&) {}
};

}  // namespace lockstep
