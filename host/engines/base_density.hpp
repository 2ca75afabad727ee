// SPDX-License-Identifier: Apache-2.0
#pragma once
// Base densities on the host: what kernels/base.hpp evaluates, with its draws and its moments.
#include <Eigen/Dense>
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// N(mean, factor factor') with its weight in a mixture; factor is lower triangular.
struct NormalComponent {
  double weight = 1;
  Eigen::VectorXd mean;
  Eigen::MatrixXd factor;

  template <class Archive>
  void fields(Archive& archive) {
    archive("weight", weight);
    archive("mean", mean);
    archive("factor", factor);
  }
  double log_det() const { return factor.diagonal().array().log().sum(); }  // of the factor
};

/// A normalised mixture of normals, log sum_k w_k N(x; m_k, C_k). Weights sum to one. Cheaper to evaluate (kernels/base.hpp)
/// are one normal `by_axes`, of independent axes, and a mixture that is `tied`: from the second component on each
/// covariance is that of the second times a number.
struct BaseDensity {
  /// Dimensions up to which matrices are worth their cost beside a density; beyond them axes are independent by default.
  static constexpr int kMostDense = 64;

  std::vector<NormalComponent> components;
  bool by_axes = false, tied = false;

  static BaseDensity normal(Eigen::VectorXd mean, Eigen::MatrixXd factor, bool by_axes) {
    return {{{1, std::move(mean), std::move(factor)}}, by_axes};
  }
  template <class Archive>
  void fields(Archive& archive) {
    archive("components", components);
    archive("by_axes", by_axes);
    archive("tied", tied);
  }

  int dim() const { return int(components.front().mean.size()); }
  /// Its number among BaseDensities (kernels/base.hpp), for ModelSpec::base.
  int number() const;
  double log_density(const Eigen::VectorXd& x) const;
  Eigen::VectorXd mean() const;
  Eigen::MatrixXd covariance() const;
  std::vector<double> sd() const;  // of the axes
  /// An independent draw, a function of the draw's key, iteration, chain and unit alone (Purpose::base).
  Eigen::VectorXd draw(const Draw<double>& draw) const;
  /// The same of the component where the sum of weights reaches u.
  Eigen::VectorXd draw_of(const Draw<double>& draw, double u) const;

  /// What ParameterLayout::base_log_norm holds, and Engine::set_base.
  double log_norm() const;
  std::vector<double> numbers() const;

 private:
  std::vector<double> log_weights() const;  // log w_k - log det of the factor
};

/// One base for each unit of an engine, in the order of its chains, or one for all; `log_norm`: as the engine is to hold
/// them.
void write_bases(Engine& engine, const std::vector<std::uint32_t>& units,
                 const std::vector<BaseDensity>& bases, const std::vector<double>& log_norm);

/// Bases of independent axes: [unit][axis], or of one for all. Empty: no base, the log density is log_norm everywhere.
struct BaseAxes {
  std::vector<double> mean, sd, log_norm;
};
void write_bases(Engine& engine, const BaseAxes& bases);

}  // namespace lockstep
