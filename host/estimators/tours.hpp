// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <vector>

namespace lockstep {

/// Tours below which their errors say little.
inline constexpr double kFewTours = 30;
/// And a share of the iterations in closed tours, below which chains may be stuck that the means leave out.
inline constexpr double kLeastClosed = 0.8;

/// Means over the tours of chains that begin anew (kernels/regeneration.hpp): independent pairs of a length N and a sum S
/// of the states, whose E S / E N is the target's mean.
struct TourMeans {
  double number = NAN;  // closed among the recorded iterations
  double mean_length = NAN;
  double acceptance = NAN;     // of the independent draws
  double closed_share = NAN;   // of all recorded iterations, those of closed tours
  double dropped_draws = NAN;  // where regenerations learn: iterations left out, until a mode was learned
  double adaptations = NAN;    // where they learn: how often they did
  std::vector<double> mean, mean_se;

  template <class Archive>
  void fields(Archive& archive) {
    archive.whole("number", number);
    archive("mean_length", mean_length);
    archive("acceptance", acceptance);
    archive("closed_share", closed_share);
    archive.whole("dropped_draws", dropped_draws);
    archive.whole("adaptations", adaptations);
    archive("mean", mean);
    archive("mean_se", mean_se);
  }
};

/// Of each unit of so many chains, from Engine::fields() [row][chain], where the regeneration's are the last. The mean m of
/// a coordinate and its standard error are
///
///   sum (S - m N) + C sum N (S - m N) / sum N = 0,   se = sqrt(sum (S - m N)^2) / sum N
///
/// (Mykland, Tierney & Yu 1995, section 2), sums over all closed tours; the second term, of the C chains that have begun, is
/// what their open tours are expected to hold: long ones are open more often than others, and without it means of many
/// short chains lean to those of short tours. What tours longer than a chain hold is not in it: chains are to be longer than
/// nearly all tours.
std::vector<TourMeans> tours_of(const std::vector<double>& fields, int units, int chains, int dim);

}  // namespace lockstep
