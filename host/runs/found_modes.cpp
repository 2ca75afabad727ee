// SPDX-License-Identifier: Apache-2.0
#include "host/runs/found_modes.hpp"

#include <algorithm>
#include <cmath>

#include "host/modes/given_points.hpp"
#include "host/modes/mode_search.hpp"
#include "host/modes/modes_met.hpp"

namespace lockstep {
namespace {

/// Where chains of a unit are, or of all where they adapt together: [d][sample, chain].
PointEngine::Rows places_of(const Adapted& out, const ModelSpec& model, int d, const ChainRunOptions& options,
                            std::size_t unit) {
  const int samples = model.pseudo_samples;
  const std::size_t total = std::size_t(options.chains) * options.units.size(),
                    chains = options.pooled ? total : std::size_t(options.chains), first = unit * chains;
  PointEngine::Rows places(d, samples * chains);
  for (int s = 0; s < samples; ++s)
    for (int i = 0; i < d; ++i)
      for (std::size_t c = 0; c < chains; ++c)
        places(i, Eigen::Index(s * chains + c)) = out.positions[std::size_t(s * d + i) * total + first + c];
  return places;
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
    SearchPlan plan =
        search_plan(options.init_scale, options.planned > 0 ? options.planned : options.gradients);
    if (plan.gradients == 0)
      plan.iterations = double(options.chains) * double(options.iterations) * config.model.pseudo_samples;
    if (scouted.particles > 0) plan.least = std::min(scouted.gradients[u], kMostOfShortRuns);
    plan.one_round = config.first_starts() > 0;  // chains learn the others
    if (plan.one_round) plan.first_starts = config.first_starts();
    // Neighbours have one ancestor: evenly spread.
    const int every = (scouted.particles + kParticles - 1) / kParticles;
    for (int p = 0; p < scouted.particles && !plan.one_round; p += every) {
      const auto from = scouted.position.begin() + (std::ptrdiff_t(u) * scouted.particles + p) * d;
      plan.particles.insert(plan.particles.end(), from, from + d);
    }
    modes.of.push_back(find_modes(context, units[u], options.init, options.modes, std::move(plan)));
  }
  return modes;
}

bool more_modes(const RunContext& context, const SamplerConfig& config, const ChainRunOptions& options,
                const ScoutResult& scouted, const Adapted& out, FoundModes& modes) {
  if (options.warmup == 0 || config.first_starts() > 0)
    return false;  // chains are where they began, or learn
  bool any = false, pays = true;
  const std::vector<double> warm_up = out.frozen.warmup_gradients;
  for (std::size_t u = 0; u < modes.of.size(); ++u) {
    SearchResult& known = modes.of[u];
    if (!known.grows()) continue;
    const ModeLibrary before = known.library;
    double planned = std::max(options.planned, options.gradients);
    const bool was_planned = planned > 0;
    if (!was_planned)
      planned = warm_up[u] / out.warmup_transitions * double(options.chains) * double(options.iterations);
    const SearchPlan plan = search_plan(options.init_scale, planned);
    if (!was_planned) known = search_on(context, options.units[u], plan, known);
    known = with_modes_met(context, options.units[u], plan, known,
                           places_of(out, config.model, context.target->dim(), options, u));
    any = any || new_modes(known.library, before) > 0;
    if (options.whole_budget) {
      const double spent = out.frozen.scout_gradients[u] + known.gradients + modes.warm_ups[u] + warm_up[u];
      pays = pays && spent + warm_up[u] <= kMostPrepared * options.gradients;
    }
  }
  if (!any || !pays) return false;
  for (std::size_t u = 0; u < modes.of.size(); ++u) {
    const double looked = scouted.particles > 0 ? out.frozen.scout_gradients[u] - scouted.gradients[u] : 0;
    modes.warm_ups[u] += warm_up[u] + looked;  // at particles, which is done anew
  }
  return true;
}

}  // namespace lockstep
