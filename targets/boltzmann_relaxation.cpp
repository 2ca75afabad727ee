// SPDX-License-Identifier: Apache-2.0
#include "targets/boltzmann_relaxation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "targets/decompositions.hpp"

namespace lockstep {
namespace {

using Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// The barrier problem at (D, t), for W of spectral radius one.
struct Barrier {
  const Matrix& w;

  /// Cholesky factors of A = W + D and B = t I - A; false where one of them is not positive definite.
  bool factor(const Vector& d, double t) {
    const Index n = w.rows();
    Matrix a = w;
    a.diagonal() += d;
    llt_a.compute(a);
    if (llt_a.info() != Eigen::Success) return false;
    llt_b.compute((t * Matrix::Identity(n, n) - a).eval());
    return llt_b.info() == Eigen::Success;
  }
  double value(double t, double mu) const {
    auto log_det = [](const Eigen::LLT<Matrix>& l) {
      return 2 * Matrix(l.matrixL()).diagonal().array().log().sum();
    };
    return t / mu - log_det(llt_a) - log_det(llt_b);
  }
  /// The inverses of A and B at the point factored last.
  void invert() {
    const Index n = w.rows();
    inverse_a = llt_a.solve(Matrix::Identity(n, n));
    inverse_b = llt_b.solve(Matrix::Identity(n, n));
  }
  /// Newton's step in (D, t); returns the squared decrement.
  double newton(double mu, Vector& step) const {
    const Index n = w.rows();
    Vector gradient(n + 1);
    gradient.head(n) = inverse_b.diagonal() - inverse_a.diagonal();
    gradient[n] = 1 / mu - inverse_b.trace();
    Matrix hessian(n + 1, n + 1);
    hessian.topLeftCorner(n, n) = inverse_a.cwiseAbs2() + inverse_b.cwiseAbs2();
    hessian.topRightCorner(n, 1) = -inverse_b.cwiseAbs2().rowwise().sum();
    hessian.bottomLeftCorner(1, n) = hessian.topRightCorner(n, 1).transpose();
    hessian(n, n) = inverse_b.squaredNorm();
    step = hessian.ldlt().solve(-gradient);
    return -gradient.dot(step);
  }

  Eigen::LLT<Matrix> llt_a, llt_b;
  Matrix inverse_a, inverse_b;
};

/// Minimises the barrier at one mu from (d, t), which stays strictly feasible.
void centre(Barrier& barrier, Vector& d, double& t, double mu) {
  const Index n = d.size();
  Vector step;
  barrier.factor(d, t);
  for (int iteration = 0; iteration < 50; ++iteration) {
    const double value = barrier.value(t, mu);
    barrier.invert();
    const double decrement = barrier.newton(mu, step);
    if (!(decrement > 1e-12)) break;
    double share = 1;
    for (; share > 1e-10; share *= 0.5)
      if (barrier.factor(d + share * step.head(n), t + share * step[n]) &&
          barrier.value(t + share * step[n], mu) < value - 0.1 * share * decrement)
        break;
    if (share <= 1e-10) break;  // rounding has the last word
    d += share * step.head(n);
    t += share * step[n];
  }
  barrier.factor(d, t);
  barrier.invert();
}

/// The dual bound on the smallest t.
double dual_bound(const Barrier& barrier) {
  const Matrix y = barrier.inverse_b / barrier.inverse_b.trace();
  const Vector scale = (y.diagonal().array() / barrier.inverse_a.diagonal().array()).sqrt();
  const Matrix x = scale.asDiagonal() * barrier.inverse_a * scale.asDiagonal();
  return (y - x).cwiseProduct(barrier.w).sum();
}

/// Eigenvalues of a below this share of the largest are zero at the optimum: the barrier leaves them at about
/// mu over the dual's, which is small but not always tiny.
constexpr double kNearZero = 1e-6;

/// Moves D by as little as makes a's nearly zero eigenvalues zero: V' diag(step) V = -V'aV on their
/// eigenvectors V, the shortest step. Twice, as the eigenvectors move with it.
void settle_zeros(const Matrix& w, Vector& d) {
  const Index n = w.rows();
  for (int round = 0; round < 2; ++round) {
    Matrix a = w;
    a.diagonal() += d;
    const Eigen::SelfAdjointEigenSolver<Matrix> eigen(a);
    const Index zeros = (eigen.eigenvalues().array() < kNearZero * eigen.eigenvalues()[n - 1]).count();
    if (zeros == 0 || zeros == n) return;
    Matrix conditions(zeros * (zeros + 1) / 2, n);
    Vector wanted = Vector::Zero(conditions.rows());
    for (Index i = 0, row = 0; i < zeros; ++i)
      for (Index j = 0; j <= i; ++j, ++row) {
        conditions.row(row) =
            eigen.eigenvectors().col(i).cwiseProduct(eigen.eigenvectors().col(j)).transpose();
        if (i == j) wanted[row] = -eigen.eigenvalues()[i];
      }
    d += conditions.completeOrthogonalDecomposition().solve(wanted);
  }
}

/// Normals of which published systems were made (boltzmann-28): Marsaglia's polar method, as libstdc++ has it,
/// on a generator whose sequence the C++ standard fixes; that of its distributions it does not.
class PolarNormals {
 public:
  explicit PolarNormals(std::uint64_t seed) : engine_(seed) {}
  double normal() {
    kept_ = !kept_;
    if (!kept_) return second_;
    double x, y, square;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square > 1 || square == 0);
    const double scale = std::sqrt(-2 * std::log(square) / square);
    second_ = x * scale;
    return y * scale;
  }

