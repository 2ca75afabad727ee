// SPDX-License-Identifier: Apache-2.0
#include "targets/gp_regr.hpp"

#include "targets/columns.hpp"
#include "targets/decompositions.hpp"
#include "targets/lattice.hpp"

namespace lockstep {
namespace {

using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
constexpr std::size_t kMaxLattice = 1000000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Points {
  std::vector<double> x, y;
};

/// exp(-(x_i - x_j)^2 / (2 rho^2))
MatrixXd correlations(const std::vector<double>& x, double rho) {
  const auto n = Eigen::Index(x.size());
  MatrixXd c(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j) {
      const double z = (x[std::size_t(i)] - x[std::size_t(j)]) / rho;
      c(i, j) = std::exp(-0.5 * z * z);
    }
  return c;
}

/// Evenly spaced from -10 to 10, drawn from the model with rho = 5, alpha = 2, sigma = 1.
Points simulated(int count, std::uint64_t seed) {
  ExactDraw random(seed, "points");
  Points p;
  for (int i = 0; i < count; ++i) p.x.push_back(-10 + 20.0 * i / (count - 1));
  const Eigen::LLT<MatrixXd> factor((4 * correlations(p.x, 5) + MatrixXd::Identity(count, count)).eval());
  VectorXd z(count);
  for (double& v : z) v = random.normal();
  const VectorXd y = factor.matrixL() * z;
  p.y.assign(y.begin(), y.end());
  return p;
}

Points read_data(TargetInput& in) {
  if (!in.has_data()) {
    const int count = in.integer("points", 11, 2, GpRegr::kMaxPoints);
    return simulated(count, std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max())));
  }
  in.refuse_beside_data({"points", "seed"});
  Points p;
  p.y = read_column(in, "y", "point");
  p.x = read_column(in, "x", "point", p.y);
  if (p.y.size() < 2) in.fail("y has one entry (a length scale is about two points or more). Give more");
  if (p.y.size() > std::size_t(GpRegr::kMaxPoints))
    in.fail("y has " + std::to_string(p.y.size()) + " entries (target gp_regr takes at most " +
            std::to_string(GpRegr::kMaxPoints) +
            ": each gradient factorises a matrix of that size). Give fewer");
  for (std::size_t i = 0; i < p.y.size(); ++i)
    if (!(std::abs(p.y[i]) <= 1e6 && std::abs(p.x[i]) <= 1e6))
      in.fail(
          "entry " + std::to_string(i + 1) +
          " of x or y is beyond 1e6 (priors are of length scales near 6 and amplitudes near 2). Rescale it");
  return p;
}

/// log p(y, log rho, log alpha, log sigma) by the eigenvalues l of the correlations and the squares q of y along
/// their vectors: y ~ N(0, alpha^2 l_i + sigma) there. No digits are lost for any sigma.
struct GpMarginal {
  Points points;
  double constant;

  struct Level {
    double log_rho;
    ArrayXd l, q;
  };
  Level level(double log_rho) const {
    const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(correlations(points.x, std::exp(log_rho)));
    const Eigen::Map<const VectorXd> y(points.y.data(), Eigen::Index(points.y.size()));
    return {log_rho, eigen.eigenvalues().array().max(0),
            (eigen.eigenvectors().transpose() * y).array().square()};
  }
  double log_p(const Level& level, double log_alpha, double log_sigma) const {
    const double alpha = std::exp(log_alpha), sigma = std::exp(log_sigma), a = alpha / GpRegr::kSdAlpha,
                 s = sigma / GpRegr::kSdSigma;
    const ArrayXd v = alpha * alpha * level.l + sigma;
    return constant + GpRegr::kShape * level.log_rho - GpRegr::kRate * std::exp(level.log_rho) + log_alpha +
           log_sigma - 0.5 * (a * a + s * s + (v.log() + level.q / v).sum());
  }
};

struct GpPosterior {
  Truth truth;
  LatticeDraws<3> draws;
};

