// SPDX-License-Identifier: Apache-2.0
#include "host/engines/point_engine.hpp"

#include <cmath>

#include "host/engines/sharded_engine.hpp"

namespace lockstep {

using Vector = Eigen::VectorXd;

PointEngine::PointEngine(const RunContext& context, std::uint32_t unit, int points,
                         const TransitionInfo* transition, std::vector<double> settings) {
  EngineSpec spec = engine_spec(context, {}, {unit}, points);
  spec.precision = Precision::double_;  // differences of gradients are to be Hessians
  spec.transition = transition;
  if (transition != nullptr) spec.settings = {std::move(settings)};
  engine_ = make_engine(context, spec);
}

void PointEngine::evaluate(const Rows& x, Vector& log_density, Rows& gradient) {
  const Eigen::Index d = x.rows(), n = x.cols(), at_once = points();
  log_density.resize(n);
  gradient.resize(d, n);
  evaluations_ += double(n);
  for (Eigen::Index first = 0; first < n; first += at_once) {
    const Eigen::Index count = std::min(n - first, at_once);
    Rows all(d, at_once);
    all.leftCols(count) = x.middleCols(first, count);
    for (Eigen::Index c = count; c < at_once; ++c) all.col(c) = x.col(first);
    engine_->set_position({all.data(), std::size_t(all.size())});
    engine_->initialize();
    const auto value = engine_->cache(), g = engine_->gradient();
    const Eigen::Map<const Rows> slopes(g.data(), d, at_once);
    // A slope that is no number makes this sum one too.
    Eigen::RowVectorXd sum = 0.0 * Eigen::Map<const Eigen::RowVectorXd>(value.data(), count);
    for (Eigen::Index i = 0; i < d; ++i) sum += 0.0 * slopes.row(i).head(count);
    for (Eigen::Index c = 0; c < count; ++c) log_density[first + c] = sum[c] == 0 ? value[c] : -INFINITY;
    for (Eigen::Index i = 0; i < d; ++i)
      for (Eigen::Index c = 0; c < count; ++c) gradient(i, first + c) = sum[c] == 0 ? slopes(i, c) : 0;
  }
}

}  // namespace lockstep
