// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a search for modes is to do, and what it found.
#include <Eigen/Core>
#include <string>
#include <vector>

#include "host/modes/mode_forecast.hpp"
#include "host/modes/mode_library.hpp"
#include "host/modes/mode_moments.hpp"

namespace lockstep {

/// Of a run's planned gradients, what the search for its modes may spend; and the plan where nobody says.
inline constexpr double kSearchShare = 0.25, kPlannedGradients = 1e7;

/// So many modes are more than a run can be made of: most have been met once.
inline constexpr int kManyModes = 200;
/// Descents of a round, at most.
inline constexpr int kRoundStarts = 1024;
/// Modes that a library may hold, descents side by side, and starts of a round: fewer in high dimensions, for their memory.
int most_modes(int dim);
int descents_at_once(int dim);
int starts_at_once(int dim);

/// What descents after the first round go down: -log density, or what is left of it beside the modes known, in one of the
/// forms of kernels/residual_lbfgs.hpp.
enum class ResidualEnergyOf { none, log, difference };
inline constexpr const char* kResidualNames[] = {"none", "log", "difference"};

struct SearchPlan {
  double init_scale = 10;                   // of the first starts, as --init-scale
  std::vector<Eigen::VectorXd> known = {};  // points of the user's, which become candidates too
  std::vector<double> particles = {};       // [particle][axis] of the scout's: starts of the first round
  double gradients = 2.5e6;                 // that it may spend
  double iterations =
      0;             // where nobody has planned gradients: those that the run will make, of all its chains
  double least = 0;  // then: gradients that it may spend all the same
  int first_starts = 256;  // of the first round; of the next four times as many, up to 1024
  bool one_round = false;  // and no other
  ResidualEnergyOf residual = ResidualEnergyOf::none;
  double temperature = 1.05;  // of the residual energy
  bool kept = true;           // in checkpoints
};

/// Of a run that plans so many gradients; `scale` as --init-scale.
inline SearchPlan search_plan(double scale, double planned) {
  SearchPlan plan;
  plan.init_scale = scale;
  plan.gradients = kSearchShare * planned;
  return plan;
}

/// Why a search ended.
inline constexpr const char *kSearchHits = "hits", *kSearchBudget = "budget", *kSearchModes = "modes",
                            *kSearchStarts = "starts", *kSearchGiven = "given",
                            *kSearchDimension = "dimension";

/// Dimensions beyond which nothing is searched: Hessians and covariances would take gigabytes.
inline constexpr int kMostSearchedDim = 2000;

struct SearchResult {
  ModeLibrary library;
  HeldMoments held;
  std::string
      stopped;  // hits (every mode was found 10 times), budget, modes (as many as may be), starts (one round), given, dimension
  double starts = 0, ended = 0;  // of descents, made or foretold; those that came to rest
  double foretold = 0;           // of the starts: their gradient alone said at which mode a descent would end
  double rejected = 0;           // places where they rest that are no modes: saddles, ridges, noise
  double gradients = 0;          // all of them
  double scale = 0;              // the widest normal about 0 that starts were drawn from, but for a few
  ModeForecast forecast;
  int met = 0;        // modes that chains came upon, not the search (modes_met.hpp)
  int listed = 0;     // modes that the places of --modes lead to
  double beside = 0;  // starts from which others than these were looked for (given_points.hpp)
  double least_hits() const, total_hits() const;  // 0: a hint that nobody met
  /// Whether the budget ended it before it could say what there is: less than four fifths of the descents ended at the
  /// modes found.
  bool unsettled() const;
  /// Whether descents came to rest at more places that turned out to be no mode (flat, kinked, beyond what differences of
  /// gradients resolve) than at modes: what lies there nobody knows.
  bool astray() const { return rejected > total_hits() && library.size() > 0 && stopped != kSearchGiven; }
  /// Whether there are many modes, or more than are kept: then nothing is made of them that has to hold all of the target.
  bool full() const { return stopped == kSearchModes || library.size() >= kManyModes; }
  /// Whether modes that are met later may be added.
  bool grows() const { return library.size() > 0 && !full() && library.dim() <= kMostSearchedDim; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("library", library);
    archive("held", held);
    archive("stopped", stopped);
    archive("starts", starts);
    archive("ended", ended);
    archive("foretold", foretold);
    archive("rejected", rejected);
    archive("gradients", gradients);
    archive("scale", scale);
    archive("forecast", forecast);
    archive("met", met);
    archive("listed", listed);
    archive("beside", beside);
  }
};

}  // namespace lockstep
