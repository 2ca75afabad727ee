// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "host/log_sums.hpp"

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
  /// edges: from 0 to 1, increasing.
  SteppingStones(std::vector<double> edges, int blocks);
  /// One pair, with the log of how often it counts. A beta on an inner edge serves both neighbours; one
  /// outside [0, 1] is ignored.
  void add(int block, double beta, double delta, double log_count = 0);
  /// Takes over the pairs of another accumulator of the same edges and blocks.
  void merge(const SteppingStones& other) { sums_.merge(other.sums_); }
  /// log Z with its jackknife over blocks. NaN when a bin is empty; the standard error is NaN when a bin
  /// lives on one block alone.
  Jackknife value(double log_zeta) const;
  /// Indices of the bins without pairs.
  std::vector<int> empty_bins() const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  int bins() const { return int(edges_.size()) - 1; }
  std::vector<double> edges_;
  BlockLogSums sums_;  // rows 2 k and 2 k + 1: the upper and the lower sum of bin k
};

/// Continuous tempering with g = 1: log Z = log zeta + log sum w1(Delta) - log sum w0(Delta), beta integrated
/// out (see tempering.hpp).
class ContinuousTemperingEvidence {
 public:
  explicit ContinuousTemperingEvidence(int blocks) : sums_(blocks, 2) {}
  void add(int block, double delta);
  void merge(const ContinuousTemperingEvidence& other) { sums_.merge(other.sums_); }
  Jackknife value(double log_zeta) const { return sums_.combine({1, -1}) + log_zeta; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  BlockLogSums sums_;
};

/// log P(k | x) of all levels where p(x, k) ~ exp(v_k - beta_k Delta) base(x). exp of the last is the weight
/// of x in averages over the target, exp of the first in averages over the base.
std::vector<double> log_level_probabilities(const std::vector<double>& ladder,
                                            const std::vector<double>& log_weights, double delta);

/// Simulated tempering, Rao-Blackwellised over the level: over all draws, whatever their level,
///   log Z = log zeta + log mean P(K | x) - log mean P(0 | x) + v_0 - v_K.
/// The weights v_k are those of log_level_probabilities, of a path that has zeta in it: -log z_k visits all
/// levels equally.
class SimulatedTemperingEvidence {
 public:
  SimulatedTemperingEvidence(std::vector<double> ladder, std::vector<double> log_weights, int blocks);
  void add(int block, double delta);
  void merge(const SimulatedTemperingEvidence& other) { sums_.merge(other.sums_); }
  Jackknife value(double log_zeta) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  std::vector<double> ladder_, log_weights_;
  BlockLogSums sums_;
};

/// Change of log Z between the halves of a run, from the same estimator over the same blocks: the chains were
/// too short when it is not small beside its standard error, or beside what is asked for.
inline LogZ split_half_drift(const Jackknife& first, const Jackknife& second) {
  return (second - first).value();
}

}  // namespace lockstep
