// SPDX-License-Identifier: Apache-2.0
#include "host/paths/base_controls.hpp"

#include <Eigen/Dense>
#include <cmath>

#include "targets/target.hpp"

namespace lockstep {
namespace {

using Matrix = Eigen::MatrixXd;
using Array = Eigen::ArrayXd;  // [point]

constexpr std::uint32_t kOfHeavy =
    (1u << 20) - 2;  // no normal has as many axes: blocks of random words of its own
constexpr double kLeastLog =
    -600;  // of a share: what is smaller still is as good, and below -708 costs a hundred times as much

/// Column after column, for Eigen's own goes row by row, one number at a time.
Array sum_of_columns(const Eigen::Ref<const Eigen::ArrayXXd>& x) {
  Array sum = x.col(0);
  for (Eigen::Index k = 1; k < x.cols(); ++k) sum += x.col(k);
  return sum;
}

/// L^-1 (x - m) of the rows of x, their squared lengths, and log N(x; m, L L').
struct Standardised {
  Matrix z;
  Array square, log_density;
  Standardised(const NormalComponent& c, bool by_axes, const Matrix& x)
      : z(x.rowwise() - c.mean.transpose()) {
    if (by_axes)
      z.array().rowwise() /= c.factor.diagonal().transpose().array();
    else
      c.factor.transpose().triangularView<Eigen::Upper>().solveInPlace<Eigen::OnTheRight>(z);
    square = sum_of_columns(z.array().square());
    log_density = -c.log_det() - 0.5 * double(x.cols()) * std::log(2 * kPi) - 0.5 * square;
  }
};

/// log of the Student t with the scale of a normal, at squared lengths.
Array log_student(const NormalComponent& c, const Array& square) {
  constexpr double nu = DrawnDensity::kDegrees;
  const double d = double(c.mean.size());
  const double log_norm =
      std::lgamma(0.5 * (nu + d)) - std::lgamma(0.5 * nu) - 0.5 * d * std::log(nu * kPi) - c.log_det();
  return log_norm - 0.5 * (nu + d) * (square / nu).log1p();
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
  const int shares = k, wholes = shares + j + k, means = wholes + j * d, all = means + (j + k) * d;
  wholes_ = wholes <= kMost;
  means_ = means <= kMost;
  axes_ = all <= kMost;
  count_ = axes_ ? all : means_ ? means : wholes_ ? wholes : std::min(shares, kMost);
}

BaseControls::Values BaseControls::at(const Matrix& x) const {
  const auto n = x.rows(), d = x.cols();
  const auto& components = density_.normals.components;
  const auto count = Eigen::Index(components.size());
  std::vector<Standardised> own;
  // log of w_k N(x; m_k, L_k L_k'), of the Student t last, then their parts of the sum: a column is all points of one, for
  // what is done to it to be done to many at a time.
  Eigen::ArrayXXd share(n, count + 1);
  for (Eigen::Index k = 0; k < count; ++k) {
    const NormalComponent& c = components[std::size_t(k)];
    own.emplace_back(c, density_.normals.by_axes, x);
    share.col(k) = std::log(c.weight) + own.back().log_density;
  }
  share.col(count) = std::log(DrawnDensity::kHeavy) + log_student(components.front(), own.front().square);
  Array most = share.col(0);
  for (Eigen::Index k = 1; k <= count; ++k) most = most.max(share.col(k));
  share.colwise() -= most;
  share = share.max(kLeastLog).exp();
  const Array sum = sum_of_columns(share);
  const Array log_sum = most + sum.log();
  share.colwise() /= sum;
  double of_base = 0;
  for (int k = 0; k < density_.of_base; ++k) of_base += components[std::size_t(k)].weight;
  const Array part = sum_of_columns(share.leftCols(density_.of_base));
  Values out{log_sum, log_sum + part.log() - std::log(of_base), Matrix(n, count_)};

  Eigen::Index column = 0;
  const auto next = [&] { return out.controls.col(column++).array(); };
  for (Eigen::Index k = 1; k <= count && column < count_; ++k)
    next() = share.col(k) - (k < count ? components[std::size_t(k)].weight : DrawnDensity::kHeavy);
  if (!wholes_) return out;
  for (Eigen::Index k = 0; k < count; ++k) {
    const Standardised& of = own[std::size_t(k)];
    next() = share.col(k) * (of.square - double(d));
    for (Eigen::Index i = 0; i < d && axes_; ++i) next() = of.z.col(i).array() * share.col(k);
  }
  for (const NormalComponent& c : normals_) {
    const Array ratio = (Standardised(c, false, x).log_density - log_sum).max(kLeastLog).exp();
    next() = ratio - 1;
    for (Eigen::Index i = 0; i < d && means_; ++i) {
      const Array apart = x.col(i).array() - c.mean[i];
      next() = apart * ratio;
      if (axes_) next() = (apart.square() - c.factor.row(i).squaredNorm()) * ratio;
    }
  }
  return out;
}

ControlFit::ControlFit(int controls, int columns)
    : gram_(Matrix::Zero(controls + 1, controls + 1)), product_(Matrix::Zero(controls + 1, columns)) {}

void ControlFit::add(const Matrix& controls, const Matrix& y) {
  Matrix all(controls.rows(), controls.cols() + 1);
  all << Eigen::VectorXd::Ones(controls.rows()), controls;
  gram_.selfadjointView<Eigen::Lower>().rankUpdate(all.transpose());
  product_ += all.transpose() * y;
}

Matrix ControlFit::coefficients() const {
  constexpr double kRidge = 1e-9;  // of controls that are scaled alike; one that never varied gets 0
  const Eigen::VectorXd scale =
      gram_.diagonal().unaryExpr([](double v) { return v > 0 ? 1 / std::sqrt(v) : 0.0; });
  Matrix gram = scale.asDiagonal() * gram_ * scale.asDiagonal();  // its lower half
  gram.diagonal().array() += kRidge;
  return scale.asDiagonal() * gram.ldlt().solve(scale.asDiagonal() * product_);
}

}  // namespace lockstep
