// SPDX-License-Identifier: Apache-2.0
#include "targets/radon_exact.hpp"

#include "targets/radon.hpp"

namespace lockstep {
namespace {

using Eigen::Index;
using Eigen::Matrix3d;
using Eigen::Matrix4d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;

constexpr double kSqrtHalf = 0.70710678118654752440;

/// One line of the lattice: the sums over log s_b at one level, of (1, mu_a, mu_b, m_1, m_2, b_1, b_2, log
/// s_b).
struct Line {
  using Core = Eigen::Matrix<double, 8, 8>;
  Core second = Core::Zero();
  double slope = 0;  // s_b

  void add(const RadonMarginal::Core& c, double log_s_b, double weight) {
    Eigen::Matrix<double, 8, 4> t = Eigen::Matrix<double, 8, 4>::Zero();
    t.middleRows<6>(1) = RadonMarginal::from_white(std::exp(log_s_b));
    Eigen::Matrix<double, 8, 1> mean = t.leftCols<3>() * c.mean;
    mean[0] = 1;
    mean[7] = log_s_b;
    Eigen::Matrix<double, 8, 4> spread;  // xi_0 is white still
    spread << t.leftCols<3>() * c.covariance, t.col(3);
    second.noalias() += weight * mean * mean.transpose();
    second.noalias() += weight * spread * t.transpose();
    slope += weight * std::exp(log_s_b);
  }
};

/// Weighted sums over the lattice, of e = (1, mu_a, mu_b, m_1, m_2, b_1, b_2, log s_b, log s_a, log eps) and
/// of the effects.
struct Sums {
  using Core = Eigen::Matrix<double, 10, 10>;
  Core core = Core::Zero();
  Eigen::Matrix<double, Eigen::Dynamic, 10> cross;  // [J][10]: n_j e
  MatrixXd effect;  // [J][J]: n_j n_k, lower triangle; [J][1] where only n_j^2 is kept
  Vector3d scales = Vector3d::Zero();

  Sums(Index counties, bool full)
      : cross(MatrixXd::Zero(counties, 10)), effect(MatrixXd::Zero(counties, full ? counties : 1)) {}

  void add(const RadonMarginal& marginal, double log_s_a, double log_eps, const Line& line) {
    static constexpr int kEffectOn[4] = {0, 1, 5, 6};  // what effects are linear in
    Eigen::Matrix<double, 10, 8> extend = Eigen::Matrix<double, 10, 8>::Identity();
    extend(8, 0) = log_s_a;
    extend(9, 0) = log_eps;
    const Core second = extend * line.second * extend.transpose();
    core += second;
    const double mass = line.second(0, 0);
    scales += Vector3d(mass * std::exp(log_s_a), line.slope, mass * std::exp(log_eps));
    marginal.effects(log_s_a, log_eps, rows_, v_);
    Eigen::Matrix<double, 4, 10> from;
    for (int i = 0; i < 4; ++i) from.row(i) = second.row(kEffectOn[i]);
    Matrix4d square;
    for (int i = 0; i < 4; ++i) square.col(i) = from.col(kEffectOn[i]);
    cross.noalias() += rows_ * from;
    const Eigen::MatrixX4d product = rows_ * square;
    if (effect.cols() == effect.rows()) {
      effect.triangularView<Eigen::Lower>() += product * rows_.transpose();
      effect.diagonal() += mass * v_.matrix();
    } else {
      effect.col(0) += product.cwiseProduct(rows_).rowwise().sum() + mass * v_.matrix();
    }
  }
  double mass() const { return core(0, 0); }
  /// E of the state's i-th and j-th coordinate, i >= j, and of one alone.
  double second(int i, int j) const {
    const int c = counties();
    if (is_effect(i) && is_effect(j))
      return effect(i - Radon::kCounty, effect.cols() == c ? j - Radon::kCounty : 0) / mass();
    if (is_effect(i)) return cross(i - Radon::kCounty, entry(j)) / mass();
    if (is_effect(j)) return cross(j - Radon::kCounty, entry(i)) / mass();
    return core(entry(i), entry(j)) / mass();
  }
  double first(int i) const {
    return (is_effect(i) ? cross(i - Radon::kCounty, 0) : core(entry(i), 0)) / mass();
  }

