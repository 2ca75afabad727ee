// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run says of its own trustworthiness: the gates, and the verdict that they add up to. No truth is read.
#include <optional>
#include <string>
#include <vector>

#include "host/estimators/estimates.hpp"
#include "host/runs/chain_result.hpp"
#include "host/util/json_archive.hpp"

namespace lockstep {

/// Below these a run is too short to judge: recorded iterations of each chain; the gradients allowed to a
/// method that is one pass from base to target.
inline constexpr std::int64_t kLeastIterations = 100;
inline constexpr double kLeastFreedom = 8;  // degrees of freedom of the standard errors of means
inline constexpr double kLeastOfOnePass = 5e4;
inline constexpr double kLeastEffective = 100;  // draws, bulk and tail
/// R-hat of single chains over which short ones have not left where they began, though groups of them agree: R^2 - 1 is one over
/// the number of independent draws that one chain is worth, which are then two.
inline constexpr double kChainsApart = 1.2;

/// pass; fail; or "not established" where the run was too short to judge (gate `length`), whatever else it
/// failed, or where all that speaks against it is that nobody knows what its modes should hold (`modes_mass`).
std::string verdict_of(const std::vector<std::string>& failed);

/// Gates of `sample` for one unit of a run, by name; empty: all pass.
///
/// starts: chains began at each of the points that the user gave. length: at least 100 recorded iterations.
/// rhat, nested_rhat: at most 1.05 on every axis. acceptance: in [.2, .99]. divergences: under 1 % of the
/// transitions. weight_ess: at least 10 per reported mean. base, of a learned one: the target is at most
/// kNarrow times as wide. log_z, where the sampler gives it: finite. scout: log Z does not contradict the
/// particles', or is the higher and what the modes found hold, or what the warm-up saw that widened the base; and
/// these are not wider (wider_scout).
/// round_trips, where inverse temperatures are part of the state: Estimates::beta_spread is at most
/// kMostSpread. And those that the transition declares, each by the name of its counter.
std::vector<std::string> failed_gates(const Estimates& estimates, const ChainRunResult& run, std::size_t unit,
                                      const SamplerConfig& config);

/// What the particles that went before are, along the axis where they are widest beside a run.
struct WiderScout {
  int axis;
  double times;  // as wide
};
/// Where that is over kNarrow, and by 4 joint errors of the variances (those of estimates as chains have them, before they are
/// widened): chains have not come into tails that particles have been in. Nothing where the modes found hold half of the target
/// or more, which say what is right, or in a box.
std::optional<WiderScout> wider_scout(const Estimates& estimates, const ChainRunResult& run, std::size_t unit,
                                      const SamplerConfig& config);
std::string warning_of(const WiderScout& scout, const std::vector<std::string>& names);

/// The last gate of a run that fails no other, `length`: where R-hat is nested, that of single chains is at most kChainsApart, else
/// draws are worth kLeastEffective; and errors of means have kLeastFreedom degrees of freedom. Returns the warning, or "".
std::string judge_short_chains(std::vector<std::string>& failed, const Estimates& estimates);

/// What the transition of a unit has counted, by name.
NamedNumbers counters_of(const UnitMoments& unit, const TransitionInfo& transition);
/// Of those of its gates that fail: what was counted, what it means and what to do.
std::vector<std::string> advice_of(const UnitMoments& unit, const TransitionInfo& transition);

/// Of chains that move between temperatures .7 to 2 was seen on sixteen targets; of such as keep to where
/// they began 1,600, when log Z was .06 to .09 off, by up to 22 errors, and nothing else told.
inline constexpr double kMostSpread = 10;

/// How many times as wide as the draws that a base is made of the target is, along the axis where it is most.
/// Chains that come from too narrow a base agree with one another long before they know the target's tails.
/// base_sd: [d], before any inflation.
double times_as_wide(const WeightedMoments& moments, const std::vector<double>& base_sd);
/// Too much: right runs of ten targets have 1.2 at most, runs off by half a nat and more 1.4 and more.
inline constexpr double kNarrow = 1.4;
/// Too much of a base that is not made of draws, as it is, where the modes are too many to be known:
/// variational ones of Boltzmann machines have 1.5 at most; from a given one with 9 log Z was .2 to .4 low,
/// by up to 6 errors.
inline constexpr double kFarNarrower = 3;

/// Whether log Z as recorded cannot be that of the particles that went before: more than 5 joint standard
/// errors and more than 3 apart (particles alone are off by 1 to 3 on multimodal targets).
bool contradicts(const LogZ& recorded, const LogZ& particles);
/// Whether a log Z is lower than particles from another base say, by more than 4 errors and more than 0.3:
/// whoever leaves out a part of the target sees less of Z, and nobody sees much more than there is, but
/// seldom (their Z has the right mean, so that it is e^a times too large at most once in e^a).
bool misses_what_others_see(const LogZ& recorded, const LogZ& others);

}  // namespace lockstep
