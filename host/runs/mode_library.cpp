// SPDX-License-Identifier: Apache-2.0
#include "host/runs/mode_library.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "host/estimators/log_sums.hpp"

namespace lockstep {

using ByRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void ModeLibrary::add(Mode mode) {
  modes_.push_back(std::move(mode));
  measure();
}

void ModeLibrary::measure() {
  while (inverse_.size() < modes_.size()) {
    const Eigen::Map<const ByRows> factor(modes_[inverse_.size()].factor.data(), dim_, dim_);
    inverse_.push_back(factor.triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(dim_, dim_)));
    widest_.push_back(factor.squaredNorm());  // the trace
    log_det_.push_back(2 * factor.diagonal().array().log().sum());
  }
}

double ModeLibrary::distance(int k, const double* x, double most) const {
  const Eigen::Map<const Eigen::VectorXd> at(x, dim_), place(modes_[k].place.data(), dim_);
  const Eigen::VectorXd apart = at - place;
  const double least = apart.squaredNorm() / widest_[k];
  if (!(least < most)) return std::isnan(least) ? INFINITY : std::max(least, most);
  double sum = 0;
  for (int i = 0; i < dim_ && sum < most; ++i) {
    const double z = inverse_[k].row(i).head(i + 1).dot(apart.head(i + 1));
    sum += z * z;
  }
  return std::isnan(sum) ? INFINITY : sum;
}

ModeLibrary::Aim ModeLibrary::aim(int k, const double* x, const double* gradient) const {
  using Map = Eigen::Map<const Eigen::VectorXd>;
  const Eigen::Map<const ByRows> factor(modes_[k].factor.data(), dim_, dim_);
  const Eigen::VectorXd way = inverse_[k].triangularView<Eigen::Lower>() *
                              (Map(modes_[k].place.data(), dim_) - Map(x, dim_)),
                        along = (factor.triangularView<Eigen::Lower>().transpose() * Map(gradient, dim_))
                                    .stableNormalized();
  const double to = way.dot(along);
  return {to / way.norm(), (way - to * along).norm()};
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

int ModeLibrary::home(const double* x) const {
  int home = -1;
  double least = INFINITY;
  for (int k = 0; k < size(); ++k)
    if (const double far = distance(k, x, least - log_det_[k]) + log_det_[k]; far < least) {
      least = far;
      home = k;
    }
  return home;
}

double ModeLibrary::log_total() const {
  LogSum sum;
  for (const Mode& m : modes_) sum.add(m.best_log_mass());
  return sum.log();
}

std::vector<double> ModeLibrary::shares() const {
  std::vector<double> share;
  for (const Mode& m : modes_) share.push_back(std::exp(m.best_log_mass() - log_total()));
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
