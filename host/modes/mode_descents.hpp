// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descents side by side (kernels/lbfgs.hpp, kernels/residual_lbfgs.hpp).
#include <vector>

#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {

/// Where they are in the end.
struct DescentEnds {
  PointEngine::Rows place;          // [d][descent]
  std::vector<double> log_density;  // [descent]
  std::vector<int> rested;          // those that came to rest, the highest first
};

/// Of -log density.
class ModeDescents {
 public:
  /// `first_step`: its length.
  ModeDescents(const RunContext& context, std::uint32_t unit, int at_once, double first_step)
      : ModeDescents(context, unit, at_once, "lbfgs", {first_step}) {}

  int at_once() const { return points_.points(); }
  /// From the columns of `from`, at_once() at most.
  DescentEnds run(const PointEngine::Rows& from);
  /// At any points, as PointEngine does.
  void evaluate(const PointEngine::Rows& x, Eigen::VectorXd& log_density, PointEngine::Rows& gradient) {
    points_.evaluate(x, log_density, gradient);
  }
  /// Gradients so far.
  double evaluations() const { return points_.evaluations() + steps_; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("points", points_);
    archive("steps", steps_);
  }

 protected:
  ModeDescents(const RunContext& context, std::uint32_t unit, int at_once, const char* transition,
               std::vector<double> settings)
      : context_(context),
        unit_(unit),
        points_(context, unit, at_once, find_transition(transition), std::move(settings)) {}

  const RunContext& context_;
  const std::uint32_t unit_;
  PointEngine points_;

 private:
  double steps_ = 0;
};

/// Of what is left beside the modes known, the largest of a library (most_used_modes).
class ResidualDescents : public ModeDescents {
 public:
  /// `plan`: says of which form, and its temperature.
  ResidualDescents(const RunContext& context, std::uint32_t unit, int at_once, double first_step,
                   const SearchPlan& plan)
      : ModeDescents(context, unit, at_once, "residual_lbfgs",
                     {first_step, plan.temperature, double(plan.residual == ResidualEnergyOf::difference)}),
        temperature_(plan.temperature) {}
  void set_known(const ModeLibrary& library);

 private:
  const double temperature_;
};

}  // namespace lockstep
