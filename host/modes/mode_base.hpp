// SPDX-License-Identifier: Apache-2.0
#pragma once
// The modes found as the density where paths begin.
#include "host/engines/base_density.hpp"
#include "host/modes/mode_library.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {

/// How much of the target those modes hold that a base is made of, as far as importance sampling knows: the sum of their
/// masses over exp(log_z), and over that of all modes known; and the share of draws that is effective as a multiple of what it
/// is in normal modes, its mean by mass or over the modes, whichever is smaller.
struct ModeCoverage {
  double covered = 0, of_known = 0, effective = 0;
  int modes = 0;
  /// Whether a base made of them is better than the scout's normal: modes of shapes that normals resemble and that hold
  /// half of Z. Where a target's mass lies in between, or in many more modes than are known, paths from such a
  /// base lose what it leaves out (docs/decisions/0014-modes.md). Half of the base of one mode is the scout's: of Z it
  /// may hold little, for it may be the core of something wider, which paths from there would lose.
  bool suffices() const {
    return covered >= (modes == 1 ? 0.01 : 0.5) && of_known >= 0.9 && effective >= kResembles;
  }
};
ModeCoverage coverage_of(const ModeLibrary& library, double log_z);
/// Whether sampler.base leads to a base of these modes: asked for by name, or `auto` where nothing else speaks against it
/// (`may`), there are not too many, and they suffice. Those of `--modes` are all there is, whatever the scout's Z, which
/// errs by a nat in 50 dimensions; what they leave out gate `bases` sees. UserError where they are asked for and there are none.
bool begins_at_modes(const std::string& base, bool may, const SearchResult& found, double scout_log_z);

/// Normals at the largest modes, as Laplace has them, and their halos; weights are the square roots of their masses over that of the largest.
std::vector<NormalComponent> mode_normals(const ModeLibrary& library);

/// A defensive mixture: the share `defensive` (half beside one mode) is the normal of the moments given (a scout's),
/// with 1.5 times their covariance; the rest are normals at the 32 largest modes with 1.2 times their covariances, by
/// the square roots of their masses, each at least a fiftieth of an even share. `tied`: covariances of the modes are one matrix times a number each: the mean of
/// their covariances in units of their volumes, and what gives each its own mean variance in terms of that.
BaseDensity mode_base(const ModeLibrary& library, const Eigen::VectorXd& mean,
                      const Eigen::MatrixXd& covariance, bool tied, double defensive = 0.2);
/// How wide such a base is along each axis: the mixture as a whole, or its defensive part, which alone has to hold tails.
std::vector<double> width_of(const BaseDensity& base);
/// Whether a matrix for each of K modes would cost too much: where K d > 50, if they are nearly one matrix times a number each
/// (.1 nat), or more than 16, or K d^2 > 2^15. A target whose few modes are of shapes of their own is no cheaper than they.
bool wants_tied_base(const ModeLibrary& library);
/// Numbers of the longest of them (Engine::set_base).
double most_base_numbers(int dim);

}  // namespace lockstep