 private:
  double uniform() { return std::min(static_cast<double>(engine_()) * 0x1p-64, 1 - 0x1p-53); }

  std::mt19937_64 engine_;
  double second_ = 0;
  bool kept_ = false;
};

}  // namespace

BoltzmannMachine random_boltzmann_machine(int units, std::uint64_t seed) {
  PolarNormals random(seed);
  Matrix gaussian(units, units);
  for (Index i = 0; i < units; ++i)
    for (Index j = 0; j < units; ++j) gaussian(i, j) = random.normal();
  const Matrix r = Eigen::HouseholderQR<Matrix>(gaussian).householderQ();
  Vector e(units);
  for (double& v : e) v = 6 * std::tanh(2 * random.normal());
  BoltzmannMachine machine;
  machine.w = r * e.asDiagonal() * r.transpose();
  machine.w = (0.5 * (machine.w + machine.w.transpose())).eval();
  machine.w.diagonal().setZero();
  machine.b.resize(units);
  for (double& v : machine.b) v = 0.1 * random.normal();
  return machine;
}

RelaxationDiagonal smallest_relaxation_diagonal(const Matrix& w) {
  const Index n = w.rows();
  const Vector eigenvalues = Eigen::SelfAdjointEigenSolver<Matrix>(w, Eigen::EigenvaluesOnly).eigenvalues();
  const double radius = eigenvalues.cwiseAbs().maxCoeff();
  RelaxationDiagonal best{Vector::Zero(n), 0, 0};
  if (radius == 0) return best;
  best.gap = std::numeric_limits<double>::infinity();
  const Matrix scaled = w / radius;
  Barrier barrier{scaled, {}, {}, {}, {}};
  Vector d = Vector::Constant(n, 0.1 - eigenvalues[0] / radius);
  double t = d[0] + eigenvalues[n - 1] / radius + 0.1;
  // Below a gap of 1e-9 the inverses of what is then nearly singular lose more than mu gains.
  for (double mu = 1; 2 * double(n) * mu > 3e-10; mu *= 0.1) {
    centre(barrier, d, t, mu);
    if (2 * double(n) * mu > 1e-6) continue;
    const double bound = dual_bound(barrier);
    Vector settled = d;
    settle_zeros(scaled, settled);
    Matrix a = scaled;
    a.diagonal() += settled;
    const Vector at = Eigen::SelfAdjointEigenSolver<Matrix>(a, Eigen::EigenvaluesOnly).eigenvalues();
    const double lambda_max = at[n - 1] - at[0];
    if (lambda_max - bound < best.gap)
      best = {radius * (settled.array() - at[0]).matrix(), radius * lambda_max, lambda_max - bound};
  }
  best.gap *= radius;
  return best;
}

Vector trivial_relaxation_diagonal(const Matrix& w) {
  const Vector eigenvalues = Eigen::SelfAdjointEigenSolver<Matrix>(w, Eigen::EigenvaluesOnly).eigenvalues();
  return Vector::Constant(w.rows(), -eigenvalues[0]);
}

RelaxationFactor factor_relaxation(const Matrix& w, const Vector& d) {
  Matrix a = w;
  a.diagonal() += d;
  const Eigen::SelfAdjointEigenSolver<Matrix> eigen(a);
  const Vector& values = eigen.eigenvalues();
  RelaxationFactor f;
  f.lowest = values[0];
  f.highest = values[values.size() - 1];
  const Index rank = (values.array() > kZeroEigenvalue * f.highest).count();
  f.q = eigen.eigenvectors().rightCols(rank) * values.tail(rank).cwiseSqrt().asDiagonal();
  return f;
}

}  // namespace lockstep
