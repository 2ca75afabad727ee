// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the user knows of the modes (`--init FILE`), held against what a run visited.
#include <Eigen/Core>
#include <vector>

#include "host/runs/weighted_draws.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// A mode that a known point leads to, and the log of its mass by Laplace's approximation:
/// log density(x) + (d/2) log 2 pi - (1/2) log det(-H), H the Hessian at x.
struct KnownMode {
  Eigen::VectorXd x;
  double log_mass;
  std::vector<int> points;  // numbers of those that lead to it
};

/// Climbs from each point (gradient ascent, steps by Barzilai & Borwein 1988, halved where the density would
/// fall), and keeps the distinct ends at which minus the Hessian (differences of gradients) is positive
/// definite: two are one mode where they are within one of its standard deviations (Mahalanobis).
/// Up to 500 + 2 d gradients a point, on the host in double; `gradients` is raised by what they were.
std::vector<KnownMode> known_modes(const TargetInstance& target, const std::vector<Eigen::VectorXd>& points,
                                   double& gradients);

/// The point at which each superchain starts: each point once, then so that at any number of superchains the
/// modes' shares of them are near their shares of the mass.
std::vector<int> deal_points(const std::vector<KnownMode>& modes, int points, int superchains);

/// Numbers of the modes that hold more than 1 % of exp(log_z) and that no draw of any weight came near: a draw
/// is near the mode that is nearest to it, each axis in units of its scale ([axis]).
std::vector<int> unvisited_modes(const std::vector<KnownMode>& modes, double log_z,
                                 const WeightedDraws& draws, const std::vector<double>& scale);

}  // namespace lockstep
