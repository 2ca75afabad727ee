// SPDX-License-Identifier: Apache-2.0
#include "host/paths/particle_drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "targets/registry.hpp"

namespace lockstep {

void judge_drift(MethodResult& f, const BlockMeans& drifts, const TargetInstance& target, bool widens_log_z) {
  const auto drift_of = [&](std::size_t row) { return block_mean(drifts[row]).value(); };
  std::string found;
  const auto judge = [&](const LogZ& drift, const std::string& of, double parts) {
    if (found.empty() && differ(drift, {0, 0}, parts))
      found = fmt::format("{} of the particles changes by {:.2g} +- {:.2g}", of, drift.estimate, drift.se);
    return std::sqrt(std::max(0.0, drift.estimate * drift.estimate - drift.se * drift.se));
  };
  const LogZ drift = drift_of(0);
  f.diagnostics.add("drift", drift);
  const double gained =
      judge({-drift.estimate, drift.se, drift.unscaled_se, drift.df}, "log(target / base)", 1);
  if (widens_log_z) f.log_z = f.log_z.widened(gained);
  const std::size_t dim = target.dim();
  const double rows = double(drifts.size());
  MomentErrors least;
  for (std::size_t i = 0; i < dim; ++i) {
    least.mean.push_back(judge(drift_of(1 + i), target.names()[i], rows));
    least.second.push_back(judge(drift_of(1 + dim + i), fmt::format("second_moment[{}]", i), rows));
  }
  for (std::size_t q = 0; q < target.quantities().size(); ++q)
    least.quantity.push_back(judge(drift_of(1 + 2 * dim + q), target.quantities()[q], rows));
  widen(f.moments, least);
  for (std::size_t i = 0; i < 2 * dim; ++i)
    judge(drift_of(1 + 2 * dim + target.quantities().size() + i),
          fmt::format("the share {:.0f} standard deviations {} the mean of {}, and farther,", kFarFromMean,
                      i < dim ? "below" : "above", target.names()[i % dim]),
          rows);
  if (found.empty()) return;
  f.failed.push_back("drift");
  f.warnings.push_back(
      fmt::format("{} as they go on at beta = 1: they have not come to where they belong, and errors allow "
                  "for no more than this; more gradients, or another method",
                  found));
}

}  // namespace lockstep
