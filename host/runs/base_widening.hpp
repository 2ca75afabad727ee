// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/estimators/pe_evidence.hpp"
#include "host/runs/frozen.hpp"
#include "host/runs/run.hpp"

namespace lockstep {

/// Widens bases made of the scout's particles to what the chains of a warm-up see: weighted draws of its
/// second eighth, and then of its second quarter. An axis along which they are 1.1 times as wide as the base,
/// `base_inflation` and the distance of the means included, becomes so wide (by up to 5 in all), and the
/// unit's zeta goes by their own log Z. Particles lose tails that neither more of them nor more moves bring
/// back, for they have descended from few; chains, tempered all the while, get there
/// (docs/decisions/0014-modes.md). Bases of modes, given ones, and those of targets in a box stay; so do
/// those of transitions that keep log densities of their own.
class BaseWidening {
 public:
  BaseWidening(const RunContext& context, const SamplerConfig& config, const Frozen& begins,
               std::int64_t iterations);

  /// Whether iteration t of the warm-up is to be recorded.
  bool within(std::int64_t t) const { return enabled_ && t >= first_ && t < 4 * first_; }
  void record(Launched& launched, std::int64_t t);
  /// The units whose bases were widened, before iteration `next`. Energies go by them.
  std::vector<std::size_t> widened(std::int64_t next, Frozen& frozen);

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
    archive("evidence", evidence_);
  }

 private:
  void begin();
  bool widen(std::size_t unit, Frozen& frozen) const;

  const SamplerConfig& config_;
  MomentLayout layout_;
  int threads_;
  std::int64_t first_;
  std::vector<double> first_sd_;          // the base's, [unit][axis]
  std::vector<TiltedIntegral> integral_;  // [unit]; none: no evidence
  bool enabled_;
  std::vector<std::vector<double>> sums_;  // [unit][row]
  std::vector<PseudoExtendedEvidence> evidence_;
};

}  // namespace lockstep
