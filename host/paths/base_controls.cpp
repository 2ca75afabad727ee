// SPDX-License-Identifier: Apache-2.0
#include "host/paths/base_controls.hpp"

#include <Eigen/Dense>
#include <cmath>

#include "targets/target.hpp"

namespace lockstep {
namespace {

using Matrix = Eigen::MatrixXd;
using Row = Eigen::RowVectorXd;

constexpr std::uint32_t kOfHeavy =
    (1u << 20) - 2;  // no normal has as many axes: blocks of random words of its own

/// L^-1 (x - m) of the columns of x, their squared lengths, and log N(x; m, L L').
struct Standardised {
  Matrix z;
  Row square, log_density;
  Standardised(const NormalComponent& c, bool by_axes, const Matrix& x) : z(x.colwise() - c.mean) {
    if (by_axes)
      z.array().colwise() /= c.factor.diagonal().array();
    else
      c.factor.triangularView<Eigen::Lower>().solveInPlace(z);
    square = z.colwise().squaredNorm();
    const double log_norm = -c.log_det() - 0.5 * double(x.rows()) * std::log(2 * kPi);
    log_density = log_norm - 0.5 * square.array();
  }
};

/// log of the Student t with the scale of a normal, at squared lengths.
Row log_student(const NormalComponent& c, const Row& square) {
  constexpr double nu = DrawnDensity::kDegrees;
  const double d = double(c.mean.size());
  const double log_norm =
      std::lgamma(0.5 * (nu + d)) - std::lgamma(0.5 * nu) - 0.5 * d * std::log(nu * kPi) - c.log_det();
  return log_norm - 0.5 * (nu + d) * (square.array() / nu).log1p();
}

}  // namespace

DrawnDensity::DrawnDensity(const BaseDensity& base, const std::vector<NormalComponent>& modes)
    : normals(base), of_base(int(base.components.size())) {
  constexpr double kWidening = 1.2, kFloor = 0.02;  // of covariances; of the weights, even
  const bool own = base.tied && !modes.empty();
  for (NormalComponent& c : normals.components) c.weight *= (own ? 0.5 : 1) * (1 - kHeavy);
  if (!own) return;
  normals.tied = false;
  double total = 0;
  for (const NormalComponent& m : modes) total += m.weight;
  for (const NormalComponent& m : modes)
    normals.components.push_back(
        {0.5 * (1 - kHeavy) * (kFloor / double(modes.size()) + (1 - kFloor) * m.weight / total), m.mean,
         std::sqrt(kWidening) * m.factor});
}

Eigen::VectorXd DrawnDensity::draw(const Draw<double>& draw) const {
  const double u = draw.uniform(Purpose::base, kOfHeavy);
  if (u >= kHeavy) return normals.draw_of(draw, (u - kHeavy));
  const NormalComponent& c = normals.components.front();
  const double chi_square =
      -2 * std::log(draw.uniform(Purpose::base, kOfHeavy - 1) * draw.uniform(Purpose::base, kOfHeavy - 2));
  return c.mean + std::sqrt(kDegrees / chi_square) * (normals.draw_of(draw, 0) - c.mean);
}

BaseControls::BaseControls(const DrawnDensity& density, std::vector<NormalComponent> normals)
    : density_(density), normals_(std::move(normals)) {
  const int k = int(density.normals.components.size()), j = int(normals_.size()), d = density.normals.dim();
  const int shares = k, wholes = shares + j + k, all = wholes + (2 * j + k) * d;
  wholes_ = wholes <= kMost;
  axes_ = all <= kMost;
  count_ = axes_ ? all : wholes_ ? wholes : std::min(shares, kMost);
}

BaseControls::Values BaseControls::at(const Matrix& x) const {
  Values out;
  Matrix& controls = out.controls;
  const auto n = x.cols(), d = x.rows();
  const auto& components = density_.normals.components;
  const auto count = Eigen::Index(components.size());
  std::vector<Matrix> z;
  Matrix share(count + 1,
               n);  // log of w_k N(x; m_k, L_k L_k'), of the Student t last, then their parts of the sum
  for (Eigen::Index k = 0; k < count; ++k) {
    const NormalComponent& c = components[std::size_t(k)];
    Standardised own(c, density_.normals.by_axes, x);
    share.row(k) = std::log(c.weight) + own.log_density.array();
    if (k == 0) share.row(count) = std::log(DrawnDensity::kHeavy) + log_student(c, own.square).array();
    z.push_back(std::move(own.z));
  }
  const Row most = share.colwise().maxCoeff();
  share = (share.rowwise() - most).array().exp().matrix();
  const Row sum = share.colwise().sum();
  const Row log_sum = most.array() + sum.array().log();
  out.log_density = log_sum.transpose();
  share.array().rowwise() /= sum.array();
  double of_base = 0;
  for (int k = 0; k < density_.of_base; ++k) of_base += components[std::size_t(k)].weight;
  const Row part = share.topRows(density_.of_base).colwise().sum();
  out.log_base = (log_sum.array() + part.array().log() - std::log(of_base)).transpose();

  controls.resize(count_, n);
  Eigen::Index row = 0;
  for (Eigen::Index k = 1; k <= count && row < count_; ++k)
    controls.row(row++) =
        share.row(k).array() - (k < count ? components[std::size_t(k)].weight : DrawnDensity::kHeavy);
  if (!wholes_) return out;
  for (Eigen::Index k = 0; k < count; ++k) {
    const Matrix& own = z[std::size_t(k)];
    controls.row(row++) = share.row(k).array() * (own.colwise().squaredNorm().array() - double(d));
    if (!axes_) continue;
    controls.middleRows(row, d) = own.array().rowwise() * share.row(k).array();
    row += d;
  }
  for (const NormalComponent& c : normals_) {
    const Row ratio = (Standardised(c, false, x).log_density - log_sum).array().exp();
    controls.row(row++) = ratio.array() - 1;
    if (!axes_) continue;
    const Matrix apart = x.colwise() - c.mean;
    const Eigen::ArrayXd variance = c.factor.rowwise().squaredNorm();
    controls.middleRows(row, d) = apart.array().rowwise() * ratio.array();
    controls.middleRows(row + d, d) = (apart.array().square().colwise() - variance).rowwise() * ratio.array();
    row += 2 * d;
  }
  return out;
}

ControlFit::ControlFit(int controls, int columns)
    : gram_(Matrix::Zero(controls + 1, controls + 1)), product_(Matrix::Zero(controls + 1, columns)) {}

void ControlFit::add(const Matrix& controls, const Matrix& y) {
  Matrix all(controls.rows() + 1, controls.cols());
  all << Row::Ones(controls.cols()), controls;
  gram_ += all * all.transpose();
  product_ += all * y;
}

Matrix ControlFit::coefficients() const {
  constexpr double kRidge = 1e-9;  // of controls that are scaled alike; one that never varied gets 0
  const Eigen::VectorXd scale =
      gram_.diagonal().unaryExpr([](double v) { return v > 0 ? 1 / std::sqrt(v) : 0.0; });
  Matrix gram = scale.asDiagonal() * gram_ * scale.asDiagonal();
  gram.diagonal().array() += kRidge;
  return scale.asDiagonal() * gram.ldlt().solve(scale.asDiagonal() * product_);
}

}  // namespace lockstep
