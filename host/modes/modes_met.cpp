// SPDX-License-Identifier: Apache-2.0
#include "host/modes/modes_met.hpp"

#include <algorithm>
#include <cmath>

#include "host/modes/mode_search.hpp"

namespace lockstep {
namespace {

/// Descents that a twenty-fifth of what a search may spend pays for, by what one of it has cost.
int affordable(const SearchResult& found, const SearchPlan& plan) {
  constexpr double kShare = 0.04, kLeast = 64, kMost = 1024, kUsual = 10;
  const double made = found.starts - found.foretold, each = made > 0 ? found.gradients / made : kUsual;
  return int(std::clamp(kShare * plan.gradients / each, kLeast, kMost));
}

}  // namespace

SearchResult with_modes_met(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                            const SearchResult& found, const PointEngine::Rows& places) {
  if (!found.grows() || places.cols() == 0) return found;
  const double count = std::min(double(places.cols()), double(affordable(found, plan)));
  std::vector<Eigen::Index> chosen;
  for (double n = 0; n < count; ++n) chosen.push_back(Eigen::Index(n * double(places.cols()) / count));
  return modes_beside(context, unit, plan, found, PointEngine::Rows(places(Eigen::all, chosen)));
}

SearchResult with_modes_met(const RunContext& context, std::uint32_t unit, const SearchPlan& plan,
                            const SearchResult& found, const SeenDraws& draws) {
  const int d = context.target->dim();
  const std::size_t chains = std::max<std::size_t>(1, draws.chains), times = draws.x.size() / (chains * d);
  if (times == 0 || !found.grows()) return found;
  const std::size_t rows = std::clamp<std::size_t>(affordable(found, plan) / chains, 1, times);
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < chains; ++c) {
      const std::size_t n = (times - 1 - r * times / rows) * chains + c;
      if (draws.log_weight.empty() || draws.log_weight[n] > -INFINITY) counts.push_back(n);
    }
  PointEngine::Rows x(d, counts.size());
  for (std::size_t c = 0; c < counts.size(); ++c)
    for (int i = 0; i < d; ++i) x(i, Eigen::Index(c)) = double(draws.x[counts[c] * d + i]);
  return with_modes_met(context, unit, plan, found, x);
}

}  // namespace lockstep
