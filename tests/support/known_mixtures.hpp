// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixtures of normals written down directly, as transitions find them in their lists (kernels/mode_mixture.hpp).
#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "kernels/darting.hpp"
#include "kernels/regeneration.hpp"
#include "targets/engine.hpp"

namespace lockstep::testing {

struct KnownMixture {
  std::vector<double> weight;
  std::vector<Eigen::VectorXd> mean;
  std::vector<Eigen::MatrixXd> factor;

  /// u + 3 modulo 4 components, of different widths, correlated; all as many times as wide.
  KnownMixture(int d, int u, double widened = 1) {
    const int components = (u + 3) % 4;
    for (int k = 0; k < components; ++k) {
      const double width = 0.7 + 0.25 * k, off = 0.3 - 0.2 * k;
      Eigen::VectorXd m(d);
      for (int i = 0; i < d; ++i) m[i] = 0.7 * k - 0.6 + 0.2 * ((i + k + u) % 3);
      Eigen::MatrixXd l = width * Eigen::MatrixXd::Identity(d, d);
      for (int i = 1; i < d; ++i) l(i, 0) = off;
      weight.push_back(2.0 * (k + 1) / (components * (components + 1)));
      mean.push_back(m);
      factor.push_back(widened * l);
    }
  }
  double distance(std::size_t k, const Eigen::VectorXd& x) const {
    return factor[k].triangularView<Eigen::Lower>().solve(x - mean[k]).squaredNorm();
  }
  double log_factor(std::size_t k) const {
    return std::log(weight[k]) - 0.5 * double(mean[k].size()) * std::log(2 * M_PI) -
           factor[k].diagonal().array().log().sum();
  }
  /// Of components within this squared distance.
  double density(const Eigen::VectorXd& x, double most = INFINITY) const {
    double sum = 0;
    for (std::size_t k = 0; k < mean.size(); ++k)
      if (distance(k, x) <= most) sum += std::exp(log_factor(k) - 0.5 * distance(k, x));
    return sum;
  }
  std::vector<double> list(double number) const {
    std::vector<double> l = {double(mean.size()), number};
    double cumulative = 0;
    for (std::size_t k = 0; k < mean.size(); ++k) {
      const Eigen::Index d = mean[k].size();
      const Eigen::MatrixXd inverse =
          factor[k].triangularView<Eigen::Lower>().solve(Eigen::MatrixXd::Identity(d, d));
      l.insert(l.end(), mean[k].begin(), mean[k].end());
      for (const Eigen::MatrixXd* m : {&inverse, &factor[k]})
        for (Eigen::Index i = 0; i < d; ++i)
          for (Eigen::Index j = 0; j <= i; ++j) l.push_back((*m)(i, j));
      l.insert(l.end(), {log_factor(k), cumulative += weight[k]});
    }
    return l;
  }
};

/// The squared radius of darts; log c of regenerations.
inline constexpr double kKnownRadius = 4, kKnownLevel = -0.2;

/// The library's transition, told of such mixtures.
template <class Of>
struct OfKnownModes : Of {
  static UnitList lists(int d, int units) {
    UnitList lists;
    for (int u = 0; u < units; ++u)
      lists[u] = KnownMixture(d, u).list(std::is_base_of_v<Darting, Of> ? kKnownRadius : kKnownLevel);
    return lists;
  }
  static void prepare(Engine& engine, int units) { engine.set_shared(0, lists(engine.dim(), units)); }
};

}  // namespace lockstep::testing
