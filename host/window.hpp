// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Dense>
#include <vector>

namespace lockstep {

/// Pooled mean and covariance of positions over chains, samples and iterations of a window, per unit.
class Window {
 public:
  Window(int units, int dim) : units_(units), dim_(dim) { clear(); }
  void clear() {
    count_ = 0;
    sum_.assign(units_, Eigen::VectorXd::Zero(dim_));
    square_.assign(units_, Eigen::MatrixXd::Zero(dim_, dim_));
  }
  void add(const std::vector<double>& position, int chains, int samples, bool dense) {
    const int per = chains / units_;
    Eigen::VectorXd x(dim_);
    for (int c = 0; c < chains; ++c)
      for (int s = 0; s < samples; ++s) {
        for (int i = 0; i < dim_; ++i) x[i] = position[std::size_t(s * dim_ + i) * chains + c];
        if (!x.allFinite()) continue;
        sum_[c / per] += x;
        if (dense)
          square_[c / per] += x * x.transpose();
        else
          square_[c / per].diagonal() += x.cwiseAbs2();
      }
    count_ += per * samples;
  }
  double count() const { return count_; }
  double mean(int u, int i) const { return sum_[u][i] / count_; }
  /// Regularised as Stan does: towards a small multiple of the identity.
  Eigen::MatrixXd covariance(int u, bool dense) const {
    const Eigen::VectorXd m = sum_[u] / count_;
    Eigen::MatrixXd s = square_[u] / count_;
    if (dense)
      s -= m * m.transpose();
    else
      s.diagonal() -= m.cwiseAbs2();
    s *= count_ / (count_ + 5.0);
    s.diagonal().array() += 1e-3 * (5.0 / (count_ + 5.0));
    return s;
  }

 private:
  int units_, dim_;
  double count_ = 0;
  std::vector<Eigen::VectorXd> sum_;
  std::vector<Eigen::MatrixXd> square_;
};

}  // namespace lockstep
