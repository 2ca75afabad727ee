// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moments of a run held against what the modes found before it hold of them.
#include <Eigen/Core>
#include <optional>
#include <vector>

#include "host/estimators/log_sums.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// Draws that count by weight, [draw][chain][d]; no weights: equally.
struct SeenDraws {
  const std::vector<float>& x;
  const std::vector<double>& log_weight;
  std::size_t chains = 1;
};

/// Standard errors of means, second moments and the target's own quantities; empty: not known.
struct MomentErrors {
  std::vector<double> mean, second;  // [d]
  std::vector<double> quantity;
};

/// Up to 2^15 of the draws, evenly spread, 2^17 where over 64 modes are known, and the mode that is home to each, or -1. In
/// blocks of chains that lie side by side, of fewer chains in blocks of draws: what a block has is taken to be independent
/// of others'.
struct HousedDraws {
  HousedDraws(const ModeLibrary& library, const SeenDraws& draws, int threads);
  static constexpr int kBlocks = 32;

  Eigen::MatrixXd x;           // [d][draw]
  std::vector<double> weight;  // over the largest
  std::vector<int> home, block;
  bool blocks_of_chains;
};

/// A second moment of which a run has less than the modes from a rank on hold, the largest mode first.
struct LackingMoment {
  int axis, first;            // rank
  double due, seen, seen_se;  // of these modes
};

struct MomentsByModes {
  /// Errors that a run has at least, for it visits each mode k beyond those that chains jump between (most_used_modes)
  /// more or less often than that holds: the root of sum_k (f_k - f')^2 d_k^2, d_k the difference of shares, f_k the mean of x,
  /// x^2 or a quantity in the mode and f' over all, or of (sum_k (f_k - f') d_k)^2 where that is significant; less what of it is
  /// the library's own variance and what independent draws as many as these would have. Moments are sums over modes, and in
  /// a run that moves among these rarely, visits to one say nothing of those to another, or there are none. No spread between
  /// chains, or over time, tells how far off a run is in which each chain enters few of thousands.
  MomentErrors least;
  /// The most significant one: due - seen is over 3 joint errors (of the library's draws, of the blocks, of Z) and over a
  /// tenth of the whole moment, a quarter where 3 of the errors above, and of what these modes lack together, hold it. Looked for among all modes, and those from
  /// rank 1, 2, 4, 8 and so on: masses of the largest, which a run sees best, are known to a few in a hundred alone.
  /// One-sided: the target has no less.
  std::optional<LackingMoment> lacking;
};
MomentsByModes moments_by_modes(const ModeLibrary& library, const HeldMoments& held, const HousedDraws& draws,
                                const LogZ& log_z);

/// Makes the errors of moments no smaller than these.
void widen(WeightedMoments& moments, const MomentErrors& least);

}  // namespace lockstep
