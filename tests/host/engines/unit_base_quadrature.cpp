// SPDX-License-Identifier: Apache-2.0
// The base of modes by the engines of the CPU, in every precision.
#include <gtest/gtest.h>

#include "tests/support/base_quadrature.hpp"
#include "tests/support/engine_cases.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// Of components of their own shapes each, and tied.
class BaseQuadrature : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_target("gaussian");
  EngineFactory engine_ = [this](const EngineSpec& spec) { return target_->engine(spec); };
};
INSTANTIATE_TEST_SUITE_P(Bases, BaseQuadrature, ::testing::Bool());

TEST_P(BaseQuadrature, HasAFloorACapAndADefensivePart) {
  for (const int modes : {3, 40}) {
    const BaseDensity base = spiral_base(modes, GetParam());
    const int used = std::min(modes, 32);
    ASSERT_EQ(base.components.size(), std::size_t(1 + used));
    EXPECT_NEAR(base.components[0].weight, 0.2, 1e-15);
    double sum = 0, least = 1;
    for (const auto& c : base.components) {
      sum += c.weight;
      least = std::min(least, c.weight);
    }
    EXPECT_NEAR(sum, 1, 1e-14);
    // A fiftieth of an even share, before they are made to sum up.
    EXPECT_LT(least, 0.8 * 0.02 / used);
    EXPECT_GT(least, 0.8 * 0.02 / used / 1.02);
  }
}

TEST_P(BaseQuadrature, IntegralMomentsAndGradientAreThoseItStates) {
  for (const int modes : {1, 3, 40}) {
    const BaseGrid grid(spiral_base(modes, GetParam()));
    for (const Precision precision : {Precision::double_, Precision::single, Precision::mixed})
      for (const bool blocks : {false, true}) check_base(engine_, grid, precision, blocks);
  }
}

TEST_P(BaseQuadrature, AWeightTooLargeIsSeen) { check_too_heavy(engine_, spiral_base(3, GetParam())); }

}  // namespace
}  // namespace lockstep