/// The trapezoid rule. rho^2 and the priors' squares turn imaginary pi / 4 off the real axes: with steps of at most
/// 0.2 what grows beyond costs exp(-pi^2 / 0.4), 2e-11.
GpPosterior integrate(const GpMarginal& marginal) {
  const auto mode =
      find_mode<3>([&](const Vector3d& x) { return marginal.log_p(marginal.level(x[0]), x[1], x[2]); },
                   Vector3d(std::log(6.0), std::log(2.0), 0));
  const Vector3d h = (0.5 * mode.curvature.cwiseMax(1e-10).cwiseSqrt().cwiseInverse()).cwiseMin(0.2);
  auto weigh = [](const Vector3d& x) { return std::max(0.0, x.maxCoeff()); };
  const double floor = mode.value + weigh(mode.x) - 37;
  GpPosterior posterior{Built<GpRegr>(3).truth, LatticeDraws<3>(h, 0.5)};
  double mass = 0;
  Vector3d first = Vector3d::Zero(), scales = Vector3d::Zero();
  Eigen::Matrix3d second = Eigen::Matrix3d::Zero();
  int at_r = 0, at_a = 0, at_s = 0;
  walk(at_r, floor, [&](int r) {
    const auto level = marginal.level(mode.x[0] + h[0] * r);
    return walk(at_a, floor, [&](int a) {
      return walk(at_s, floor, [&](int s) {
        if (posterior.draws.size() >= kMaxLattice) return kNaN;
        const Vector3d x = mode.x + h.cwiseProduct(Vector3d(r, a, s));
        const double l = marginal.log_p(level, x[1], x[2]), weight = std::exp(l - mode.value);
        posterior.draws.add(x, weight);
        mass += weight;
        first += weight * x;
        second += weight * x * x.transpose();
        scales += weight * x.array().exp().matrix();
        return l + weigh(x);
      });
    });
  });
  posterior.truth.quantities.assign(3, kNaN);
  const double log_z = mode.value + std::log(mass * h.prod());
  if (posterior.draws.size() >= kMaxLattice || !std::isfinite(log_z)) return posterior;
  first /= mass;
  second = second / mass - first * first.transpose();
  scales /= mass;
  posterior.truth.log_z = log_z;
  posterior.truth.mean.assign(first.begin(), first.end());
  posterior.truth.covariance.assign(second.reshaped().begin(), second.reshaped().end());
  posterior.truth.quantities.assign(scales.begin(), scales.end());
  return posterior;
}

}  // namespace

TargetInfo GpRegrTarget::info() {
  return {
      .name = "gp_regr",
      .summary = "Gaussian-process regression with unknown length scale, amplitude and noise (posteriordb)",
      .formula =
          "y ~ N(0, alpha^2 exp(-(x_i - x_j)^2 / (2 rho^2)) + sigma [i = j]); rho ~ Gamma(25, 4), alpha ~ "
          "N+(0, 2^2), sigma ~ N+(0, 1); x = (log rho, log alpha, log sigma)",
      .settings = {{"points", "points of simulated data, 2 to 32 (default 11; without data)"},
                   {"seed", "seed of simulated data (default 1; without data)"}},
      .data = "optional, by name, one entry per point, 32 at most: x, y",
      .truth = "quadrature: log Z = log p(y), mean, covariance, posterior means of rho, alpha, sigma; draws"};
}

Built<GpRegr> GpRegrTarget::build(TargetInput& in) {
  const Points p = read_data(in);
  const int n = int(p.y.size());
  Built<GpRegr> built(3);
  GpRegr& density = built.density;
  density.points = n;
  density.constant = -0.5 * n * std::log(2 * kPi) + GpRegr::kShape * std::log(GpRegr::kRate) -
                     std::lgamma(GpRegr::kShape) + std::log(2 / (kPi * GpRegr::kSdAlpha * GpRegr::kSdSigma));
  std::vector<double> squares;
  for (std::size_t i = 0; i < p.x.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) squares.push_back((p.x[i] - p.x[j]) * (p.x[i] - p.x[j]));
  density.y = built.pool.add(p.y);
  density.squares = built.pool.add(squares);
  built.names = {"log_rho", "log_alpha", "log_sigma"};
  built.quantities = {"rho", "alpha", "sigma"};
  GpPosterior posterior = integrate({p, density.constant});
  built.truth = std::move(posterior.truth);
  if (std::isnan(built.truth.log_z)) return built;
  built.draw = [density, draws = std::make_shared<const LatticeDraws<3>>(std::move(posterior.draws))](
                   ExactDraw& random, double* x) {
    const Vector3d found = draws->draw(random, [&](const Vector3d& at) {
      return density.log_density<0, double>(CommonRows<double>{at.data()}, NoGradient{});
    });
    std::copy(found.begin(), found.end(), x);
  };
  return built;
}

}  // namespace lockstep
