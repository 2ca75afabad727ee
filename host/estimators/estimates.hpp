// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/moments.hpp"
#include "host/estimators/weighted_moments.hpp"

namespace lockstep {

/// Weighted moments of one unit with Monte Carlo standard errors, and what tells whether to trust them.
struct Estimates : WeightedMoments {
  double beta_mean = 0;
  /// Of the chains' mean inverse temperatures: their variance over what the variance of four to eight
  /// stretches of a chain foretells, if these are independent. 1: within a stretch chains forget at which
  /// they began. NaN: fewer than four batches or eight chains, or all the same.
  double beta_spread = NAN;
  std::vector<double> rhat;  // of every mean
  double rhat_max = 0;
  bool nested = false;          // which R-hat
  double rhat_of_chains = NAN;  // beside a nested one (judge_ranks)
  /// Bulk or tail, of the coordinate that has fewest; of chains that are judged one by one.
  double effective_draws = NAN;
  double ess_min = 0;  // smallest variance / se^2 over the means
  double acceptance = 0, divergence_rate = 0, switches = 0, gradients = 0;
};

/// The smallest variance / se^2 over the means.
double least_effective(const WeightedMoments& moments);

/// E f = sum over iterations of sum_i w_i f(x_i), over the number of iterations. Standard errors: with 32
/// chains or more from the spread of the chains' means (a chain is one block), with fewer from batch means,
/// whose autocorrelation is allowed for. R-hat: nested over superchains where chains are shorter than 500
/// draws, else split, of every mean; of short chains that began at several known points the larger of split
/// and nested, each chain a group of its own.
Estimates estimate(const UnitMoments& moments);

/// Its largest R-hat alone, so far.
double worst_rhat(const UnitMoments& moments);

}  // namespace lockstep
