// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Dense>
#include <vector>

namespace lockstep {

/// Pooled mean and covariance (or variances alone) of positions over chains, samples and iterations of a
/// window, per unit.
class Window {
 public:
  Window(int units, int dim, bool dense) : units_(units), dim_(dim), dense_(dense) { clear(); }
  void clear() {
    count_.assign(units_, 0.0);
    sum_.assign(units_, Eigen::VectorXd::Zero(dim_));
    square_.assign(units_, Eigen::MatrixXd::Zero(dim_, dense_ ? dim_ : 1));
  }
  void add(const std::vector<double>& position, int chains, int samples) {
    const int per = chains / units_;
    Eigen::VectorXd x(dim_);
    for (int c = 0; c < chains; ++c)
      for (int s = 0; s < samples; ++s) {
        for (int i = 0; i < dim_; ++i) x[i] = position[std::size_t(s * dim_ + i) * chains + c];
        if (!x.allFinite()) continue;
        ++count_[c / per];
        sum_[c / per] += x;
        if (dense_)
          square_[c / per] += x * x.transpose();
        else
          square_[c / per] += x.cwiseAbs2();
      }
  }
  double mean(int u, int i) const { return sum_[u][i] / count_[u]; }
  /// [d][d], or [d][1] where only variances are kept. Regularised as Stan does: towards a small multiple of
  /// the identity.
  Eigen::MatrixXd covariance(int u) const {
    const Eigen::VectorXd m = sum_[u] / count_[u];
    Eigen::MatrixXd s = square_[u] / count_[u];
    const double shrink = count_[u] / (count_[u] + 5.0), add = 1e-3 * (5.0 / (count_[u] + 5.0));
    if (!dense_) return ((s - m.cwiseAbs2()) * shrink).array() + add;
    s = (s - m * m.transpose()) * shrink;
    s.diagonal().array() += add;
    return s;
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("count", count_);
    archive("sum", sum_);
    archive("square", square_);
  }

 private:
  int units_, dim_;
  bool dense_;
  std::vector<double> count_;
  std::vector<Eigen::VectorXd> sum_;
  std::vector<Eigen::MatrixXd> square_;
};

}  // namespace lockstep
