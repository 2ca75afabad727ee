// SPDX-License-Identifier: Apache-2.0
#include "targets/scattered.hpp"

#include <Eigen/Dense>

namespace lockstep {
namespace {

constexpr int kMaxDim = 1000, kMaxNumbers = 1 << 24;  // of all precision matrices
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Uniform in a cube, scaled about its centre so that the average of the K (K - 1) / 2 distances is `distance`.
Matrix scattered_means(int components, int dim, double distance, ExactDraw& random) {
  Matrix mean(components, dim);
  for (double& v : mean.reshaped<Eigen::RowMajor>()) v = random.uniform() - 0.5;
  double sum = 0;
  for (int k = 0; k < components; ++k)
    for (int j = 0; j < k; ++j) sum += (mean.row(k) - mean.row(j)).norm();
  return mean * (distance * 0.5 * components * (components - 1) / sum);
}

/// Q diag(s^2) Q': axes Q uniform among rotations, log s_i uniform between -log(ratio) / 2 and log(ratio) / 2.
Matrix random_covariance(int dim, double ratio, ExactDraw& random) {
  Matrix normal(dim, dim);
  for (double& v : normal.reshaped<Eigen::RowMajor>()) v = random.normal();
  const Matrix axes = Eigen::HouseholderQR<Matrix>(normal).householderQ();
  Eigen::VectorXd sd(dim);
  for (double& s : sd) s = std::pow(ratio, random.uniform() - 0.5);
  const Matrix root = axes * sd.asDiagonal();
  return root * root.transpose();
}

}  // namespace

TargetInfo ScatteredTarget::info() {
  return {
      .name = "scattered",
      .summary = "many Gaussians of different shapes far apart, in any dimension (wormhole paper)",
      .formula =
          "log sum_k N(x; mu_k, S_k) / K; mu_k uniform in a cube scaled until their average distance is "
          "target.distance; S_k with random axes, standard deviations from 1 / sqrt(ratio) to sqrt(ratio)",
      .settings = {{"modes", "components K, 2 to 64 (default 10)"},
                   {"dim", "dimension, 1 to 1000 (default 20); at most 2^24 = K dim^2"},
                   {"distance", "average distance of the K (K - 1) / 2 pairs of means (default 20)"},
                   {"ratio", "largest over smallest standard deviation, 1 to 100 (default 4)"},
                   {"seed", "seed of means and covariances (default 1)"}},
      .truth =
          "closed form: mean, covariance, log Z = 0, probability_mode[k] = 1 / K (share of component k); "
          "draws"};
}

Built<Scattered> ScatteredTarget::build(TargetInput& in) {
  MixtureParameters p;
  const int components = in.integer("modes", 10, 2, Scattered::kMaxComponents);
  const int dim = in.integer("dim", 20, 1, kMaxDim);
  const double distance = in.number("distance", 20, 1e-3, 1e6), ratio = in.number("ratio", 4, 1, 100);
  const auto seed = std::uint64_t(in.integer("seed", 1, 0, std::numeric_limits<int>::max()));
  if (components * dim * dim > kMaxNumbers)
    in.fail("target.modes x target.dim^2 is above 2^24 (so many numbers do the covariances have). Lower one");
  p.dim = dim;
  ExactDraw random(seed, "components");
  const Matrix mean = scattered_means(components, dim, distance, random);
  p.means.assign(mean.data(), mean.data() + mean.size());
  p.weights.assign(std::size_t(components), 1.0);
  for (int k = 0; k < components; ++k) {
    const Matrix s = random_covariance(dim, ratio, random);
    p.covariances.insert(p.covariances.end(), s.data(), s.data() + s.size());
  }
  Built<Mixture> mixture = build_mixture(p);
  Built<Scattered> b(dim);
  b.density.dim = dim;
  b.density.components = components;
  b.density.mean = mixture.density.mean;
  b.density.log2_weight = mixture.density.log2_weight;
  b.density.precision = mixture.density.precision;
  b.pool = std::move(mixture.pool);
  b.truth = std::move(mixture.truth);
  b.draw = std::move(mixture.draw);
  b.truth.quantities.assign(std::size_t(components), 1.0 / components);
  for (int k = 0; k < components; ++k) b.quantities.push_back("probability_mode[" + std::to_string(k) + "]");
  return b;
}

}  // namespace lockstep
