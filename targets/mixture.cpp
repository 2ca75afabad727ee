// SPDX-License-Identifier: Apache-2.0
#include "targets/mixture.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace

/// Truth in closed form: mean = sum w mu, covariance = sum w (S + mu mu') - mean mean'.
Built<Mixture> build_mixture(const MixtureParameters& p) {
  const int d = p.dim, components = static_cast<int>(p.weights.size());
  const double total = std::accumulate(p.weights.begin(), p.weights.end(), 0.0);
  Built<Mixture> b(d);
  b.density.dim = d;
  b.density.components = components;
  b.density.full = !p.covariances.empty();
  std::vector<double> log2_weight(components), precision;
  std::vector<Matrix> factor(components);  // of the covariance, for exact draws
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(d);
  Matrix second = Matrix::Zero(d, d);
  double positive = 0;
  for (int k = 0; k < components; ++k) {
    const double w = p.weights[k] / total;
    const Eigen::VectorXd mu = Eigen::Map<const Eigen::VectorXd>(p.means.data() + std::size_t(k) * d, d);
    Matrix s = Matrix::Identity(d, d);
    if (b.density.full)
      s = Eigen::Map<const Matrix>(p.covariances.data() + std::size_t(k) * d * d, d, d);
    else
      s *= p.sds[k] * p.sds[k];
    const Eigen::LLT<Matrix> llt(s);
    factor[k] = llt.matrixL();
    log2_weight[k] =
        (std::log(w) - 0.5 * d * std::log(2 * kPi) - factor[k].diagonal().array().log().sum()) * kLog2E;
    if (b.density.full) {
      const Matrix inverse = llt.solve(Matrix::Identity(d, d));
      precision.insert(precision.end(), inverse.data(), inverse.data() + inverse.size());
    } else {
      precision.push_back(1 / (p.sds[k] * p.sds[k]));
    }
    mean += w * mu;
    second += w * (s + mu * mu.transpose());
    positive += w * normal_cdf(mu[0] / std::sqrt(s(0, 0)));
    b.truth.quantities.push_back(w);
    b.quantities.push_back("probability_mode[" + std::to_string(k) + "]");
  }
  b.truth.quantities.push_back(positive);
  b.quantities.push_back("probability_positive");
  b.density.report_modes = components <= 4;  // each costs about a gradient a draw
  if (!b.density.report_modes) {
    b.quantities.clear();
    b.truth.quantities.clear();
  }
  for (int i = 0; i < d; ++i) {
    b.truth.mean[i] = mean[i];
    for (int j = 0; j < d; ++j) b.truth.set_covariance(i, j, second(i, j) - mean[i] * mean[j]);
  }
  b.truth.log_z = 0;
  b.density.mean = b.pool.add(p.means);
  b.density.log2_weight = b.pool.add(log2_weight);
  b.density.precision = b.pool.add(precision);
  b.draw = [p, factor, total, d](ExactDraw& draw, double* x) {
    double u = draw.uniform() * total;
    std::size_t k = 0;
    while (k + 1 < p.weights.size() && u >= p.weights[k]) u -= p.weights[k++];
    Eigen::VectorXd z(d);
    for (int i = 0; i < d; ++i) z[i] = draw.normal();
    Eigen::Map<Eigen::VectorXd>(x, d) =
        factor[k] * z + Eigen::Map<const Eigen::VectorXd>(p.means.data() + k * d, d);
  };
  return b;
}

TargetInfo MixtureTarget::info() {
  return {
      .name = "mixture",
      .summary = "mixture of Gaussians from a file, any number of components in any dimension",
      .formula = "log sum_k w_k N(x; mu_k, S_k), normalised (weights are scaled to sum to one)",
      .settings = {},
      .data =
          "by name: means [K][d], weights [K], and sds [K] (standard deviations) or covariances [K][d][d]",
      .truth =
          "closed form: mean, covariance, log Z = 0; with up to four components also probability_mode[k] "
          "(share "
          "of component k) and probability_positive (P(x_1 > 0))"};
}

