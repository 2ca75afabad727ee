// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>
#include <memory>

#include "host/engines/units.hpp"

namespace lockstep {

/// Log densities and gradients of a plain target at any points, by its engine, in double.
class PointEngine {
 public:
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;  // [d][point]
  PointEngine(const RunContext& context, std::uint32_t unit, int points,
              const TransitionInfo* transition = nullptr, std::vector<double> settings = {});

  int points() const { return engine_->chains(); }
  Engine& engine() { return *engine_; }
  /// At the columns of x, any number of them; a log density that is no number is -infinity, with a gradient of 0.
  void evaluate(const Rows& x, Eigen::VectorXd& log_density, Rows& gradient);
  double evaluations() const { return evaluations_; }
  template <class Archive>
  void fields(Archive& archive) {
    archive("evaluations", evaluations_);
  }

 private:
  std::unique_ptr<Engine> engine_;
  double evaluations_ = 0;
};

}  // namespace lockstep
