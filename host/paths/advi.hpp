// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Dense>
#include <vector>

#include "host/engines/units.hpp"

namespace lockstep {

struct AdviOptions {
  int starts = 64;  // restarts, all of them in one batch
  double init_scale = 10;
};

/// One local approximation N(mean, diag sd^2) of the target, and the lower bound of log Z that it gives.
struct LocalFit {
  Eigen::VectorXd mean, sd;  // [axis]
  double elbo = 0;           // E_q (log density - log q); -infinity where the density is zero or broken
  bool converged = false;
};

struct LocalFits {
  std::vector<LocalFit> fits;  // the best first
  double gradients = 0;
  int converged() const;
  /// Those from which the mean of every better one is kApart or more of their own standard deviations away
  /// (Euclidean norm over axes): one that repeats a better one, or spans it, would count its mass again.
  /// Without those whose ELBO is not finite.
  std::vector<LocalFit> distinct() const;
  static constexpr double kApart = 1.5;
};

/// Mean-field variational inference from many starts N(0, init_scale^2 I) at once: each climbs
///   ELBO(mean, sd) = E log density(mean + sd z) + sum_i log sd_i + (d/2)(1 + log 2 pi),  z ~ N(0, I),
/// by Adam on reparametrisation gradients. Restart r draws by its own number (as unit): what it finds does
/// not depend on how many run beside it, nor on threads. The context's key must be nobody else's.
/// Source: Kucukelbir, Tran, Ranganath, Gelman & Blei (2017); gradient without the score of q: Roeder, Wu &
/// Duvenaud (2017), so that noise vanishes where q can equal the target.
LocalFits fit_local(const RunContext& context, const AdviOptions& options);

/// Moments of the mixture sum_k w_k N(mean_k, diag sd_k^2), w_k ~ exp(ELBO_k), and the logsumexp of the ELBOs
/// (log Z to the extent that the parts overlap little and each fits its mode). At least one fit.
struct MixtureMoments {
  Eigen::VectorXd mean;        // [d]
  Eigen::MatrixXd covariance;  // [d][d]
  double log_sum = 0;
};
MixtureMoments mixture_moments(const std::vector<LocalFit>& fits);

}  // namespace lockstep
