// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

/// Delta = log base - (log target - log zeta) of equally many draws at every level of a ladder, by
/// independent copies (of parallel tempering). Delta = +infinity may occur at beta = 0 only.
struct LadderSamples {
  std::vector<double> ladder;  // 0 = beta_0 < .. < beta_K = 1
  int copies = 0, draws = 0;
  std::vector<double> delta;  // [copy][level][draw]

  int levels() const { return int(ladder.size()); }
  std::span<const double> at(int copy, int level) const {
    return std::span(delta).subspan((std::size_t(copy) * levels() + level) * draws, draws);
  }
  /// Those of one copy alone.
  LadderSamples copy(int number) const;
  /// Draws first .. last - 1 of every copy and level, for instance one half of a run.
  LadderSamples slice(int first, int last) const;
  /// Every stride-th draw.
  LadderSamples thinned(int stride) const;
};

// Estimators of log Z, each with its jackknife over copies; their differences know their standard errors. The
// bits are the same for any number of threads.

/// log zeta + sum_k log mean_{level k} exp(-(beta_{k+1} - beta_k) Delta).
Jackknife forward_stepping_stones(const LadderSamples& samples, double log_zeta);
/// log zeta - sum_k log mean_{level k+1} exp((beta_{k+1} - beta_k) Delta).
Jackknife backward_stepping_stones(const LadderSamples& samples, double log_zeta);
/// The sum over neighbours of Bennett's acceptance ratio between them.
Jackknife bridge_stepping_stones(const LadderSamples& samples, double log_zeta, int threads = 1);

/// All levels at once, the combination of least variance for independent draws: f_k = -log z_k solves sum_n
/// p_nk = draws at level k, with p_nk ~ exp(f_k - beta_k Delta_n) normalised over k, over all draws n.
///
/// Newton's method on the convex function behind these equations, from the bridge estimates; the jackknife is
/// one more Newton step without each copy, its error of second order in 1 / copies. Source: Shirts & Chodera
/// (2008), J. Chem. Phys. 129.
Jackknife mbar(const LadderSamples& samples, double log_zeta, int threads = 1);

/// Thermodynamic integration: log zeta - int_0^1 E_beta[Delta] d beta by the trapezoid rule.
struct ThermodynamicIntegration {
  Jackknife log_z;
  /// About what the rule adds by its finite steps: a third of how the estimate moves when every second level
  /// is left out, for an error of second order. NaN for a single step.
  double discretisation;
};
ThermodynamicIntegration thermodynamic_integration(const LadderSamples& samples, double log_zeta);

}  // namespace lockstep
