// SPDX-License-Identifier: Apache-2.0
#include "targets/boltzmann_exact.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// The states of `units` units with numbers from `first` on, one to a row: bit j set means s_j = 1.
Matrix states(Index units, Index first, Index count) {
  Matrix s(count, units);
  for (Index j = 0; j < units; ++j)
    for (Index k = 0; k < count; ++k) s(k, j) = ((first + k) >> j) & 1 ? 1 : -1;
  return s;
}
Matrix states(Index units) { return states(units, 0, Index(1) << units); }

// Element by element: Eigen's own exp and log for AVX-512 draw warnings from g++ 12.
auto exp_of(const auto& a) {
  return a.unaryExpr([](double v) { return std::exp(v); });
}
auto log_of(const auto& a) {
  return a.unaryExpr([](double v) { return std::log(v); });
}

/// s'Ws / 2 + s'b of every row s.
Vector energies(const Matrix& s, const Matrix& w, const Vector& b) {
  return 0.5 * (s * w).cwiseProduct(s).rowwise().sum() + s * b;
}

}  // namespace

BoltzmannEnumeration::BoltzmannEnumeration(Matrix w, Vector b)
    : w_(std::move(w)),
      b_(std::move(b)),
      high_((b_.size() + 1) / 2),
      one_(low_group(high_, (b_.size() - high_ + 1) / 2)),
      two_(low_group(high_ + one_.units, (b_.size() - high_) / 2)) {
  const Matrix exponent = states(one_.units) * w_.block(one_.first, two_.first, one_.units, two_.units) *
                          states(two_.units).transpose();
  const double top = exponent.maxCoeff();
  f_ = exp_of(exponent.array() - top);
  sum_states(top);
}

BoltzmannEnumeration::Low BoltzmannEnumeration::low_group(Index first, Index units) const {
  const Vector e = energies(states(units), w_.block(first, first, units, units), b_.segment(first, units));
  return {first, units, exp_of(e.array() - e.maxCoeff()), e.maxCoeff()};
}

/// row[l] = exp(sum_j l_j field_j - sum_j |field_j|) weight[l], one unit at a time: with each, the row
/// doubles. Returns sum |field|.
double BoltzmannEnumeration::fill_row(const Low& low, const double* field, double* row) const {
  double total = 0;
  row[0] = 1;
  for (Index j = 0, size = 1; j < low.units; ++j, size *= 2) {
    const double against = std::exp(-2 * std::abs(field[j]));
    const double down = field[j] < 0 ? 1 : against, up = field[j] < 0 ? against : 1;
    for (Index k = 0; k < size; ++k) {
      row[size + k] = row[k] * up;
      row[k] *= down;
    }
    total += std::abs(field[j]);
  }
  Eigen::Map<Eigen::ArrayXd>(row, low.weight.size()) *= low.weight;
  return total;
}

