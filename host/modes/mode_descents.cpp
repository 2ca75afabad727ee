// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_descents.hpp"

#include <algorithm>

#include "host/estimators/log_sums.hpp"
#include "host/modes/mode_jumps.hpp"
#include "kernels/residual_lbfgs.hpp"

namespace lockstep {

DescentEnds ModeDescents::run(const PointEngine::Rows& from) {
  Eigen::VectorXd value;
  PointEngine::Rows gradient;
  points_.evaluate(from, value, gradient);
  Engine& engine = points_.engine();
  LaunchSpec launch;
  launch.key = context_.key;
  launch.end = 1;
  engine.advance(launch);
  const auto fields = engine.fields(), x = engine.position();
  const std::size_t chains = engine.chains();
  DescentEnds ends{Eigen::Map<const PointEngine::Rows>(x.data(), from.rows(), chains), engine.cache(), {}};
  for (int c = 0; c < int(from.cols()); ++c) {
    steps_ += fields[Lbfgs::evaluations * chains + c];
    if (fields[Lbfgs::converged * chains + c] > 0.5) ends.rested.push_back(c);
  }
  std::stable_sort(ends.rested.begin(), ends.rested.end(),
                   [&](int a, int b) { return ends.log_density[a] > ends.log_density[b]; });
  return ends;
}

void ResidualDescents::set_known(const ModeLibrary& library) {
  auto list = mixture_list(library, 1);
  LogSum highest;  // of all components at their means: no less than q anywhere
  const int d = library.dim(), length = ModeMixture::length(d);
  for (std::size_t next = ModeMixture::kHeader + length; next <= list.size(); next += length)
    highest.add(list[next - 2]);
  if (!list.empty()) list[1] = library.log_total();
  points_.engine().set_shared(0, {{unit_, list}});
  points_.engine().set_shared(1, {{unit_, {std::log(2.0) + highest.log() / temperature_}}});
}

}  // namespace lockstep
