// SPDX-License-Identifier: Apache-2.0
#include "targets/boltzmann_mean_field.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "targets/target.hpp"

namespace lockstep {
namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

// Starts that go side by side; a number of its own, not the machine's, so that every machine takes the same
// number of sweeps for a start.
constexpr int kLanes = 32;
using Lanes = Pack<double, kLanes>;

Lanes tanh_of(Lanes v) {
  const Lanes e = exp2(abs(v) * (-2 * kLog2E)), t = (1 - e) / (1 + e);
  return select(v < 0.0, -t, t);
}

/// Sweeps over the units, each set to its best value given the others, which never raises F; until no lane
/// moves by 1e-7.
void descend(const Matrix& w, const Vector& b, std::vector<double>& m) {
  const Index n = b.size();
  for (int sweep = 0; sweep < 1000; ++sweep) {
    Lanes change = Lanes(0.0);
    for (Index i = 0; i < n; ++i) {
      const double* row = w.data() + i * n;  // W is symmetric
      Lanes even = Lanes(b[i]), odd = Lanes(0.0);
      Index j = 0;
      for (; j + 1 < n; j += 2) {
        even = fma(Lanes(row[j]), load<Lanes>(&m[std::size_t(j) * kLanes]), even);
        odd = fma(Lanes(row[j + 1]), load<Lanes>(&m[std::size_t(j + 1) * kLanes]), odd);
      }
      if (j < n) even = fma(Lanes(row[j]), load<Lanes>(&m[std::size_t(j) * kLanes]), even);
      const Lanes old = load<Lanes>(&m[std::size_t(i) * kLanes]), now = tanh_of(even + odd);
      change = max(change, abs(now - old));
      store(&m[std::size_t(i) * kLanes], now);
    }
    if (reduce_max(change) < 1e-7) break;
  }
}

/// Newton's method on r(m) = tanh(Wm + b) - m, as long as the residual falls.
void polish(const Matrix& w, const Vector& b, Vector& m) {
  const Index n = b.size();
  Vector t = (w * m + b).unaryExpr([](double v) { return std::tanh(v); });
  for (int step = 0; step < 8; ++step) {
    const Vector slope = 1 - t.array().square();
    const Matrix jacobian = Matrix::Identity(n, n) - slope.asDiagonal() * w;
    const Vector next = m + jacobian.partialPivLu().solve(t - m);
    const Vector next_t = (w * next + b).unaryExpr([](double v) { return std::tanh(v); });
    if (!((next_t - next).cwiseAbs().maxCoeff() < 0.5 * (t - m).cwiseAbs().maxCoeff())) break;
    m = next;
    t = next_t;
  }
  m = t;  // inside (-1, 1) whatever rounding did
}

double free_energy(const Matrix& w, const Vector& b, const Vector& m) {
  // p log p + (1 - p) log(1 - p) by way of the field v, where tanh v = m: p = 1 / (1 + exp(-2v)).
  double entropy = 0;
  for (double mean : m) {
    const double p = 0.5 * (1 + std::abs(mean)), q = 0.5 * (1 - std::abs(mean));
    entropy -= p * std::log(p) + (q > 0 ? q * std::log(q) : 0);
  }
  return -0.5 * m.dot(w * m) - m.dot(b) - entropy;
}

}  // namespace

double MeanField::log_sum() const {
  const double top = -free_energy.minCoeff();
  double sum = 0;
  for (double f : free_energy) sum += std::exp(-f - top);
  return top + std::log(sum);
}

Vector MeanField::weights() const {
  const double total = log_sum();
  return free_energy.unaryExpr([&](double f) { return std::exp(-f - total); });
}

MeanField solve_mean_field(const Matrix& w, const Vector& b, int starts, std::uint64_t seed) {
  const Index n = b.size();
  ExactDraw random(seed, "mean field");
  std::vector<Vector> found;
  auto known = [&](const Vector& m) {
    for (const Vector& other : found)
      if ((other - m).cwiseAbs().maxCoeff() < 1e-4) return true;
    return false;
  };
  std::vector<double> m(std::size_t(n) * kLanes);
  for (int first = 0; first < starts; first += kLanes) {
    for (int k = 0; k < kLanes; ++k)  // lanes beyond the last start have points too, and are not looked at
      for (Index i = 0; i < n; ++i) m[std::size_t(i) * kLanes + k] = std::tanh(0.5 * random.normal());
    descend(w, b, m);
    for (int k = 0; k < kLanes && first + k < starts; ++k) {
      Vector mean(n);
      for (Index i = 0; i < n; ++i) mean[i] = m[std::size_t(i) * kLanes + k];
      if (known(mean)) continue;
      polish(w, b, mean);
      if (!known(mean)) found.push_back(mean);
    }
  }
  MeanField result;
  result.means.resize(n, Index(found.size()));
  result.free_energy.resize(Index(found.size()));
  for (std::size_t k = 0; k < found.size(); ++k) {
    result.means.col(Index(k)) = found[k];
    result.free_energy[Index(k)] = free_energy(w, b, found[k]);
  }
  return result;
}

}  // namespace lockstep