void BoltzmannEnumeration::sum_states(double f_top) {
  const Index m = b_.size(), n1 = one_.weight.size(), n2 = two_.weight.size(), n = Index(1) << high_;
  const Index block = std::min<Index>(n, 512);  // rows of h at a time: what they need stays in the cache
  const double minus_infinity = -std::numeric_limits<double>::infinity();
  Rows u(block, n1), v(block, n2), p1(block, n1), p2(block, n2);
  // Sums of exp(-top) times the weights, where top grows with the largest weight of an h seen so far.
  double top = minus_infinity, lost = minus_infinity;
  Matrix sum1 = Matrix::Zero(high_ + 1, n1),
         sum2 = Matrix::Zero(high_ + 1, n2);  // sum over h of (h, 1) P(h, l)
  Matrix pair = Matrix::Zero(n1, n2);         // sum over h of P(h, l1, l2) / F
  Vector log_weight(n);                       // of each h
  for (Index first = 0; first < n; first += block) {
    Matrix s(block, high_ + 1);
    s << states(high_, first, block), Vector::Ones(block);
    const Matrix h = s.leftCols(high_);
    const Rows fields = h * w_.block(0, high_, high_, m - high_);
    Vector scale = energies(h, w_.topLeftCorner(high_, high_), b_.head(high_));
    for (Index k = 0; k < block; ++k) {
      scale[k] += fill_row(one_, fields.row(k).data(), u.row(k).data());
      scale[k] += fill_row(two_, fields.row(k).data() + one_.units, v.row(k).data());
    }
    p1.noalias() = v * f_.transpose();
    p1.array() *= u.array();
    p2.noalias() = u * f_;
    p2.array() *= v.array();
    const Vector weight = log_weight.segment(first, block) = scale + log_of(p1.rowwise().sum().eval());
    // A sum this small may have lost terms to underflow: at most e^-650 of the scale all together.
    for (Index k = 0; k < block; ++k)
      if (!(weight[k] > scale[k] - 600)) lost = std::max(lost, scale[k] - 650);
    if (weight.maxCoeff() > top) {
      const double shrink = std::exp(top - weight.maxCoeff());
      top = weight.maxCoeff();
      sum1 *= shrink;
      sum2 *= shrink;
      pair *= shrink;
    }
    // An h whose weight is nothing beside the largest contributes nothing, though its scale may be infinite.
    const Vector e = (weight.array() > top - 200).select(exp_of(scale.array() - top), 0.0);
    sum1.noalias() += s.transpose() * (e.asDiagonal() * p1);
    sum2.noalias() += s.transpose() * (e.asDiagonal() * p2);
    v = e.asDiagonal() * v;
    pair.noalias() += u.transpose() * v;
  }
  pair.array() *= f_.array();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  log_z_ = nan;
  mean_ = Vector::Constant(m, nan);
  second_ = Matrix::Constant(m, m, nan);
  if (!(lost < top - 40)) return;

  const double total = pair.sum();
  log_z_ = top + std::log(total) + one_.top + two_.top + f_top;
  const Vector p = exp_of(log_weight.array() - top) / total;
  const Matrix h = states(high_), l1 = states(one_.units), l2 = states(two_.units);
  mean_ << h.transpose() * p, (sum1.row(high_) * l1).transpose() / total,
      (sum2.row(high_) * l2).transpose() / total;
  auto put = [&](Index row, Index column, const Matrix& values) {
    second_.block(row, column, values.rows(), values.cols()) = values;
    second_.block(column, row, values.cols(), values.rows()) = values.transpose();
  };
  put(0, 0, h.transpose() * p.asDiagonal() * h);
  put(0, one_.first, sum1.topRows(high_) * l1 / total);
  put(0, two_.first, sum2.topRows(high_) * l2 / total);
  put(one_.first, one_.first, l1.transpose() * sum1.row(high_).asDiagonal() * l1 / total);
  put(two_.first, two_.first, l2.transpose() * sum2.row(high_).asDiagonal() * l2 / total);
  put(one_.first, two_.first, l1.transpose() * pair * l2 / total);
  second_.diagonal().setOnes();
  cumulative_.resize(n);
  double sum = 0;
  for (Index k = 0; k < n; ++k) cumulative_[k] = sum += p[k];
}

Vector BoltzmannEnumeration::draw(ExactDraw& random) const {
  auto pick = [&](const Eigen::ArrayXd& weight) {
    double rest = random.uniform() * weight.sum();
    Index k = 0;
    while (k + 1 < weight.size() && rest >= weight[k]) rest -= weight[k++];
    return k;
  };
  const double at = random.uniform() * cumulative_.back();
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
  const Index k = std::min<Index>(found - cumulative_.begin(), Index(cumulative_.size()) - 1);
  Vector s(b_.size());
  s.head(high_) = states(high_, k, 1).transpose();
  const Index low = b_.size() - high_;
  const Vector field = w_.bottomLeftCorner(low, high_) * s.head(high_);
  Eigen::ArrayXd u(one_.weight.size()), v(two_.weight.size());
  fill_row(one_, field.data(), u.data());
  fill_row(two_, field.data() + one_.units, v.data());
  const Index l1 = pick(u * (f_ * v.matrix()).array());
  const Index l2 = pick(v * f_.row(l1).transpose().array());
  s.segment(one_.first, one_.units) = states(one_.units, l1, 1).transpose();
  s.segment(two_.first, two_.units) = states(two_.units, l2, 1).transpose();
  return s;
}

}  // namespace lockstep
