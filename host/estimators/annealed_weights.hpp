// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

// log Z from the log weights of independent runs of annealed importance sampling, forward from the base or in
// reverse from exact draws of the target.

/// What runs of one direction say; each log weight is that of an unbiased estimate.
struct WeightSummary {
  LogZ log_mean;  // log mean weight (Jarzynski's equality); delta method
  LogZ mean_log;  // a stochastic lower bound of it; sd / sqrt(runs)
  double ess;     // (sum w)^2 / sum w^2
};
/// Standard errors are NaN with one run. A weight of 0 (log weight -infinity) counts.
WeightSummary summarise_weights(const std::vector<double>& log_weights);

/// Bennett's acceptance ratio between two ensembles of runs.
///
/// forward: log weights of estimates of Z from the base; reverse: of 1 / Z from the target. log Z is the c
/// that solves sum_forward s(log w - c + m) = sum_reverse s(log w + c - m), with s the logistic function and
/// m the log of the number of reverse over forward runs: of all combinations the one of least variance.
/// Standard error: asymptotic, from the scatter of the terms. It cannot see that the ensembles do not
/// overlap: the bounds of `bidirectional` do. NaN where the weights are some 1400 apart. Source: Bennett
/// (1976), J. Comput. Phys. 22; for paths, Shirts et al. (2003), Phys. Rev. Lett. 91.
LogZ bennett_acceptance_ratio(const std::vector<double>& forward, const std::vector<double>& reverse);
/// Its standard error by resampling the runs of either side; the same on every machine.
double bennett_bootstrap_se(const std::vector<double>& forward, const std::vector<double>& reverse,
                            int resamples = 200);
/// Bennett's estimate with the larger of its two errors; intervals as of `runs` independent blocks.
LogZ with_larger_error(const LogZ& bennett, double bootstrap_se, double runs);

/// Bidirectional Monte Carlo: the truth lies between lower and upper within their errors. Source: Grosse,
/// Ghahramani & Adams (2015).
struct Bidirectional {
  LogZ lower, upper;      // means of the logs: E lower <= log Z <= E upper
  LogZ forward, reverse;  // Jarzynski's equality either way
  double forward_ess, reverse_ess;
  LogZ bennett;
  double bennett_bootstrap_se;
};
Bidirectional bidirectional(const std::vector<double>& forward, const std::vector<double>& reverse);

}  // namespace lockstep