Built<Mixture> MixtureTarget::build(TargetInput& in) {
  if (!in.has_data())
    in.fail(
        "target mixture has no data (it needs its components). Give --data FILE.json with means, weights and "
        "sds");
  const DataArray means = in.array("means"), weights = in.array("weights");
  if (means.shape.size() != 2 || means.values.empty())
    in.fail(
        "means is not a table (a row of d numbers for each of K components). Write it as [[m11, m12], [m21, "
        "m22]]");
  const int k = means.shape[0], d = means.shape[1];
  auto expect = [&](const DataArray& a, const std::string& name, const std::vector<int>& shape) {
    if (a.shape == shape) return;
    std::string want, got;
    for (int s : shape) want += "[" + std::to_string(s) + "]";
    for (int s : a.shape) got += "[" + std::to_string(s) + "]";
    in.fail(name + " has shape " + got + " (means has " + std::to_string(k) + " components in " +
            std::to_string(d) + " dimensions). Give " + name + " the shape " + want);
  };
  expect(weights, "weights", {k});
  const auto expect_positive = [&](const DataArray& a, const std::string& name, const std::string& why) {
    const auto bad = std::find_if(a.values.begin(), a.values.end(), [](double v) { return !(v > 0); });
    if (bad != a.values.end())
      in.fail("entry " + std::to_string(bad - a.values.begin() + 1) + " of " + name + " is not positive (" +
              why);
  };
  const auto expect_in_reach = [&](const std::vector<double>& values, const std::string& name,
                                   const std::string& most) {
    for (const double v : values)
      if (!(std::abs(v) <= std::stod(most)))
        in.fail(name + " has an entry beyond " + most +
                " (squares of lengths are to be numbers in single precision). Measure in a larger unit");
  };
  const auto expect_wide = [&](double least, const std::string& name) {
    if (!(least >= 1e-15))
      in.fail(name +
              " has a standard deviation below 1e-15 along some direction (its square in single precision is "
              "to be a number "
              "above zero). Measure in a smaller unit");
  };
  expect_in_reach(means.values, "means", "1e15");
  expect_positive(weights, "weights", "a component must have weight). Leave that component out");
  MixtureParameters p{d, means.values, weights.values, {}, {}};
  if (in.has("sds") == in.has("covariances"))
    in.fail(std::string("the data give ") + (in.has("sds") ? "both" : "neither") +
            " of sds and covariances (one says how wide each component is). Give one");
  if (in.has("sds")) {
    const DataArray sds = in.array("sds");
    expect(sds, "sds", {k});
    expect_positive(sds, "sds", "a standard deviation is above zero). Correct it");
    expect_in_reach(sds.values, "sds", "1e15");
    expect_wide(*std::min_element(sds.values.begin(), sds.values.end()), "sds");
    p.sds = sds.values;
  } else {
    const DataArray s = in.array("covariances");
    expect(s, "covariances", {k, d, d});
    expect_in_reach(s.values, "covariances", "1e30");
    p.covariances = s.values;
    for (int c = 0; c < k; ++c) {
      const Matrix m = Eigen::Map<const Matrix>(s.values.data() + std::size_t(c) * d * d, d, d);
      const Eigen::LLT<Matrix> factor(m);
      const std::string name = "covariances[" + std::to_string(c) + "]";
      if ((m - m.transpose()).cwiseAbs().maxCoeff() > 1e-10 * m.cwiseAbs().maxCoeff() ||
          factor.info() != Eigen::Success)
        in.fail(name + " is not symmetric positive definite (it is no covariance matrix). Correct it");
      expect_wide(factor.matrixLLT().diagonal().minCoeff(), name);
    }
  }
  return build_mixture(p);
}

}  // namespace lockstep
