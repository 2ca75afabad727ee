// SPDX-License-Identifier: Apache-2.0
#include "host/runs/found_modes.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/mode_visits.hpp"
#include "host/runs/modes_met.hpp"
#include "host/runs/starts.hpp"

namespace lockstep {
namespace {

/// Where chains of a unit are, [d][sample, chain].
PointEngine::Rows places_of(const Adapted& out, int d, const ChainRunOptions& options, Eigen::Index unit) {
  const ModelSpec& model = out.frozen.model;
  const int samples = model.kind == ModelKind::pseudo_extended ? model.pseudo_samples : 1;
  const Eigen::Index chains = options.chains, total = chains * Eigen::Index(options.units.size());
  PointEngine::Rows places(d, samples * chains);
  for (int s = 0; s < samples; ++s)
    for (int i = 0; i < d; ++i)
      for (Eigen::Index c = 0; c < chains; ++c)
        places(i, s * chains + c) = out.positions[(s * d + i) * total + unit * chains + c];
  return places;
}
/// Whether one has a mode, of more than a hundredth of what it knows, that the other has not.
bool knows_more(const ModeLibrary& one, const ModeLibrary& other) {
  const double least = one.log_total() + std::log(kExpectedShare);
  for (int k = 0; k < one.size(); ++k)
    if (one[k].best_log_mass() > least && other.nearest(one[k].place.data(), 1) < 0) return true;
  return false;
}
}  // namespace

FoundModes found_modes(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                       const ScoutResult& scouted, const std::vector<std::uint32_t>& units) {
  constexpr int kParticles = 512;
  constexpr double kMostOfShortRuns = 1e6;
  FoundModes modes;
  modes.warm_ups.assign(units.size(), 0.0);
  if (!options.searches) return modes;
  const int d = context.target->dim();
  for (std::size_t u = 0; u < units.size(); ++u) {
    SearchPlan plan;
    plan.init_scale = options.init_scale;
    plan.gradients = kSearchShare * (options.planned > 0 ? options.planned : options.gradients);
    if (plan.gradients == 0)
      plan.iterations = double(options.chains) * double(options.iterations) * config.model.pseudo_samples;
    if (scouted.particles > 0) plan.least = std::min(scouted.gradients[u], kMostOfShortRuns);
    // Neighbours have one ancestor: evenly spread.
    const int every = (scouted.particles + kParticles - 1) / kParticles;
    for (int p = 0; p < scouted.particles; p += every) {
      const auto from = scouted.position.begin() + (std::ptrdiff_t(u) * scouted.particles + p) * d;
      plan.particles.insert(plan.particles.end(), from, from + d);
    }
    modes.of.push_back(find_modes(context, units[u], options.init, options.modes, std::move(plan)));
  }
  return modes;
}

bool more_modes(const RunContext& context, const ChainRunOptions& options, const Adapted& out,
                FoundModes& modes) {
  bool any = false;
  const std::vector<double> warm_up = out.frozen.warmup_gradients;
  for (std::size_t u = 0; u < modes.of.size(); ++u) {
    const SearchResult& before = modes.of[u];
    double planned = std::max(options.planned, options.gradients);
    const bool is_known = planned > 0 || options.warmup == 0;
    if (!is_known) planned = warm_up[u] * double(options.iterations) / double(options.warmup);
    SearchPlan plan;
    plan.init_scale = options.init_scale;
    plan.gradients = kSearchShare * planned;
    const SearchResult on = is_known ? before : search_on(context, options.units[u], plan, before);
    SearchResult more =
        with_modes_met(context, options.units[u], on,
                       places_of(out, context.target->dim(), options, Eigen::Index(u)), planned);
    any = any || knows_more(more.library, before.library);
    modes.of[u] = std::move(more);
  }
  for (std::size_t u = 0; u < modes.of.size() && any; ++u) modes.warm_ups[u] += warm_up[u];
  return any;
}

}  // namespace lockstep
