// SPDX-License-Identifier: Apache-2.0
#include "host/paths/gaussian_base.hpp"

#include <algorithm>
#include <cmath>

#include "host/runs/base_rows.hpp"
#include "host/runs/sharded_engine.hpp"

namespace lockstep {
namespace {

constexpr int kMostDense = 64;

double single(double v) { return double(float(v)); }

}  // namespace

GaussianBase GaussianBase::from_moments(const Eigen::VectorXd& mean, const Eigen::MatrixXd& covariance,
                                        double inflation, double log_zeta, std::string how) {
  GaussianBase b;
  b.mean = mean;
  b.log_zeta = log_zeta;
  b.how = std::move(how);
  const int d = int(mean.size());
  for (int i = 0; i < d && d <= kMostDense; ++i)
    for (int j = 0; j < i; ++j)
      b.dense |= std::abs(covariance(i, j)) > 0.3 * std::sqrt(covariance(i, i) * covariance(j, j));
  // Too few particles for so many axes give no factor.
  const Eigen::LLT<Eigen::MatrixXd> llt(covariance);
  const bool regular = llt.info() == Eigen::Success;
  b.dense &= regular;
  if (b.dense)
    b.factor = inflation * Eigen::MatrixXd(llt.matrixL());
  else
    b.factor = inflation * covariance.diagonal().cwiseSqrt().asDiagonal().toDenseMatrix();
  if (regular)
    b.metric = inflation * llt.solve(Eigen::MatrixXd::Identity(d, d)).diagonal().cwiseInverse().cwiseSqrt();
  else
    b.metric = inflation * covariance.diagonal().cwiseSqrt();
  return b;
}

void GaussianBase::fit_metric(const std::vector<double>& curvature) {
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

double GaussianBase::log_norm() const {
  return -0.5 * dim() * std::log(2 * kPi) - factor.diagonal().array().log().sum();
}
double GaussianBase::taken_out() const { return single(log_zeta) + single(log_norm()) - log_norm(); }

std::vector<double> GaussianBase::sd() const {
  std::vector<double> sd(dim());
  for (int i = 0; i < dim(); ++i) sd[i] = factor.row(i).norm();
  return sd;
}

std::unique_ptr<Engine> GaussianBase::path_engine(const RunContext& context,
                                                  const std::vector<std::uint32_t>& units,
                                                  int chains_per_unit, bool covariance, int trace,
                                                  Control control) const {
  EngineSpec spec = engine_spec(context, {.kind = ModelKind::path, .dense_base = dense, .control = control},
                                units, chains_per_unit);
  spec.covariance = covariance;
  spec.trace = trace;
  auto engine = make_engine(context, spec);
  set(*engine);
  set_axis(*engine, engine->layout().scale(), {metric.begin(), metric.end()}, dim());
  // A few trajectories take the control from one end to the other: 10 of its units, or half a period.
  set_per_unit(*engine, ParameterLayout::scale_u, {control == Control::plateaus ? 0.7 : 1.4});
  return engine;
}

void GaussianBase::set(Engine& engine) const {
  const int d = dim();
  BaseRows rows{{mean.begin(), mean.end()}, sd(), {}, {single(log_norm())}};
  if (dense) {
    const Eigen::MatrixXd inverse =
        factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(d, d));
    const Eigen::MatrixXd precision = inverse.transpose() * inverse;
    for (int i = 0; i < d; ++i)
      for (int j = 0; j <= i; ++j) rows.precision.push_back(precision(i, j));
  }
  write_base(engine, rows);
  set_per_unit(engine, ParameterLayout::log_zeta, {single(log_zeta)});
}

std::vector<double> GaussianBase::draws(const StreamKey& key, std::uint32_t iteration, int chains,
                                        int chains_per_unit) const {
  const int d = dim();
  std::vector<double> out(std::size_t(d) * chains);
  Eigen::VectorXd x(d);
  for (int c = 0; c < chains; ++c) {
    const Draw<double> draw{key, iteration, std::uint32_t(c % chains_per_unit),
                            std::uint32_t(c / chains_per_unit)};
    const auto normal = normals(draw, Purpose::base, d);
    const Eigen::Map<const Eigen::VectorXd> z(normal.data(), d);
    if (dense)
      x = mean + factor.triangularView<Eigen::Lower>() * z;
    else
      x = mean + factor.diagonal().cwiseProduct(z);
    for (int i = 0; i < d; ++i) out[std::size_t(i) * chains + c] = x[i];
  }
  return out;
}

}  // namespace lockstep
