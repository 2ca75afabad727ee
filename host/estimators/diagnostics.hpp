// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

// Convergence diagnostics of one scalar quantity over many chains. Everything here is a pure function in
// double precision. Non-finite values and too few draws give NaN, never an exception (a diagnostic must not
// end a run); a span whose size contradicts the counts is a programmer error and asserted.

/// What `diagnose` returns for one scalar quantity; same numbers as ArviZ (az.rhat, az.ess, az.mcse).
/// All NaN with fewer than 4 draws per chain or a non-finite draw. Draws that are all equal have no R-hat
/// (NaN), their effective sizes are the number of draws in the split chains, and their mcse is 0.
struct DrawDiagnostics {
  double rhat;  // max of the rank-normalised and the folded rank-normalised split R-hat; NaN with one chain
  double ess_bulk;      // effective sample size of the rank-normalised split chains
  double ess_tail;      // min over the indicators x <= 5 % quantile and x <= 95 % quantile
  double ess_mean;      // effective sample size of the split chains as they are
  double mcse_mean;     // sd(draws) / sqrt(ess_mean)
  double sd;            // of all draws
  double q5, q50, q95;  // their quantiles of 5, 50 and 95 %, linear between order statistics
};

/// Rank-normalised split R-hat, effective sample sizes and the Monte Carlo standard error of the mean.
///
/// draws: [chain][draw], chain by chain, num_chains * num_draws values. Each chain is split into two halves
/// of num_draws / 2 (the middle draw of an odd number belongs to neither half, but counts in quantiles and
/// sd). R-hat = sqrt((B / W + n - 1) / n) for half chains of length n, B / n the variance of their means and
/// W the mean of their variances, of the normal scores of ranks; R-hat above 1.01 .. 1.05 says that chains
/// disagree. ESS = S / tau, tau = -1 + 2 sum_k P_k by Geyer's initial monotone positive sequence on the
/// multi-chain autocorrelation, which is large when chains disagree, so that ESS is small then. Source:
/// Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Bayesian Analysis 16(2), 667-718; Geyer (1992),
/// Statistical Science 7(4), 473-483, for the truncation of the sum.
DrawDiagnostics diagnose(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws);

/// `diagnose` for each of `dim` components; draws: [chain][draw][component], the layout of a posterior group.
/// Tables are shared over components, so this is faster than `dim` calls; `threads` share the components,
/// which changes no bit.
std::vector<DrawDiagnostics> diagnose_all(std::span<const double> draws, std::int64_t num_chains,
                                          std::int64_t num_draws, std::int64_t dim, int threads = 1);

/// Nested R-hat, for many chains too short for the split one; one draw per chain is enough.
///
/// draws: [chain][draw]; superchain k holds the num_chains / num_superchains consecutive chains from
/// k * num_chains / num_superchains, which must all have started at the same position, as different
/// superchains must not. nested R-hat = sqrt(1 + B / W), with B the variance of the superchain means and W
/// the mean over superchains of (variance of the chain means + mean of the chain variances); the first is 0
/// with one chain per superchain, the second with one draw per chain. NaN with fewer than 2 superchains;
/// num_superchains must divide num_chains (asserted). Source: Margossian, Hoffman, Sountsov, Riou-Durand,
/// Vehtari, Gelman (2024), Bayesian Analysis, "Nested R-hat: assessing the convergence of Markov chain Monte
/// Carlo when running many short chains", eqs. 4-8.
double nested_rhat(std::span<const double> draws, std::int64_t num_chains, std::int64_t num_draws,
                   std::int64_t num_superchains);

/// The same from streamed moments, without draws: count, mean and variance (denominator count - 1) of each
/// chain, spans of one length, chains ordered by superchain as above. Chains count equally whatever their
/// length. The variance of a chain with one draw is not read (it counts as 0); a chain without draws gives
/// NaN.
double nested_rhat(std::span<const double> count, std::span<const double> mean,
                   std::span<const double> variance, std::int64_t num_superchains);

/// Split R-hat (not rank-normalised) from streamed batches, without draws; one chain is enough.
///
/// batch_mean, batch_variance: [chain][batch], each batch of batch_size consecutive draws of its chain,
/// variances with denominator batch_size - 1 (not read when batch_size is 1). Half chains are the first and
/// the last num_batches / 2 batches; the middle batch of an odd number belongs to neither. With an even
/// number it equals the split R-hat of the draws, exactly up to rounding. NaN with fewer than 2 batches or
/// half chains of one draw. Source: Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 11.4.
double split_rhat_from_batches(std::span<const double> batch_mean, std::span<const double> batch_variance,
                               std::int64_t num_chains, std::int64_t num_batches, std::int64_t batch_size);

}  // namespace lockstep
