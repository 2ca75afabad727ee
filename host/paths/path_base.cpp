// SPDX-License-Identifier: Apache-2.0
#include "host/paths/path_base.hpp"

#include <algorithm>
#include <cmath>

#include "host/engines/sharded_engine.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

constexpr double kWideShare = 0.1, kWide = 3;

double single(double v) { return double(float(v)); }

}  // namespace

PathBase PathBase::from_moments(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                                double inflation, double log_zeta, std::string how) {
  PathBase b;
  b.log_zeta = log_zeta;
  b.how = std::move(how);
  const int d = int(mean.size());
  bool dense = false;
  for (int i = 0; i < d && d <= BaseDensity::kMostDense; ++i)
    for (int j = 0; j < i; ++j)
      dense |= std::abs(covariance(i, j)) > 0.3 * std::sqrt(covariance(i, i) * covariance(j, j));
  // Too few particles for so many axes give no factor.
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
  const bool regular = llt.info() == Eigen::Success;
  dense &= regular;
  b.density = BaseDensity::normal(
      mean,
      inflation * (dense ? Eigen::MatrixXd(llt.matrixL())
                         : covariance.diagonal().cwiseSqrt().asDiagonal().toDenseMatrix()),
      !dense);
  if (regular)
    b.metric = inflation * llt.solve(Eigen::MatrixXd::Identity(d, d)).diagonal().cwiseInverse().cwiseSqrt();
  else
    b.metric = inflation * covariance.diagonal().cwiseSqrt();
  return b;
}

void PathBase::fit_metric(const std::vector<double>& curvature) {
  constexpr double share = 0.25;  // of the base's scale, which transitions at the other end want
  std::vector<double> ratio(dim());
  for (int i = 0; i < dim(); ++i) {
    ratio[i] = 1 / (metric[i] * std::sqrt(curvature[i]));
    if (!(ratio[i] > 0 && std::isfinite(ratio[i]))) ratio[i] = 1;
  }
  auto sorted = ratio;
  std::nth_element(sorted.begin(), sorted.begin() + dim() / 2, sorted.end());
  const double median = sorted[dim() / 2];
  for (int i = 0; i < dim(); ++i)
    metric[i] *= std::pow(std::clamp(ratio[i], median / 30, median * 30), 1 - share);
}

void PathBase::widen() {
  if (dim() > BaseDensity::kMostDense || widened > 1) return;
  NormalComponent& usual = density.components.front();
  NormalComponent wide{kWideShare, usual.mean, kWide * usual.factor};
  usual.weight = 1 - kWideShare;
  density.components.push_back(std::move(wide));
  density.by_axes = false;
  density.tied = true;
  widened = std::sqrt(1 + kWideShare * (kWide * kWide - 1));
}

double PathBase::taken_out() const {
  return single(log_zeta) + single(density.log_norm()) - density.log_norm();
}

std::unique_ptr<Engine> PathBase::path_engine(const RunContext& context,
                                              const std::vector<std::uint32_t>& units, int chains_per_unit,
                                              bool covariance, int trace, const PathMoves& moves) const {
  EngineSpec spec =
      engine_spec(context, {.kind = ModelKind::path, .base = density.number(), .control = moves.control},
                  units, chains_per_unit);
  spec.transition = moves.transition;
  if (!moves.settings.empty()) spec.settings = {moves.settings};
  spec.covariance = covariance;
  spec.trace = trace;
  auto engine = make_engine(context, spec);
  write_bases(*engine, units, {density}, {single(density.log_norm())});
  set_per_unit(*engine, ParameterLayout::log_zeta, {single(log_zeta)});
  set_axis(*engine, engine->layout().scale(), {metric.begin(), metric.end()}, dim());
  // A few trajectories take the control from one end to the other: 10 of its units, or half a period.
  set_per_unit(*engine, ParameterLayout::scale_u, {moves.control == Control::plateaus ? 0.7 : 1.4});
  return engine;
}

std::vector<double> PathBase::draws(const StreamKey& key, std::uint32_t iteration, int chains,
                                    int chains_per_unit) const {
  const int d = dim();
  std::vector<double> out(std::size_t(d) * chains);
  for (int c = 0; c < chains; ++c) {
    const Eigen::VectorXd x = density.draw(
        {key, iteration, std::uint32_t(c % chains_per_unit), std::uint32_t(c / chains_per_unit)});
    for (int i = 0; i < d; ++i) out[std::size_t(i) * chains + c] = x[i];
  }
  return out;
}

}  // namespace lockstep
