// SPDX-License-Identifier: Apache-2.0
// The cases that the GPU is held to the CPU in (gpu_engines.cpp), and how they are compared.
#include <gtest/gtest.h>

#include "tests/support/engine_cases.hpp"
#include "tests/support/parity.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

EngineFactory engines(const TargetInstance& target) {
  return [&target](const EngineSpec& spec) { return target.engine(spec); };
}

TEST(EngineCases, ChainsMoveInEachAndStayInMost) {
  int staying = 0;
  for (const Named& n : all_cases()) {
    const auto target = make_target(n.target);
    const Parity p = compare_transitions(engines(*target), engines(*target), n.batch);
    EXPECT_GT(p.accepted, 0) << n.name;
    EXPECT_EQ(p.equal, p.numbers) << n.name;
    staying += p.refused > 0;
  }
  EXPECT_GT(staying, 20);
}

// The comparison must be able to fail: a normal that is a little wider, another density.
TEST(EngineCases, OtherTransitionsAreSeen) {
  BatchCase c;
  c.precision = Precision::double_;
  MemoryInput input;
  input.numbers = {{"dim", 2}, {"ratio", 3.1}};
  const auto target = make_target("gaussian"), wider = find_target("gaussian")->make(input),
             other = make_target("banana");
  EXPECT_GT(compare_transitions(engines(*target), engines(*wider), c).position, 1e-4);
  EXPECT_TRUE(std::isnan(larger(larger(1e-9, NAN), 1e-8)));
  const Parity twin = compare_transitions(engines(*target), engines(*other), c);
  EXPECT_GT(twin.apart, 0);
  EXPECT_GT(twin.closest, 1e-2);
}

}  // namespace