 private:
  int counties() const { return int(effect.rows()); }
  bool is_effect(int i) const { return i >= Radon::kCounty && i < Radon::kCounty + counties(); }
  /// The entry of e that holds a coordinate which is no effect.
  int entry(int i) const {
    static constexpr int kFirst[Radon::kCounty] = {1, 2, 8, 7, 9};
    return i < Radon::kCounty ? kFirst[i] : i - Radon::kCounty - counties() + 3;
  }
  Eigen::MatrixX4d rows_;
  Eigen::ArrayXd v_;
};

Truth truth_of(const Sums& sums, int dim) {
  Truth truth = Built<Radon>(dim).truth;
  for (int i = 0; i < dim; ++i) {
    truth.mean[i] = sums.first(i);
    for (int j = dim > Truth::kFullDim ? i : 0; j <= i; ++j) {
      const double covariance = sums.second(i, j) - sums.first(i) * sums.first(j);
      truth.set_covariance(i, j, covariance);
      truth.set_covariance(j, i, covariance);
    }
  }
  for (double scale : sums.scales) truth.quantities.push_back(scale / sums.mass());
  return truth;
}

}  // namespace

RadonMarginal::RadonMarginal(const RadonData& data)
    : size_(Eigen::ArrayXd::Zero(data.counties)),
      mean_(Eigen::MatrixX4d::Zero(data.counties, 4)),
      within_(Matrix4d::Zero()) {
  const std::size_t n = data.y.size();
  auto q = [&](std::size_t i) {
    return Eigen::RowVector4d(1, data.floor[i], data.log_uranium[i], data.y[i]);
  };
  for (std::size_t i = 0; i < n; ++i) {
    size_[data.county[i]] += 1;
    mean_.row(data.county[i]) += q(i);
  }
  const double centre = mean_.col(3).sum() / double(n);
  mean_.array().colwise() /= size_;
  total_ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Eigen::RowVector4d d = q(i) - mean_.row(data.county[i]);
    within_ += d.transpose() * d;
    total_ += (data.y[i] - centre) * (data.y[i] - centre);
  }
}

bool RadonMarginal::improper() const {
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d> x(within_.block<2, 2>(1, 1));
  const Eigen::Vector2d along = x.eigenvectors().transpose() * within_.block<2, 1>(1, 3);
  double needed = double(size_.size()), residual = within_(3, 3);
  for (int k = 0; k < 2; ++k)
    if (x.eigenvalues()[k] > 1e-10 * x.eigenvalues()[1]) {
      needed += 1;
      residual -= along[k] * along[k] / x.eigenvalues()[k];
    }
  return size_.sum() > needed && residual <= 1e-12 * total_;
}

RadonMarginal::Level RadonMarginal::level(double log_s_a, double log_eps) const {
  const double ratio = std::exp(2 * (log_s_a - log_eps)), n = size_.sum();
  Matrix4d between = Matrix4d::Zero();
  double logs = 0;
  for (Index j = 0; j < size_.size(); ++j) {
    const double weight = size_[j] / (1 + size_[j] * ratio);
    for (int a = 0; a < 4; ++a)
      for (int b = 0; b <= a; ++b) between(a, b) += weight * mean_(j, a) * mean_(j, b);
    logs += std::log1p(size_[j] * ratio);
  }
  between.triangularView<Eigen::StrictlyUpper>() = between.transpose();
  auto prior = [](double log_s) {
    return LogHalfCauchy<double>::kConstant + LogHalfCauchy<double>(log_s, Radon::kLogWidth).value;
  };
  return {log_s_a, log_eps, std::exp(-2 * log_eps) * (within_ + between),
          -0.5 * n * std::log(2 * kPi) - n * log_eps - 0.5 * logs + prior(log_s_a) + prior(log_eps)};
}

RadonMarginal::Core RadonMarginal::core(const Level& level, double log_s_b) const {
  const double s_b = std::exp(log_s_b), wide = kSqrtHalf * std::sqrt(2 + s_b * s_b), narrow = kSqrtHalf * s_b;
  Matrix3d k;  // (mu_a, b_1, b_2) from the white coordinates
  k << 1, 0, 0, 0, wide, narrow, 0, wide, -narrow;
  const Matrix3d precision = Matrix3d::Identity() + k.transpose() * level.q.topLeftCorner<3, 3>() * k;
  const Vector3d shift = k.transpose() * level.q.topRightCorner<3, 1>();
  const Eigen::LLT<Matrix3d> factor(precision);
  Core c;
  c.mean = factor.solve(shift);
  c.covariance = factor.solve(Matrix3d::Identity());
  const Vector3d pivots = factor.matrixLLT().diagonal();
  c.log_p = level.log_p + LogHalfCauchy<double>::kConstant +
            LogHalfCauchy<double>(log_s_b, Radon::kLogWidth).value -
            0.5 * (level.q(3, 3) - shift.dot(c.mean)) - std::log(pivots[0] * pivots[1] * pivots[2]);
  return c;
}

