// SPDX-License-Identifier: Apache-2.0
#include "host/runs/frozen.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "host/engines/units.hpp"

namespace lockstep {

void Frozen::spread(int units) {
  const auto each = [&](auto& one) {
    const auto first = std::move(one);
    one.clear();
    for (int u = 0; u < units; ++u) one.insert(one.end(), first.begin(), first.end());
  };
  for (auto* v :
       {&step_size, &trajectory_time, &scale, &factor, &base_mean, &base_sd, &log_zeta, &bend, &warmup_log_z,
        &scout_gradients, &search_gradients, &warmup_gradients, &scout_log_z, &scout_log_z_se})
    each(*v);
  each(full_base);
  each(scout_variance);
}

TiltedIntegral integral_of(const SamplerConfig& config, const Frozen& frozen, std::size_t unit) {
  const std::size_t per = frozen.bend.size() / frozen.step_size.size();
  return {config.model.g_exponent, std::span(frozen.bend).subspan(unit * per, per)};
}

void set_steps(Engine& engine, const SamplerConfig& config, const Frozen& frozen) {
  set_per_unit(engine, ParameterLayout::step_size, frozen.step_size);
  set_per_unit(engine, ParameterLayout::trajectory_time, frozen.trajectory_time);
  std::vector<double> scale_u;
  for (const double step : frozen.step_size)
    scale_u.push_back(std::max(config.scale_u, config.least_tilt / step));
  set_per_unit(engine, ParameterLayout::scale_u, scale_u);
}

void set_frozen(Engine& engine, const SamplerConfig& config, const std::vector<std::uint32_t>& numbers,
                const Frozen& frozen) {
  const ParameterLayout layout = engine.layout();
  const int d = engine.dim(), units = int(frozen.step_size.size());
  set_steps(engine, config, frozen);
  set_per_unit(engine, ParameterLayout::beta, std::vector<double>(units, 1.0));
  set_per_unit(engine, ParameterLayout::log_zeta, frozen.log_zeta);
  if (!frozen.bend.empty()) set_axis(engine, ParameterLayout::bend, frozen.bend, ParameterLayout::kBend);
  set_axis(engine, layout.scale(), frozen.scale, d);
  std::vector<double> log_norm(units, 0.0);
  for (int u = 0; u < units; ++u)
    if (!frozen.full_base.empty())
      log_norm[u] = frozen.full_base[u].log_norm();
    else
      for (int i = 0; i < d && !frozen.base_sd.empty(); ++i)
        log_norm[u] -= 0.5 * std::log(2 * kPi) + std::log(frozen.base_sd[u * d + i]);
  if (!frozen.full_base.empty())
    write_bases(engine, numbers, frozen.full_base, log_norm);
  else
    write_bases(engine, BaseAxes{frozen.base_mean, frozen.base_sd, log_norm});
  if (layout.dense_metric) set_axis(engine, layout.metric_factor(), frozen.factor, layout.triangle());
}

}  // namespace lockstep
