// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the search for modes begins its descents.
#include <cstdint>

#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// The scale of starts about 0 that these modes call for, where one drew them at `scale`: wider where the
/// modes found lie far beyond, for others may lie as far away in other directions. Starts were drawn from
/// N(0, s^2 I), s = `scale` at most, and from N(m, 4 v I) at most, of the modes' mean m and the variance v
/// between them on an axis. Of S = max(s, 2 sqrt(v)) fewer than one such point in 1,000 is beyond S (sqrt(d)
/// + t) of its centre, t^2 = 2 log 1000, and on any axis beyond S sqrt(2 log(1000 d)) (Gaussian
/// concentration: Boucheron, Lugosi, Massart 2013, theorem 5.6): where m is beyond one of these, the scale
/// asked for is not the target's (a prior predictive check, Box 1980), and that of m's largest axis is. Modes
/// on all sides have their mean near 0. And ten standard deviations of a mode that is wider than the scale on
/// every axis: from within it no other is to be seen.
double widened(const ModeLibrary& modes, double scale);

/// How most starts lie beside these modes, the widest scale being `widest`: normals N(centre, s^2 I), s of sd times
/// log-uniform(lowest, highest); and what share of all starts these are.
struct StartLaw {
  Eigen::VectorXd centre;
  double sd, lowest, highest, share;
};
StartLaw most_starts(const ModeLibrary& modes, double widest);

/// `count` starts, those of the numbers `first`.. of a unit's search, each by a stream of its own: normals
/// about 0 of the scale that `widened` says times log-uniform(.1, 1), a quarter of them from there down to where the
/// modes known lie, where that is closer; where two modes are known, three in four normals about the modes'
/// mean, of the variance between them times log-uniform(.5, 2)^2. Once a mode is known, one in 32 of the
/// widened scale times log-uniform(1, 100): the scale asked for may be far too narrow (of a mode 20 times as
/// far away as that nothing is to be seen from within). Where the modes lie far beyond the scale
/// `asked` for, half of the first kind are about their mean, of that scale: beside them others may be that are
/// as near, which none of the wide starts would meet.
PointEngine::Rows mode_starts(const RunContext& context, std::uint32_t unit, const ModeLibrary& modes,
                              double asked, std::uint64_t first, int count);

}  // namespace lockstep
