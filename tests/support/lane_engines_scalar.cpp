// SPDX-License-Identifier: Apache-2.0
#include "tests/support/make_lane_engines.hpp"

namespace lockstep::testing {
template std::unique_ptr<Engine> lane_engine<float, float>(const EngineSpec&, OpaqueDensity,
                                                           BlockDensityMaker<float, float>);
template std::unique_ptr<Engine> lane_engine<float, double>(const EngineSpec&, OpaqueDensity,
                                                            BlockDensityMaker<float, double>);
template std::unique_ptr<Engine> lane_engine<double, double>(const EngineSpec&, OpaqueDensity,
                                                             BlockDensityMaker<double, double>);
}  // namespace lockstep::testing
