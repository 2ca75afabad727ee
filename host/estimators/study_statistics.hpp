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
  double bias_z = 0;        // of t = mean(e) / (sd(e) / sqrt(R)): `normal_equivalent(t, R - 1)`
};

/// The z beyond which a normal variable has as much as Student's with `df` degrees of freedom has beyond t: of few
/// replicates t is large by chance. To 3 % of z, measured for |z| up to 6. Source: Wallace (1959), Annals of Mathematical
/// Statistics 30, 1121.
double normal_equivalent(double t, double df);

/// Computes the statistics; `estimates` and `truths` have one entry for each replicate. The same numbers give
/// the same result on every platform.
QuantityStatistics replicate_statistics(const std::vector<double>& estimates,
                                        const std::vector<double>& truths);

}  // namespace lockstep
