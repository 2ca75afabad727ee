// SPDX-License-Identifier: Apache-2.0
#pragma once
// How narrow a mode a search for modes would still have met.
#include <string>

#include "host/modes/search_result.hpp"

namespace lockstep {

/// The ratio r of widths (of volumes, its d-th root) down to which a search would have met a further mode 19 times in 20: a normal of
/// the shape of the widest that it knows of those that hold over 1 %, r times as wide, that holds a tenth as much as all known. It
/// lies where starts do on the whole, N(m, v I), m the mean of the modes known and v the variance between them on an axis, or
/// beside one of them, as far away as the nearest other: wherever it is met less often. (Beside one mode at N(0, s^2 I), s the
/// widest scale of starts.) Between 1e-4 and 10, which say no more than that. NaN where nothing can be said: nothing was searched
/// for, or the budget ended that too soon (SearchResult::unsettled), chains met modes that the search had not, a mode that holds
/// over 1 % resembles no normal or has heavier tails, or there are 200 modes or over 256 dimensions.
///
/// A mode is seen from where its own normal is denser than those of the modes known, and of their halos: along a ray c + t L u from its centre c, L L'
/// that covariance and u a unit vector, up to some t(u). The chance that a start lies there is the mean over directions u of
/// 2 pi^(d/2) / Gamma(d/2) |L| times the integral of t^(d - 1) p(c + t L u) from 0 to t(u), p the density of starts (most_starts); by
/// quadrature over the angle a of u with L^-1 (m - c), of density sin(a)^(d - 2), in four planes. Of n starts one does with probability
/// 1 - exp(-n times that), and r is where the mean of this over 64 centres of either kind is .95. Starts of other kinds are left out, and descents
/// that end there from elsewhere.
double narrowest_met(const SearchResult& found);
/// Why nothing can be said, in words; "" where something can, or nobody knows why not.
std::string why_unknown(const SearchResult& found);

/// What it says of others beside so many modes; and where it says nothing, that, and why if that is known.
std::string of_others(double narrowest, int modes, const std::string& unknown);

}  // namespace lockstep
