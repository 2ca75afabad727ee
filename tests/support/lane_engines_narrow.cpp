// SPDX-License-Identifier: Apache-2.0
#include "tests/support/make_lane_engines.hpp"

namespace lockstep::testing {
template std::unique_ptr<Engine> lane_engine<Pack<float, 4>, Pack<double, 4>>(
    const EngineSpec&, OpaqueDensity, BlockDensityMaker<float, double>);
}  // namespace lockstep::testing
