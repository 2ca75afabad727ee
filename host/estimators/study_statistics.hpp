// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

namespace lockstep {

/// What the replicates of one setting say about one quantity, with R finite estimates x_r, truths t_r and
/// errors e_r = x_r - t_r. NaN where something is undefined (truth unknown, too few replicates).
struct QuantityStatistics {
  int replicates = 0;       // all of them
  int finite = 0;           // R: those with a finite estimate; the others are left out below
  double truth = 0;         // of all replicates; NaN when unknown or when it differs between them
  double mean = 0, sd = 0;  // of x; sd with R - 1
  double rmse = 0;          // sqrt(mean of e^2)
  double rmse_se = 0;       // sd of the rmse over 1000 bootstrap resamples of the replicates, fixed seed
  double bias_z = 0;        // mean(e) / (sd(e) / sqrt(R))
};

/// Computes the statistics; `estimates` and `truths` have one entry for each replicate. The same numbers give
/// the same result on every platform.
QuantityStatistics replicate_statistics(const std::vector<double>& estimates,
                                        const std::vector<double>& truths);

}  // namespace lockstep
