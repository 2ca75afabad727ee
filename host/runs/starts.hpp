// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>

#include "host/engines/units.hpp"
#include "host/modes/mode_library.hpp"
#include "host/modes/search_result.hpp"
#include "host/runs/frozen.hpp"
#include "host/runs/scout.hpp"

namespace lockstep {

/// Where chains are to start.
struct StartPlan {
  const std::string& init;  // of the options
  double box;               // of the model
  const std::vector<std::uint32_t>& units;
  const ScoutResult& found;
  const std::vector<Eigen::VectorXd>& known;  // as read_starts has them
  const std::vector<int>& superchain;         // [chain of a unit]
};
/// Starting positions [row][chain], by `--init`: the scout's particles, uniform:R, or the known points that
/// read_starts gave. Chains of one superchain start at one point (their momenta differ), and superchains take
/// the known points in proportion to the mass of the modes that these lead to (deal_points), so that chains
/// which seldom change modes are off by little: all pseudo-samples of a chain at one point. Where no chain
/// can go from one known mode to another, chains then disagree, and R-hat says so. (Were pseudo-samples of
/// one chain dealt out over the modes, one that stands outside the base would hold all the weight for ever,
/// in all chains alike: docs/decisions/0009-known-starts.md.)
std::vector<double> starts(const RunContext& context, const Engine& engine, const StartPlan& plan);

/// Makes every second particle of a unit a draw from the normals of its modes, by their masses, so that what is made of the
/// particles (starts, a base) covers modes that the scout has lost. Of those alone whose masses are known well (an
/// effective share of 0.05), and nothing where they are not two, or hold less than half of what was found or of the
/// scout's Z: the normals of modes that hold little of a target are narrower than it.
void include_modes(ScoutResult& found, std::size_t unit, const ModeLibrary& library, RandomStream random);

/// Takes what the modes hold for a unit's log Z where the particles came to over twice that, and yet nearly all of them lie
/// where the modes' normals account for the density (the mean of min(1, q / p) is .9 or more): they have seen nothing else.
/// Particles that pass a bottleneck err by nats, and their error does not say so. Counts what it evaluates.
void correct_log_z(ScoutResult& found, std::size_t unit, const ModeLibrary& library,
                   const TargetInstance& target);

/// Do the particles of the setting's first replicate lie along no axis (a correlation above 0.6)? One answer
/// for the whole setting, the same whichever replicates run beside each other.
bool correlated(const ScoutResult& found);

/// Widens scouted bases of independent axes until the places of modes that hold a millionth or more are within 3 of their
/// standard deviations, an axis at most 5 times and their product at most e^10 times: a chain in a mode where the base has
/// next to nothing would not leave it.
void reach_modes(const std::vector<SearchResult>& modes, Frozen& frozen);

/// Full base and metric from the scout's particles.
void set_full_base(const ScoutResult& found, const SamplerConfig& config, Frozen& frozen);

/// Bases of the modes found, [unit], where sampler.base asks for them or they suffice (mode_base.hpp); units of which they
/// do not keep their own. UserError where they are asked for and there are none.
void set_mode_bases(const ScoutResult& found, const SamplerConfig& config,
                    const std::vector<SearchResult>& modes, Frozen& frozen);

}  // namespace lockstep
