// SPDX-License-Identifier: Apache-2.0
#include "targets/eight_schools.hpp"

#include "targets/columns.hpp"
#include "targets/lattice.hpp"

namespace lockstep {
namespace {

using Scale = Eigen::Matrix<double, 1, 1>;
using Eigen::ArrayXd;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMaxSchools = 10000;
// Of the lattice: with the most schools its steps are 0.0035 wide, and data of any use leave log tau some 100
// of them.
constexpr int kMaxPoints = 100000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// p(y, log tau), and everything else given tau. With v_j = sigma_j^2 + tau^2: y_j ~ N(mu, v_j), so that mu
/// is Gaussian given (tau, y); t_j given mu as well is N(tau (y_j - mu) / v_j, sigma_j^2 / v_j),
/// independently.
struct SchoolsMarginal {
  ArrayXd y, sigma;

  struct Given {
    double log_p, mean, variance;  // log p(y, log tau); of mu
    ArrayXd pull, noise;           // tau / v_j, sigma_j^2 / v_j
  };
  Given given(double log_tau) const {
    const double tau = std::exp(log_tau);
    const ArrayXd v = sigma.square() + tau * tau, weight = 1 / v;
    const double prior = 1 / (EightSchools::kSdMu * EightSchools::kSdMu);
    Given g;
    g.variance = 1 / (prior + weight.sum());
    g.mean = g.variance * (weight * y).sum();
    const double squares = (weight * (y - g.mean).square()).sum() + prior * g.mean * g.mean;
    g.log_p =
        -0.5 *
            (double(y.size()) * std::log(2 * kPi) + v.log().sum() + squares - std::log(prior * g.variance)) +
        LogHalfCauchy<double>::kConstant + LogHalfCauchy<double>(log_tau, EightSchools::kLogWidth).value;
    g.pull = tau * weight;
    g.noise = sigma.square() * weight;
    return g;
  }
};

/// The trapezoid rule over log tau. Poles (v_j = 0) lie pi / 2 off the real axis, and J schools tell log tau
/// to sd 1 / sqrt(2 J) at best: steps well below both leave an error far below rounding.
/// No mass where log p has no finite mode (its squares overflow), and log Z NaN where the lattice does not
/// end.
LatticeDraws<1> integrate(const SchoolsMarginal& schools, Truth& truth) {
  const auto count = schools.y.size();
  const Eigen::Index dim = count + EightSchools::kEffect;
  const double h = std::min(0.2, 0.5 / std::sqrt(2 * double(count)));
  const auto mode =
      find_mode<1>([&](const Scale& x) { return schools.given(x[0]).log_p; }, Scale(std::log(5.0)));
  LatticeDraws<1> draws{Scale(h), 0.5};
  if (!std::isfinite(mode.value)) return draws;
  double mass = 0, tau_sum = 0;
  VectorXd first = VectorXd::Zero(dim), theta = VectorXd::Zero(count);
  MatrixXd second = MatrixXd::Zero(dim, dim > Truth::kFullDim ? 1 : dim);
  int start = 0;
  walk(start, mode.value - 37, [&](int k) {
    if (draws.size() >= kMaxPoints) return kNaN;
    const double log_tau = mode.x[0] + h * k, tau = std::exp(log_tau);
    const auto g = schools.given(log_tau);
    const double weight = std::exp(g.log_p - mode.value);
    draws.add(Scale(log_tau), weight);
    // x = mean + slope (mu - E mu) + noise
    VectorXd mean(dim), slope(dim), noise = VectorXd::Zero(dim);
    mean << g.mean, log_tau, (g.pull * (schools.y - g.mean)).matrix();
    slope << 1, 0, -g.pull.matrix();
    noise.tail(count) = g.noise.matrix();
    mass += weight;
    tau_sum += weight * tau;
    first += weight * mean;
    theta += weight * (g.mean + tau * mean.tail(count).array()).matrix();
    if (second.cols() == dim) {
      second += weight * (mean * mean.transpose() + g.variance * slope * slope.transpose());
      second.diagonal() += weight * noise;
    } else {
      second.col(0) += weight * (mean.cwiseAbs2() + g.variance * slope.cwiseAbs2() + noise);
    }
    return g.log_p + std::max(0.0, log_tau);
  });
  truth.log_z = draws.size() < kMaxPoints ? mode.value + std::log(mass * h) : kNaN;
  if (!std::isfinite(truth.log_z)) {
    truth.log_z = kNaN;
    return draws;
  }
  first /= mass;
  second /= mass;
  truth.mean.assign(first.begin(), first.end());
  for (Eigen::Index i = 0; i < dim; ++i)
    for (Eigen::Index j = 0; j < second.cols(); ++j) {
      const Eigen::Index k = second.cols() == 1 ? i : j;
      truth.set_covariance(int(i), int(k), second(i, j) - first[i] * first[k]);
    }
  truth.quantities = {tau_sum / mass};
  for (double t : theta) truth.quantities.push_back(t / mass);
  return draws;
}

}  // namespace

TargetInfo EightSchoolsTarget::info() {
  return {.name = "eight_schools",
          .summary = "Rubin's eight schools, a hierarchical model with a funnel, non-centred",
          .formula =
              "y_j ~ N(theta_j, sigma_j^2), theta_j = mu + tau t_j, t_j ~ N(0, 1), mu ~ N(0, 5^2), tau ~ "
              "half-Cauchy(5); x = (mu, log tau, t)",
          .settings = {},
          .data = "optional, by name, one entry per school: y, sigma (standard errors); without data Rubin's",
          .truth =
              "closed form given tau, quadrature over log tau: log Z = log p(y), mean, covariance, "
              "posterior means of tau and theta[j]; draws"};
}

Built<EightSchools> EightSchoolsTarget::build(TargetInput& in) {
  std::vector<double> y = {28, 8, -3, 7, -1, 1, 18, 12}, sigma = {15, 10, 16, 11, 9, 11, 10, 18};
  if (in.has_data()) {
    y = read_column(in, "y", "school");
    sigma = read_column(in, "sigma", "school", y);
    if (y.size() > std::size_t(kMaxSchools))
      in.fail("y has " + std::to_string(y.size()) + " entries (target eight_schools takes at most " +
              std::to_string(kMaxSchools) + "). Give fewer");
    for (std::size_t j = 0; j < sigma.size(); ++j)
      if (!(sigma[j] > 0))
        in.fail("entry " + std::to_string(j + 1) +
                " of sigma is not positive (a standard error is above zero). Correct it");
  }
  const int count = int(y.size());
  Built<EightSchools> built(count + EightSchools::kEffect);
  const SchoolsMarginal schools{Eigen::Map<const ArrayXd>(y.data(), count),
                                Eigen::Map<const ArrayXd>(sigma.data(), count)};
  built.truth.quantities.assign(std::size_t(count) + 1, kNaN);
  const auto draws = std::make_shared<const LatticeDraws<1>>(integrate(schools, built.truth));
  if (draws->size() == 0)
    in.fail(
        "the density of these y and sigma is zero in double precision (their squares are beyond 1e308, or "
        "the squares of sigma vanish). Rescale both");
  built.density.dim = count + EightSchools::kEffect;
  built.density.constant = -(count + 0.5) * std::log(2 * kPi) - std::log(EightSchools::kSdMu) -
                           schools.sigma.log().sum() + LogHalfCauchy<double>::kConstant;
  built.density.y = built.pool.add(y);
  for (double& s : sigma) s = 1 / s;
  built.density.inv_sigma = built.pool.add(sigma);
  built.quantities = {"tau"};
  built.names = {"mu", "log_tau"};
  for (int j = 0; j < count; ++j) {
    built.quantities.push_back("theta[" + std::to_string(j) + "]");
    built.names.push_back("t[" + std::to_string(j) + "]");
  }
  if (std::isnan(built.truth.log_z)) return built;
  built.draw = [schools, draws](ExactDraw& random, double* x) {
    const double log_tau = draws->draw(random, [&](const Scale& s) { return schools.given(s[0]).log_p; })[0];
    const auto g = schools.given(log_tau);
    x[EightSchools::kMu] = g.mean + std::sqrt(g.variance) * random.normal();
    x[EightSchools::kLogTau] = log_tau;
    for (Eigen::Index j = 0; j < schools.y.size(); ++j)
      x[EightSchools::kEffect + j] =
          g.pull[j] * (schools.y[j] - x[EightSchools::kMu]) + std::sqrt(g.noise[j]) * random.normal();
  };
  return built;
}

}  // namespace lockstep
