// SPDX-License-Identifier: Apache-2.0
#include "host/modes/mode_library.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "host/estimators/log_sums.hpp"
#include "targets/decompositions.hpp"

namespace lockstep {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

namespace {

Eigen::Map<const ByRows> factor_of(const Mode& mode) {
  const auto d = Eigen::Index(mode.place.size());
  return {mode.factor.data(), d, d};
}
/// A bound on a covariance's largest eigenvalue: (sum of the 2^s-th powers of the eigenvalues)^(1 / 2^s), of the covariance
/// over its trace.
double widest(Eigen::MatrixXd power) {
  const double trace = power.trace();
  power /= trace;
  const int squarings = power.rows() <= 256 ? 3 : 1;
  for (int s = 0; s < squarings; ++s) power = power * power;
  return trace * std::pow(power.norm(), std::pow(0.5, squarings));
}

/// Coordinates W x in which the modes of a library are round, if they are all drawn out alike: W' W is the inverse of the
/// mean of their covariances. x itself where that is nearly singular, or is not asked for: it costs products of d x d matrices
/// for each mode. `widths`: of each covariance.
struct RoundCoordinates {
  std::optional<Eigen::MatrixXd> to;  // W
  Eigen::MatrixXd places;             // [mode][axis], of W x
  Eigen::ArrayXd norms, thinness;     // [mode]: of places; 1 over the widest variance of W x
  RoundCoordinates(const ModeLibrary& library, const std::vector<double>& widths, bool rounded) {
    const Eigen::Index d = library.dim(), modes = library.size();
    if (rounded) {
      Eigen::MatrixXd mean = Eigen::MatrixXd::Zero(d, d);
      for (int k = 0; k < modes; ++k)
        mean += factor_of(library[k]) * factor_of(library[k]).transpose() / modes;
      const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen(mean);
      if (eigen.info() == Eigen::Success && eigen.eigenvalues()[0] > 1e-4 * eigen.eigenvalues()[d - 1])
        to = eigen.eigenvalues().cwiseSqrt().cwiseInverse().asDiagonal() * eigen.eigenvectors().transpose();
    }
    places.resize(modes, d);
    thinness = 1 / Eigen::Map<const Eigen::ArrayXd>(widths.data(), modes);
    for (int k = 0; k < modes; ++k) {
      places.row(k) = Eigen::Map<const Eigen::VectorXd>(library[k].place.data(), d);
      if (!to) continue;
      places.row(k) = *to * places.row(k).transpose();
      const Eigen::MatrixXd factor = *to * factor_of(library[k]);
      thinness[k] = 1 / widest(factor * factor.transpose());
    }
    norms = places.rowwise().squaredNorm();
  }
};

}  // namespace

Mode as_mode(const Halo& halo) {
  Mode m;
  m.place = halo.place;
  m.factor = halo.factor;
  m.log_mass = halo.log_mass;
  return m;
}

double scale_of(const Mode& mode, const Halo& halo) {
  const std::size_t d = mode.place.size();
  double log_ratio = 0;
  for (std::size_t i = 0; i < d; ++i) log_ratio += std::log(halo.factor[i * d + i] / mode.factor[i * d + i]);
  return std::exp(log_ratio / double(d));
}

void ModeLibrary::add(Mode mode) {
  modes_.push_back(std::move(mode));
  measure();
}

void ModeLibrary::measure() {
  while (inverse_.size() < modes_.size()) {
    const auto factor = factor_of(modes_[inverse_.size()]);
    Eigen::MatrixXd inverse = Eigen::MatrixXd::Zero((dim_ + kRows - 1) / kRows * kRows, dim_);
    inverse.topRows(dim_) =
        factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(dim_, dim_));
    std::vector<Rows> packed;
    for (int i = 0; i < dim_; i += kRows)
      for (int j = 0; j < std::min(dim_, i + kRows); ++j) packed.push_back(inverse.col(j).segment<kRows>(i));
    inverse_.push_back(std::move(packed));
    widest_.push_back(widest(factor * factor.transpose()));
    log_det_.push_back(2 * factor.diagonal().array().log().sum());
  }
}

template <class Take>
void ModeLibrary::whiten(int k, const double* x, Take take) const {
  const double* place = modes_[k].place.data();
  const Rows* column = inverse_[k].data();
  for (int i = 0; i < dim_; i += kRows) {
    Rows z = Rows::Zero();
    for (int j = 0, n = std::min(dim_, i + kRows); j < n; ++j) z += *column++ * (x[j] - place[j]);
    if (!take(i, z)) return;
  }
}

double ModeLibrary::distance(int k, const double* x, double most) const {
  const Eigen::Map<const Eigen::VectorXd> at(x, dim_), place(modes_[k].place.data(), dim_);
  const double least = (at - place).squaredNorm() / widest_[k];
  if (!(least < most)) return std::isnan(least) ? INFINITY : std::max(least, most);
  return measured_distance(k, x, most);
}

