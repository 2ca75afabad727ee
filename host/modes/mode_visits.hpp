// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of a run's draws each mode has, and should have.
#include <vector>

#include "host/modes/mode_library.hpp"
#include "host/modes/mode_moments.hpp"
#include "host/modes/mode_share.hpp"

namespace lockstep {

inline constexpr double kExpectedShare = 0.01;  // that a mode should hold for anybody to ask for visits

inline constexpr std::size_t kMostShares = 32;  // modes whose shares are told

/// Shares of the draws, by weight: those that each mode is the home of, as its mass is counted, and those that it is
/// nearest to, of which a mode among wider or denser ones may have some where it is no draw's home; and of the former those in
/// its core, for what lies about a mode is at home there too, though nothing ever enters it. And how many of equal weight
/// they are worth.
struct Visits {
  std::vector<double> home, near, core;
  double effective = 0;
  double of(int k, bool mass_known) const { return mass_known ? home[k] : near[k]; }
};
/// `nearest`: of the draws; empty where nobody asks.
Visits visited(const ModeLibrary& library, const HousedDraws& draws, const std::vector<int>& nearest,
               int threads);

/// What mode k should hold of exp(log_z), and whether that is known, or Laplace's approximation.
struct Due {
  double share;
  bool known;
};
Due due_of(const Mode& mode, double log_z);

/// The largest modes by Laplace, with their shares of the draws and of exp(log_z), halos counted with them: first those where
/// either is most. Standard errors by the blocks' spread, sqrt(B / (B - 1) sum_b (held_kb - share_k held_b)^2) / held;
/// unknown where no draw is in a mode, or all are, and of fewer chains than blocks.
std::vector<ModeShare> shares_of(const ModeLibrary& library, const HousedDraws& draws, double log_z,
                                 int threads);

/// What the core of mode k should hold; 0 where that is not known or not over 1 %, or draws, which are floats, do not tell
/// where in it they are.
double due_of_core(const ModeLibrary& library, int k, double log_z);

/// Adds errors that moments have at least where draws lack some of what lies about modes, though not so much as gate `modes` asks
/// for: what they lack of each halo's share of exp(log_z), times how far its moments are from theirs. What they have of it is the
/// mean of the probability that a draw is of it, by the normals and masses of modes and halos. One-sided: tails of modes that are
/// no normals are taken for halos.
void add_errors_of_halos(MomentErrors& least, const ModeLibrary& library, const HousedDraws& draws,
                         double log_z, const WeightedMoments& moments);

/// The share of draws, by weight, that lie twice as far as its core reaches from every mode and halo.
double share_beyond(const ModeLibrary& library, const HousedDraws& draws);

}  // namespace lockstep
