// SPDX-License-Identifier: Apache-2.0
#pragma once
// Means over all the modes where draws might as well be (waste recycling).
#include <cstdint>
#include <vector>

#include "host/engines/point_engine.hpp"
#include "host/estimators/estimates.hpp"
#include "host/modes/mode_library.hpp"
#include "host/runs/chain_result.hpp"

namespace lockstep {

/// What this takes of a run's gradients.
inline constexpr double kRecyclingShare = 0.25;

/// Of the orbits of several points, one after those of another.
struct OrbitPoints {
  PointEngine::Rows y;  // [d][point]
  Eigen::VectorXd
      log_volume;  // log |L_k|; -infinity where another mode is nearer to y than k, so that y is of no orbit
};

/// Where draws might as well be. With j the known mode nearest to a draw x by Mahalanobis distance and
/// z = L_j^-1 (x - m_j), the orbit of x has the points
///
///   y = m_k + s L_k z   for every mode k and s = 1, -1, where k is the mode nearest to y.
///
/// From any of them the orbit is the same, so that a Gibbs step over it, to y with probability proportional to
/// density(y) |L_k|, leaves the target invariant whatever the modes are.
class Orbits {
 public:
  /// Among the modes that chains jump between (ModeJump).
  explicit Orbits(const ModeLibrary& all);
  int size() const { return 2 * library_.size(); }  // of an orbit, with points that are of none
  bool halos() const { return library_.parts() > library_.size(); }  // whether something lies about a mode
  OrbitPoints of(const Eigen::MatrixXd& x, int threads) const;

 private:
  ModeLibrary library_;
};

/// Of every unit's overview: as many draws as kRecyclingShare of the gradients pays for, evenly spread over the run. A unit
/// of which no mode is known has none.
std::vector<Recycled> recycle(const RunContext& context, const std::vector<std::uint32_t>& units,
                              const ChainRunResult& run);

/// Estimates of a unit with the means, second moments and expectations that are recycled, where they are; what tells of the
/// chains is theirs.
Estimates estimate_unit(const ChainRunResult& run, std::size_t unit);

}  // namespace lockstep
