// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "host/runs/chain_result.hpp"
#include "host/runs/smc_sampler.hpp"

namespace lockstep {

/// log of z(beta) = int base^(1 - beta) (target / zeta)^beta dx, from a unit's base to its target.
struct PathProfile {
  std::vector<std::vector<double>> beta, log_z;  // [unit][level]; 0 at beta = 0
  std::vector<double> gradients;                 // [unit]

  template <class Archive>
  void fields(Archive& archive) {
    archive("beta", beta);
    archive("log_z", log_z);
    archive("gradients", gradients);
  }
  /// The exponent a for which levels lie as if they were drawn from a density ~ beta^a, by maximum likelihood, with two
  /// more levels of a = -1/2: where there are many a chain has a long way to go.
  double exponent(std::size_t unit) const;
  /// The bend of g (PseudoExtended, with the exponent `from`) with which the marginal density of beta is beta^to e^(-min(tilt,
  /// 1) beta) from the first level on, zeta being e^tilt too large: minus the least squares fit of log z by powers of
  /// beta^(1/4), and the least that either the particles or `tilt` have log z end at. Particles that lose a mode err low, and
  /// more than there is of the target would keep chains there. All 0 where particles did not come to beta = 1.
  std::array<double, ParameterLayout::kBend> bend(std::size_t unit, double tilt, double from,
                                                  double to) const;
  /// How much of it to take: none where log z dips less than 2.2 below the line between its ends, all from 3.2 on. Chains
  /// cross shallow dips, and the more time they have at the base the better.
  double share(std::size_t unit) const;
};

/// Sequential Monte Carlo from the frozen bases, for every unit on its own (as the scout's). The context must live as long;
/// it can be stopped between two levels (as the scout can).
class ProfileRun {
 public:
  ProfileRun(const RunContext& context, const SamplerConfig& config, const std::vector<std::uint32_t>& units,
             const Frozen& frozen);
  /// One level further; false at the end.
  bool step();
  void tell() const;
  /// What was found, once, at the end.
  PathProfile finish();

  template <class Archive>
  void fields(Archive& archive) {
    archive("particles", particles_);
    archive("found", found_);
  }

 private:
  const RunContext& context_;
  SmcSampler particles_;
  PathProfile found_;
};

/// Draws of each unit's base, and its bridge made of them: 4,096, and up to sixteen times as many while their error is above
/// .005; at most a hundredth of the gradients asked for, but 256. What they cost is counted.
void bridge_to_bases(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                     Frozen& frozen);

/// Made, run and saved, as a stage; and taken: bend and cost of each unit. On a path that is flat beta crosses what lies
/// between base and target.
void flatten(const RunContext& context, const SamplerConfig& config, const std::vector<std::uint32_t>& units,
             Frozen& frozen);

}  // namespace lockstep
