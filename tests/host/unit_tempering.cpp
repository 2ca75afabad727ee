// SPDX-License-Identifier: Apache-2.0
#include "host/tempering.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/tempering_references.hpp"

namespace lockstep {
namespace {

TEST(LogTemperingWeights, AgainstSixtyDigits) {
  for (const testing::TemperingReference& r : testing::tempering_references) {
    EXPECT_NEAR(log_w0(r.delta), r.log_w0, 1e-15 * std::max(1.0, std::abs(r.delta))) << r.delta;
    EXPECT_NEAR(log_w1(r.delta), r.log_w1, 1e-15 * std::max(1.0, std::abs(r.delta))) << r.delta;
  }
}

TEST(LogTemperingWeights, Limits) {
  for (const double tiny : {0.0, -0.0, 5e-324, -5e-324}) {
    EXPECT_NEAR(log_w0(tiny), 0, 1e-300);
    EXPECT_NEAR(log_w1(tiny), 0, 1e-300);
  }
  EXPECT_EQ(tempered(0, std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(tempered(0.5, 3), 1.5);
}

}  // namespace
}  // namespace lockstep
