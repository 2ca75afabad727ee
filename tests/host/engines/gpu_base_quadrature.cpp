// SPDX-License-Identifier: Apache-2.0
// The base of modes by the kernels of a GPU, in every precision.
#include "tests/support/base_quadrature.hpp"
#include "tests/support/engine_cases.hpp"
#include "tests/support/gpu.hpp"

namespace lockstep {
namespace {

using namespace testing;

/// Of components of their own shapes each, and tied.
class GpuBaseQuadrature : public GpuTest, public ::testing::WithParamInterface<bool> {
 protected:
  std::unique_ptr<TargetInstance> target_ = make_target("gaussian");
  EngineFactory engine_ = [this](EngineSpec spec) {
    spec.cuda = true;
    return target_->engine(spec);
  };
};
INSTANTIATE_TEST_SUITE_P(Bases, GpuBaseQuadrature, ::testing::Bool());

TEST_P(GpuBaseQuadrature, IntegralMomentsAndGradientAreThoseItStates) {
  const BaseGrid grid(spiral_base(3, GetParam()));
  for (const Precision precision : {Precision::double_, Precision::single, Precision::mixed})
    for (const bool blocks : {false, true}) check_base(engine_, grid, precision, blocks);
}

TEST_P(GpuBaseQuadrature, AWeightTooLargeIsSeen) { check_too_heavy(engine_, spiral_base(3, GetParam())); }

}  // namespace
}  // namespace lockstep
