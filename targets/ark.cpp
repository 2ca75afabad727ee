// SPDX-License-Identifier: Apache-2.0
#include "targets/ark.hpp"

#include "targets/columns.hpp"
#include "targets/lattice.hpp"

namespace lockstep {
namespace {

using Scale = Eigen::Matrix<double, 1, 1>;
using Eigen::MatrixXd;
using Eigen::VectorXd;
constexpr int kMaxLength = 1000000, kSimulatedOrder = 5, kMaxPoints = 100000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Series {
  int order = kSimulatedOrder;
  std::vector<double> y;
};

/// alpha = 0.1, beta_k = 0.8 / 2^k (stationary, as they add up to less than 1), sigma = 0.5; the first K from N(0, 1).
Series simulated(int length, std::uint64_t seed) {
  ExactDraw random(seed, "series");
  Series s;
  for (int t = 0; t < length; ++t) {
    double v = t < s.order ? random.normal() : 0.1 + 0.5 * random.normal();
    if (t >= s.order)
      for (int k = 1; k <= s.order; ++k) v += 0.8 * std::pow(0.5, k) * s.y[std::size_t(t - k)];
    s.y.push_back(v);
  }
  return s;
}

Series read_data(TargetInput& in) {
  if (!in.has_data()) {
    const int length = in.integer("length", 200, kSimulatedOrder + 1, kMaxLength);
    return simulated(length, std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max())));
  }
  in.refuse_beside_data({"length", "seed"});
  Series s;
  s.y = read_column(in, "y", "time");
  if (s.y.size() > std::size_t(kMaxLength))
    in.fail("y has " + std::to_string(s.y.size()) + " entries (target ark takes at most " +
            std::to_string(kMaxLength) + "). Give fewer");
  if (in.has("K")) {
    const DataArray k = in.array("K");
    if (k.values.size() != 1 || k.values[0] != std::floor(k.values[0]) || k.values[0] < 1 ||
        k.values[0] > Ark::kMaxOrder)
      in.fail("K is no whole number from 1 to " + std::to_string(Ark::kMaxOrder) +
              " (it is how many values before a value predict it). Correct it");
    s.order = int(k.values[0]);
  }
  if (s.y.size() <= std::size_t(s.order))
    in.fail("y has " + std::to_string(s.y.size()) + " entries (of K = " + std::to_string(s.order) +
            " the first K are only predicted from). Give more, or a lower K");
  return s;
}

/// p(y, log sigma), and theta given both, which is Gaussian. With R = U diag(s) V' and b = U'c the coordinates V'theta
/// are independent, of precision p_i = s_i^2 / sigma^2 + 1 / 100 and mean s_i b_i / (sigma^2 p_i); the best fit leaves
/// b_i / (100 p_i) of b_i.
struct ArkMarginal {
  MatrixXd axes;  // V
  VectorXd s, b;
  double terms = 0, within = 0, constant = 0;

  struct Given {
    double log_p;
    VectorXd mean, variance;  // of V'theta
  };
  Given given(double log_sigma) const {
    const double w = std::exp(-2 * log_sigma), prior = 1 / (Ark::kSd * Ark::kSd);
    Given g;
    g.variance = (w * s.array().square() + prior).inverse();
    g.mean = w * s.cwiseProduct(b).cwiseProduct(g.variance);
    const double left = (prior * b.cwiseProduct(g.variance)).squaredNorm();
    g.log_p = constant - terms * log_sigma - 0.5 * (w * (within + left) + prior * g.mean.squaredNorm()) +
              0.5 * g.variance.array().log().sum() + double(s.size()) * std::log(2 * kPi) * 0.5 +
              LogHalfCauchy<double>(log_sigma, Ark::kLogWidth).value;
    return g;
  }
  /// Whether the data are fitted exactly, and by fewer numbers than they are: sigma may then go to 0.
  bool improper() const {
    const double small = 1e-12 * s.maxCoeff();
    double residual = within;
    for (Eigen::Index i = 0; i < s.size(); ++i) residual += s[i] > small ? 0 : b[i] * b[i];
    return terms > double((s.array() > small).count()) && residual <= 1e-24 * (within + b.squaredNorm());
  }
};

/// (R, c) and the sum of squares that no theta can fit, by QR of (1, y_(t - 1), .. y_(t - K), y_t).
ArkMarginal set_density(Built<Ark>& built, const Series& series) {
  const int columns = series.order + 1, rows = int(series.y.size()) - series.order;
  MatrixXd z(rows, columns + 1);
  for (int t = 0; t < rows; ++t) {
    const double* y = series.y.data() + series.order + t;
    z(t, 0) = 1;
    for (int k = 1; k < columns; ++k) z(t, k) = y[-k];
    z(t, columns) = *y;
  }
  const MatrixXd qr = Eigen::HouseholderQR<MatrixXd>(z).matrixQR();
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> factor(columns, columns + 1);
  factor.setZero();
  for (int i = 0; i < std::min(rows, columns); ++i)
    factor.row(i).tail(columns + 1 - i) = qr.row(i).tail(columns + 1 - i);
  Ark& density = built.density;
  density.dim = columns + 1;
  density.terms = rows;
  density.within = rows > columns ? qr(columns, columns) * qr(columns, columns) : 0;
  density.constant = -0.5 * double(rows + columns) * std::log(2 * kPi) - columns * std::log(Ark::kSd) +
                     LogHalfCauchy<double>::kConstant;
  density.factor = built.pool.add({factor.data(), factor.data() + factor.size()});
  const Eigen::JacobiSVD<MatrixXd> svd(factor.leftCols(columns), Eigen::ComputeFullU | Eigen::ComputeFullV);
  return {svd.matrixV(), svd.singularValues(), svd.matrixU().transpose() * factor.col(columns),
          double(rows),  density.within,       density.constant};
}

