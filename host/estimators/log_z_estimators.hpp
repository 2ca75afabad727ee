// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <vector>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

// Estimators of log Z on the path exp(-beta Delta(x)) base(x) from a normalised base to the target, with
// Delta = log base - (log target - log zeta), so that its normaliser is z_0 = 1 at beta = 0 and z_1 = Z /
// zeta at beta = 1. A block is a chain. Delta = +infinity (outside the target's support) may occur at beta =
// 0 only; a NaN makes the estimate NaN.

/// Stepping stones over bins of beta, from pairs of any joint q(x, beta) ~ exp(-beta Delta(x)) base(x)
/// g(beta).
///
/// Whatever g is, within a bin [a, b] the ratio z_b / z_a is
///   E exp(-(b - beta) Delta) / E exp((beta - a) Delta),
/// and log Z = log zeta + the sum over bins of the log of this, with sums over pairs for expectations. The
/// bins should have equal communication barrier, at most 0.2: in wide ones the terms may have infinite
/// variance, which the standard error does not show (between normals of different scale from 0.22 in one
/// dimension and 0.35 in two); narrow ones cost nothing as long as every one is filled.
class SteppingStones {
 public:
  /// edges: from 0 to 1, increasing. `upwards`: draws at an edge count for the bin above it alone. Where the base holds
  /// much that the target does not, draws of the upper edge of a bin never see it, and their part of the sums would be
  /// too small without their errors knowing.
  SteppingStones(std::vector<double> edges, int blocks, bool upwards = false);
  /// One pair, with the log of how often it counts. A beta on an inner edge serves both neighbours; one
  /// outside [0, 1] is ignored.
  void add(int block, double beta, double delta, double log_count = 0);
  /// As many pairs.
  void add(int block, std::span<const double> beta, std::span<const double> delta);
  /// log Z with its jackknife over blocks. NaN when a bin is empty; the standard error is NaN when a bin
  /// lives on one block alone.
  Jackknife value(double log_zeta) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  int bins() const { return int(edges_.size()) - 1; }
  /// Calls put(row, log term) for every sum that the pair belongs to.
  template <class Put>
  void terms(double beta, double delta, Put&& put) const;
  std::vector<double> edges_;
  bool upwards_;
  BlockLogSums sums_;  // rows 2 k and 2 k + 1: the upper and the lower sum of bin k
};

/// With the inverse temperature integrated out, over all draws, whatever theirs:
///   log Z = log zeta + log sum p(beta = 1 | x) - log sum p(beta = 0 | x) + log p(beta = 0) - log p(beta =
///   1),
/// p(beta) the weights given to them a priori: the last two cancel for continuous tempering, and are v_0 -
/// v_K for simulated tempering with weights v (then the Rao-Blackwell estimate of Carlson et al. 2016).
class EndpointEvidence {
 public:
  explicit EndpointEvidence(int blocks) : top_(blocks, 0.0), bottom_(blocks, 0.0) {}
  int blocks() const { return int(top_.size()); }
  /// p(beta = 1 | x) and p(beta = 0 | x), up to a common factor: of one draw, or summed over many.
  void add(int block, double top, double bottom) {
    top_[block] += top;
    bottom_[block] += bottom;
  }
  /// `log_prior`: log p(beta = 0) - log p(beta = 1).
  Jackknife value(double log_zeta, double log_prior = 0) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("top", top_);
    archive("bottom", bottom_);
  }

 private:
  std::vector<double> top_, bottom_;
};

/// Change of log Z between the halves of a run, from the same estimator over the same blocks: the chains were
/// too short when it is not small beside its standard error, or beside what is asked for.
inline LogZ split_half_drift(const Jackknife& first, const Jackknife& second) {
  return (second - first).value();
}

}  // namespace lockstep