double ModeLibrary::measured_distance(int k, const double* x, double most) const {
  double sum = 0;
  whiten(k, x, [&](int, const Rows& z) {
    sum += z.square().sum();
    return sum < most;
  });
  return std::isnan(sum) ? INFINITY : sum;
}

double ModeLibrary::log_density(int k, const double* x) const {
  return modes_[k].best_log_mass() - log_volume(k) - 0.5 * dim_ * std::log(2 * EIGEN_PI) -
         0.5 * distance(k, x);
}

ModeLibrary::Aims ModeLibrary::aims(int k, const Eigen::MatrixXd& x, const Eigen::MatrixXd& gradient) const {
  Eigen::MatrixXd way(dim_, x.cols());
  for (Eigen::Index c = 0; c < x.cols(); ++c)
    whiten(k, x.col(c).data(), [&](int i, const Rows& z) {
      for (int r = 0; r < kRows && i + r < dim_; ++r) way(i + r, c) = -z[r];
      return true;
    });
  const auto factor = factor_of(modes_[k]);
  Eigen::MatrixXd along = factor.triangularView<Eigen::Lower>().transpose() * gradient;
  along.array().rowwise() /=
      along.cwiseAbs().colwise().maxCoeff().eval().array();  // whose squares are finite
  along.array().rowwise() /= along.colwise().norm().eval().array();
  const Eigen::RowVectorXd to = way.cwiseProduct(along).colwise().sum();
  return {to.array() / way.colwise().norm().array(),
          (way - along * to.asDiagonal()).colwise().norm().array()};
}

int ModeLibrary::nearest(const double* x, double most) const {
  int nearest = -1;
  for (int k = 0; k < size(); ++k)
    if (const double d = distance(k, x, most); d < most) {
      most = d;
      nearest = k;
    }
  return nearest;
}

std::vector<int> ModeLibrary::of_points(const Eigen::MatrixXd& x, By by, int threads) const {
  constexpr Eigen::Index kAtOnce = 256;
  const Eigen::Index count = x.cols(), modes = size();
  if (modes == 0) return std::vector<int>(count, -1);
  const RoundCoordinates coordinates(*this, widest_, count > 16 * modes);
  Eigen::ArrayXd offset = Eigen::ArrayXd::Zero(modes);
  for (Eigen::Index k = 0; k < modes && by == By::density; ++k) offset[k] = log_det_[k];
  std::vector<int> found(count, -1);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (Eigen::Index first = 0; first < count; first += kAtOnce) {
    const Eigen::Index n = std::min(kAtOnce, count - first);
    Eigen::MatrixXd points = x.middleCols(first, n);
    if (coordinates.to) points = *coordinates.to * points;
    const Eigen::MatrixXd products = coordinates.places * points;
    Eigen::ArrayXd squares(modes), bound(modes);
    for (Eigen::Index c = 0; c < n; ++c) {
      const double* at = x.col(first + c).data();
      squares = points.col(c).squaredNorm() + coordinates.norms;
      // No mode is nearer than it would be along its widest axis; what rounding may have added to that is taken off.
      bound =
          (squares - 2 * products.col(c).array() - 1e-10 * squares).max(0) * coordinates.thinness + offset;
      Eigen::Index likely = 0;
      double least = INFINITY;
      if (std::isfinite(bound.minCoeff(&likely)))
        least = measured_distance(int(likely), at, INFINITY) + offset[likely];
      int& k = found[first + c];
      if (std::isfinite(least)) k = int(likely);
      for (Eigen::Index other = 0; other < modes; ++other) {
        if (bound[other] >= least) continue;
        const double far = measured_distance(int(other), at, least - offset[other]) + offset[other];
        if (!(far < least)) continue;
        least = far;
        k = int(other);
      }
    }
  }
  return found;
}

double ModeLibrary::log_total() const {
  LogSum sum;
  for (const Mode& m : modes_) {
    sum.add(m.best_log_mass());
    for (const Halo& h : m.halos) sum.add(h.log_mass);
  }
  return sum.log();
}

std::vector<double> ModeLibrary::shares() const {
  std::vector<double> share;
  const double total = log_total();
  for (const Mode& m : modes_) {
    share.push_back(std::exp(m.best_log_mass() - total));
    for (const Halo& h : m.halos) share.back() += std::exp(h.log_mass - total);
  }
  return share;
}

std::vector<int> ModeLibrary::by_mass() const {
  std::vector<int> order(modes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return modes_[a].laplace_log_mass > modes_[b].laplace_log_mass; });
  return order;
}

}  // namespace lockstep
