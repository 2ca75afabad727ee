// SPDX-License-Identifier: Apache-2.0
// What the GPU is held to, transition by transition (gpu_engines.cpp), held to the scalar reference, which
// takes other elementary functions than packs do: the limits leave room for rounding and for nothing else.
#include <gtest/gtest.h>

#include "tests/support/engine_cases.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

EngineFactory engines(const TargetInstance& target, int pack_width) {
  return [&target, pack_width](EngineSpec spec) {
    spec.pack_width = pack_width;
    return target.engine(spec);
  };
}

class TransitionParity : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(Models, TransitionParity, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(TransitionParity, ScalarReferenceTakesThePacksTransitions) {
  const auto target = make_target(GetParam().target);
  BatchCase c = GetParam().batch;
  for (Precision precision : {Precision::single, Precision::mixed, Precision::full}) {
    c.precision = precision;
    const Parity p = compare_transitions(engines(*target, 0), engines(*target, 1), c);
    EXPECT_LE(p.position, precision == Precision::full ? 1e-12 : 1e-5);
    EXPECT_LE(p.closest, 1e-4) << p.apart << " decisions differ";
    EXPECT_GT(p.accepted, 0);
    EXPECT_GT(p.equal, 0u);
  }
}

// The comparison must be able to fail: a normal that is a little wider, another density.
TEST(TransitionParityTwin, OtherTransitionsAreSeen) {
  BatchCase c;
  c.precision = Precision::full;
  MemoryInput input;
  input.numbers = {{"dim", 2}, {"ratio", 3.1}};
  const auto target = make_target("gaussian"), wider = find_target("gaussian")->make(input),
             other = make_target("banana");
  const Parity same = compare_transitions(engines(*target, 0), engines(*target, 0), c);
  EXPECT_EQ(same.equal, same.numbers);
  EXPECT_EQ(same.apart, 0);
  EXPECT_EQ(same.position, 0);
  EXPECT_GT(compare_transitions(engines(*target, 0), engines(*wider, 0), c).position, 1e-4);
  const Parity twin = compare_transitions(engines(*target, 0), engines(*other, 0), c);
  EXPECT_GT(twin.apart, 0);
  EXPECT_GT(twin.closest, 1e-2);
}

}  // namespace
