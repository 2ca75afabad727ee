// SPDX-License-Identifier: Apache-2.0
#include "host/engines/base_density.hpp"

#include <algorithm>
#include <cmath>

#include "host/engines/units.hpp"
#include "host/estimators/log_sums.hpp"
#include "kernels/base.hpp"

namespace lockstep {
namespace {

// No normal has as many axes: the block of random words that picks a component.
constexpr std::uint32_t kPick = (1u << 20) - 1;

Eigen::MatrixXd precision_of(const NormalComponent& c) {
  const Eigen::Index d = c.mean.size();
  const Eigen::MatrixXd inverse =
      c.factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(d, d));
  return inverse.transpose() * inverse;
}

void append(std::vector<double>& to, const Eigen::VectorXd& v) { to.insert(to.end(), v.begin(), v.end()); }
/// By rows, one number for both of a pair.
void append(std::vector<double>& to, const Eigen::MatrixXd& symmetric) {
  for (Eigen::Index i = 0; i < symmetric.rows(); ++i)
    for (Eigen::Index j = 0; j < symmetric.rows(); ++j)
      to.push_back(symmetric(std::max(i, j), std::min(i, j)));
}

}  // namespace

int BaseDensity::number() const {
  return by_axes ? base_number<NormalAxes>()
         : tied  ? base_number<TiedMixture>()
                 : base_number<NormalMixture>();
}

std::vector<double> BaseDensity::log_weights() const {
  std::vector<double> a;
  for (const auto& c : components) a.push_back(std::log(c.weight) - c.log_det());
  return a;
}

double BaseDensity::log_norm() const {
  const auto a = log_weights();
  return -0.5 * dim() * std::log(2 * kPi) + *std::max_element(a.begin(), a.end());
}

double BaseDensity::log_density(const Eigen::VectorXd& x) const {
  const auto a = log_weights();
  LogSum sum;
  for (std::size_t k = 0; k < components.size(); ++k) {
    const auto& c = components[k];
    const Eigen::VectorXd z = c.factor.triangularView<Eigen::Lower>().solve(x - c.mean);
    sum.add(a[k] - 0.5 * z.squaredNorm());
  }
  return sum.log() - 0.5 * dim() * std::log(2 * kPi);
}

Eigen::VectorXd BaseDensity::mean() const {
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(dim());
  for (const auto& c : components) mean += c.weight * c.mean;
  return mean;
}

Eigen::MatrixXd BaseDensity::covariance() const {
  const Eigen::VectorXd centre = mean();
  Eigen::MatrixXd covariance = Eigen::MatrixXd::Zero(dim(), dim());
  for (const auto& c : components)
    covariance +=
        c.weight * (c.factor * c.factor.transpose() + (c.mean - centre) * (c.mean - centre).transpose());
  return covariance;
}

std::vector<double> BaseDensity::sd() const {
  Eigen::VectorXd variance = Eigen::VectorXd::Zero(dim());  // without a matrix, which of many axes is large
  const Eigen::VectorXd centre = mean();
  for (const auto& c : components)
    variance += c.weight * (c.factor.rowwise().squaredNorm() + (c.mean - centre).cwiseAbs2());
  std::vector<double> sd(dim());
  for (int i = 0; i < dim(); ++i) sd[i] = std::sqrt(variance[i]);
  return sd;
}

Eigen::VectorXd BaseDensity::draw(const Draw<double>& draw) const {
  return draw_of(draw, components.size() > 1 ? draw.uniform(Purpose::base, kPick) : 0);
}

Eigen::VectorXd BaseDensity::draw_of(const Draw<double>& draw, double u) const {
  std::size_t k = 0;
  for (; k + 1 < components.size(); ++k)
    if ((u -= components[k].weight) < 0) break;
  const auto& c = components[k];
  const auto normal = normals(draw, Purpose::base, dim());
  const Eigen::Map<const Eigen::VectorXd> z(normal.data(), dim());
  if (by_axes) return c.mean + c.factor.diagonal().cwiseProduct(z);
  return c.mean + c.factor.triangularView<Eigen::Lower>() * z;
}

std::vector<double> BaseDensity::numbers() const {
  const auto a = log_weights();
  const double most = *std::max_element(a.begin(), a.end());
  const NormalComponent &first = components[0],
                        &second = components[std::min<std::size_t>(1, components.size() - 1)];
  std::vector<double> numbers = {double(components.size())};
  const Eigen::MatrixXd shared = precision_of(second);
  for (std::size_t k = 0; k < components.size(); ++k) {
    const auto& c = components[k];
    numbers.push_back(a[k] - most);
    if (tied && k > 0) {
      const double t = std::pow(second.factor(0, 0) / c.factor(0, 0), 2);
      numbers.push_back(t);
      append(numbers, c.mean);
      append(numbers, Eigen::VectorXd(t * shared * (first.mean - c.mean)));
      continue;
    }
    append(numbers, c.mean);
    append(numbers, precision_of(c));
    if (tied) append(numbers, shared);
  }
  return numbers;
}

void write_bases(Engine& engine, const std::vector<std::uint32_t>& units,
                 const std::vector<BaseDensity>& bases, const std::vector<double>& log_norm) {
  if (engine.layout().base == base_number<NormalAxes>()) {
    BaseAxes axes{{}, {}, log_norm};
    for (const auto& base : bases) {
      const auto mean = base.mean();
      const auto sd = base.sd();
      axes.mean.insert(axes.mean.end(), mean.begin(), mean.end());
      axes.sd.insert(axes.sd.end(), sd.begin(), sd.end());
    }
    return write_bases(engine, axes);
  }
  UnitList numbers;
  for (std::size_t u = 0; u < units.size(); ++u)
    numbers[units[u]] = u > 0 && bases.size() == 1 ? numbers[units[0]] : bases[u].numbers();
  engine.set_base(numbers);
  set_per_unit(engine, ParameterLayout::base_log_norm, log_norm);
}

void write_bases(Engine& engine, const BaseAxes& bases) {
  const int d = engine.dim();
  const std::vector<double> none(d, 0.0);
  std::vector<double> inv_sd = bases.sd;
  for (double& s : inv_sd) s = 1 / s;
  set_axis(engine, engine.layout().base_mean(), bases.mean.empty() ? none : bases.mean, d);
  set_axis(engine, engine.layout().base_inv_sd(), inv_sd.empty() ? none : inv_sd, d);
  set_per_unit(engine, ParameterLayout::base_log_norm, bases.log_norm);
}

}  // namespace lockstep