/// The trapezoid rule over log sigma. Poles (p_i = 0) lie pi / 2 off the real axis, and n predicted values tell log
/// sigma to sd 1 / sqrt(2 n) at best: steps well below both leave an error far below rounding.
LatticeDraws<1> integrate(const ArkMarginal& marginal, Truth& truth) {
  const Eigen::Index n = marginal.s.size();
  const double h = std::min(0.2, 0.5 / std::sqrt(2 * marginal.terms));
  const double rms = std::sqrt((marginal.within + marginal.b.squaredNorm()) / marginal.terms);
  const auto mode = find_mode<1>([&](const Scale& x) { return marginal.given(x[0]).log_p; },
                                 Scale(std::log(std::max(rms, 1e-3))));
  LatticeDraws<1> draws{Scale(h), 0.5};
  if (!std::isfinite(mode.value)) return draws;
  double mass = 0, sigma = 0;
  VectorXd first = VectorXd::Zero(n + 1);
  MatrixXd second = MatrixXd::Zero(n + 1, n + 1);
  int start = 0;
  walk(start, mode.value - 37, [&](int k) {
    if (draws.size() >= kMaxPoints) return kNaN;
    const double log_sigma = mode.x[0] + h * k;
    const auto g = marginal.given(log_sigma);
    const double weight = std::exp(g.log_p - mode.value);
    draws.add(Scale(log_sigma), weight);
    VectorXd mean(n + 1);
    mean << marginal.axes * g.mean, log_sigma;
    mass += weight;
    sigma += weight * std::exp(log_sigma);
    first += weight * mean;
    second += weight * mean * mean.transpose();
    second.topLeftCorner(n, n) +=
        weight * marginal.axes * g.variance.asDiagonal() * marginal.axes.transpose();
    return g.log_p + std::max(0.0, log_sigma);
  });
  const double log_z = draws.size() < kMaxPoints ? mode.value + std::log(mass * h) : kNaN;
  if (!std::isfinite(log_z)) return draws;
  first /= mass;
  second = second / mass - first * first.transpose();
  truth.log_z = log_z;
  truth.mean.assign(first.begin(), first.end());
  truth.covariance.assign(second.reshaped().begin(), second.reshaped().end());
  truth.quantities = {sigma / mass};
  return draws;
}

}  // namespace

TargetInfo ArkTarget::info() {
  return {
      .name = "ark",
      .summary = "autoregression with unknown scale (posteriordb's arK)",
      .formula =
          "y_t ~ N(alpha + sum_k beta_k y_(t - k), sigma^2) for t > K; alpha, beta_k ~ N(0, 10^2), sigma ~ "
          "half-Cauchy(2.5); x = (alpha, beta, log sigma)",
      .settings = {{"length", "length of a simulated series with K = 5 (default 200; without data)"},
                   {"seed", "seed of simulated data (default 1; without data)"}},
      .data = "optional, by name: y (the series), K (order, 5 where it is not given, 100 at most)",
      .truth =
          "closed form given sigma, quadrature over log sigma: log Z = log p(y | its first K), mean, "
          "covariance, posterior mean of sigma; draws"};
}

Built<Ark> ArkTarget::build(TargetInput& in) {
  const Series series = read_data(in);
  Built<Ark> built(series.order + 2);
  const ArkMarginal marginal = set_density(built, series);
  built.quantities = {"sigma"};
  built.truth.quantities = {kNaN};
  built.names = {"alpha"};
  for (int k = 1; k <= series.order; ++k) built.names.push_back("beta[" + std::to_string(k) + "]");
  built.names.push_back("log_sigma");
  if (marginal.improper())
    in.fail(
        "y is fitted exactly by its previous values (sigma can go to 0, and the posterior has no "
        "normaliser). "
        "Give a series with some noise");
  const auto draws = std::make_shared<const LatticeDraws<1>>(integrate(marginal, built.truth));
  if (draws->size() == 0)
    in.fail("the density of these y is zero in double precision (their squares are beyond 1e308). Rescale y");
  if (std::isnan(built.truth.log_z)) return built;
  built.draw = [marginal, draws](ExactDraw& random, double* x) {
    const double log_sigma =
        draws->draw(random, [&](const Scale& s) { return marginal.given(s[0]).log_p; })[0];
    const auto g = marginal.given(log_sigma);
    VectorXd z = g.mean;
    for (Eigen::Index i = 0; i < z.size(); ++i) z[i] += std::sqrt(g.variance[i]) * random.normal();
    Eigen::Map<VectorXd>(x, z.size()) = marginal.axes * z;
    x[z.size()] = log_sigma;
  };
  return built;
}

}  // namespace lockstep
