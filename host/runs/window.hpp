// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Dense>
#include <algorithm>
#include <cstdint>
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

/// [window], the warm-up iterations, numbered from 0, after which the metric is taken from a window's draws, and where the
/// first window begins.
struct MetricWindows {
  std::int64_t first = 0;
  std::vector<std::int64_t> ends;  // the iteration after the last of each
  bool end(std::int64_t next) const { return std::find(ends.begin(), ends.end(), next) != ends.end(); }
  bool within(std::int64_t t) const { return t >= first && !ends.empty() && t < ends.back(); }
};
/// Doubling from a quarter of the warm-up on, or from 75, whichever is less; none in its last fifth.
inline MetricWindows doubling_windows(std::int64_t iterations) {
  MetricWindows w;
  for (std::int64_t end = std::max<std::int64_t>(1, std::min<std::int64_t>(iterations / 4, 75));
       end <= iterations - iterations / 5; end *= 2)
    w.ends.push_back(end);
  return w;
}
/// Stan's (reference manual, section on adaptation): 75 iterations for the step size, windows of 25, 50, 100, .. of which
/// the last takes what would not make another twice as long, and 50 for the step size again; 15 %, 75 % and 10 % of a
/// warm-up of less than 150; of less than 20 no window.
inline MetricWindows stan_windows(std::int64_t iterations) {
  MetricWindows w;
  if (iterations < 20) return w;
  std::int64_t last = 50, size = 25;
  w.first = 75;
  if (w.first + size + last > iterations) {
    w.first = std::int64_t(0.15 * double(iterations));
    last = std::int64_t(0.1 * double(iterations));
    size = iterations - w.first - last;
  }
  const std::int64_t most = iterations - last;
  for (std::int64_t end = w.first + size; end <= most;) {
    w.ends.push_back(end);
    if (end == most) break;
    size *= 2;
    end = end + 3 * size > most ? most : end + size;  // no room for the one after it
  }
  return w;
}

}  // namespace lockstep