void RadonMarginal::effects(double log_s_a, double log_eps, Eigen::MatrixX4d& rows, Eigen::ArrayXd& v) const {
  const double ratio = std::exp(2 * (log_s_a - log_eps));
  v = 1 / (1 + ratio * size_);
  const Eigen::ArrayXd scale = ratio * std::exp(-log_s_a) * size_ * v;  // s_a / eps^2 N_j v_j
  rows.resize(counties(), 4);
  rows.col(0) = scale * mean_.col(3).array();
  for (int k = 0; k < 3; ++k) rows.col(k + 1) = -scale * mean_.col(k).array();
}

Eigen::Matrix<double, 6, 4> RadonMarginal::from_white(double s_b) {
  const double d = std::sqrt(2 + s_b * s_b), h = kSqrtHalf;
  Eigen::Matrix<double, 6, 4> t;
  t << 1, 0, 0, 0,                 //
      0, 1 / (h * d), 0, s_b / d,  //
      0, h * s_b / d, h, -1 / d,   //
      0, h * s_b / d, -h, -1 / d,  //
      0, h * d, h * s_b, 0,        //
      0, h * d, -h * s_b, 0;
  return t;
}

void RadonMarginal::draw(ExactDraw& random, const Vector3d& log_scales, double* x) const {
  const Core c = core(level(log_scales[0], log_scales[2]), log_scales[1]);
  Eigen::Vector4d white;
  for (double& z : white) z = random.normal();
  white.head<3>() = c.mean + c.covariance.llt().matrixL() * white.head<3>();
  const Eigen::Matrix<double, 6, 1> t = from_white(std::exp(log_scales[1])) * white;
  x[Radon::kMuA] = t[0];
  x[Radon::kMuB] = t[1];
  for (int k = 0; k < 3; ++k) x[Radon::kLogSdCounty + k] = log_scales[k];
  Eigen::MatrixX4d rows;
  Eigen::ArrayXd v;
  effects(log_scales[0], log_scales[2], rows, v);
  const VectorXd mean = rows * Eigen::Vector4d(1, t[0], t[4], t[5]);
  double* effect = x + Radon::kCounty;
  for (Index j = 0; j < mean.size(); ++j) *effect++ = mean[j] + std::sqrt(v[j]) * random.normal();
  effect[0] = t[2];
  effect[1] = t[3];
}

std::optional<RadonPosterior> integrate(const RadonMarginal& marginal, double step, bool scales) {
  constexpr double kDepth = 25.3;  // log 1e11
  constexpr std::size_t kMaxPoints = 1000000;
  const auto mode =
      find_mode<3>([&](const Vector3d& x) { return marginal.log_density(x); }, Vector3d(-1, 0, 0));
  // Poles of the priors and of N_j v_j lie pi / 2 off the real axes: with steps of 0.4 they cost
  // exp(-pi^2 / 0.4), 2e-11.
  const Vector3d h = (step * mode.curvature.cwiseMax(1e-10).cwiseSqrt().cwiseInverse()).cwiseMin(0.8 * step);
  auto weigh = [&](const Vector3d& x) { return scales ? std::max(0.0, x.maxCoeff()) : 0.0; };
  const double floor = mode.value + weigh(mode.x) - kDepth;
  RadonPosterior posterior{{}, LatticeDraws<3>(h, step)};
  Sums sums(marginal.counties(), marginal.dim() <= Truth::kFullDim);
  int at_a = 0, at_b = 0, at_e = 0;
  walk(at_a, floor, [&](int a) {
    return walk(at_e, floor, [&](int e) {
      Vector3d x = mode.x + h.cwiseProduct(Vector3d(a, 0, e));
      const RadonMarginal::Level level = marginal.level(x[0], x[2]);
      Line line;
      const double top = walk(at_b, floor, [&](int b) {
        x[1] = mode.x[1] + h[1] * b;
        if (posterior.scales.size() >= kMaxPoints) return std::numeric_limits<double>::quiet_NaN();
        const RadonMarginal::Core core = marginal.core(level, x[1]);
        const double weight = std::exp(core.log_p - mode.value);
        posterior.scales.add(x, weight);
        line.add(core, x[1], weight);
        return core.log_p + weigh(x);
      });
      sums.add(marginal, x[0], x[2], line);
      return top;
    });
  });
  posterior.truth = truth_of(sums, marginal.dim());
  posterior.truth.log_z = mode.value + std::log(sums.mass() * h.prod());
  if (!scales) posterior.truth.quantities.assign(3, std::numeric_limits<double>::quiet_NaN());
  if (posterior.scales.size() >= kMaxPoints || !std::isfinite(posterior.truth.log_z)) return std::nullopt;
  return posterior;
}

}  // namespace lockstep
