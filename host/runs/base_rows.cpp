// SPDX-License-Identifier: Apache-2.0
#include "host/runs/base_rows.hpp"

#include "host/runs/units.hpp"

namespace lockstep {

void write_base(Engine& engine, const BaseRows& base) {
  const ParameterLayout layout = engine.layout();
  const int d = engine.dim();
  const std::vector<double> none(d, 0.0);
  std::vector<double> inv_sd = base.sd;
  for (double& s : inv_sd) s = 1 / s;
  set_axis(engine, layout.base_mean(), base.mean.empty() ? none : base.mean, d);
  set_axis(engine, layout.base_inv_sd(), inv_sd.empty() ? none : inv_sd, d);
  if (layout.dense_base) set_axis(engine, layout.base_precision(), base.precision, layout.triangle());
  set_per_unit(engine, ParameterLayout::base_log_norm, base.log_norm);
}

}  // namespace lockstep
