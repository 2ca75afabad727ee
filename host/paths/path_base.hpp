// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Dense>
#include <algorithm>

#include "host/engines/base_density.hpp"
#include "host/engines/units.hpp"
#include "host/estimators/log_sums.hpp"

namespace lockstep {

/// Iterations of a launch whose inverse temperatures are kept: a trace of at most 64 MiB.
inline int traced_iterations(std::int64_t chains) {
  return int(std::clamp<std::int64_t>(4000000 / chains, 1, 32));
}

/// What moves chains along a path: whether beta is a coordinate, and by which transition (null: HMC) with which settings.
struct PathMoves {
  Control control = Control::none;
  const TransitionInfo* transition = nullptr;
  std::vector<double> settings = {};  // its own; empty: the defaults
};

/// The density at which a path begins, and the guess of log Z that is taken out of the target: fitted before anything
/// is recorded, then frozen.
struct PathBase {
  BaseDensity density;
  /// Scale of each axis for transitions. At first its standard deviation given all others, for that is what
  /// limits the step where axes correlate.
  Eigen::VectorXd metric;
  double log_zeta = 0;
  double gradients = 0;   // what fitting it cost
  int starts = 0;         // of the local approximations or chains it is made of; 0: of none
  bool rough = false;     // a scout's: worth a refit where the budget allows
  double widened = 1;     // times as wide as base_inflation has it, since widen()
  bool of_modes = false;  // a mixture of those found
  std::vector<NormalComponent> normals = {};  // the modes as Laplace has them; none where there are more
  LogZ other{NAN, NAN};  // log Z by particles from the base that it stands in for, where there is one
  bool partial = false;  // made of one of several local approximations: the others may never be found
  std::string how;       // for the report
  std::string warning;   // for the report, where there is one

  template <class Archive>
  void fields(Archive& archive) {
    archive("density", density);
    archive("metric", metric);
    archive("log_zeta", log_zeta);
    archive("gradients", gradients);
    archive("starts", starts);
    archive("rough", rough);
    archive("widened", widened);
    archive("of_modes", of_modes);
    archive("normals", normals);
    archive("other", other);
    archive("partial", partial);
    archive("how", how);
    archive("warning", warning);
  }

  int dim() const { return density.dim(); }
  /// N(mean, inflation^2 covariance); dense where axes correlate above 0.3, and d <= 64: the
  /// precision of a dense base is read at every gradient.
  static PathBase from_moments(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                               double inflation, double log_zeta, std::string how);
  /// What estimates of log Z add: log zeta, and the base's log normaliser less what it is in truth, both as
  /// the engine holds them, in single precision. For a log Z of 1e6 the rounding is more than many an error.
  double taken_out() const;
  /// An engine on the path from this base to the target, its base, log zeta and metric set. Keeps the trace
  /// of so many iterations a launch.
  std::unique_ptr<Engine> path_engine(const RunContext& context, const std::vector<std::uint32_t>& units,
                                      int chains_per_unit, bool covariance = false, int trace = 0,
                                      const PathMoves& moves = {}) const;
  /// Takes the target's own scale into the metric, from its mean square gradients E (d log gamma / dx_i)^2 =
  /// -E d^2 log gamma / dx_i^2: 1 / sqrt of it is the standard deviation given all others where the target is
  /// normal, and that within a mode where it has several, while the base spans them all. Ratios of the two
  /// are held within a factor of 30 of their median: a mean square may be one particle's.
  void fit_metric(const std::vector<double>& curvature);
  /// Makes a tenth of it three times as wide, in up to 64 dimensions. The metric stays.
  void widen();
  /// Independent draws, [axis][chain]: chain c is number c % chains_per_unit of unit c / chains_per_unit.
  std::vector<double> draws(const StreamKey& key, std::uint32_t iteration, int chains,
                            int chains_per_unit) const;
};

}  // namespace lockstep
