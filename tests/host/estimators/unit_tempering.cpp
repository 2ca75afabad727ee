// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/tempering.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(Tempered, NothingAtTheBaseEvenOutsideTheSupport) {
  EXPECT_EQ(tempered(0, std::numeric_limits<double>::infinity()), 0);
  EXPECT_EQ(tempered(0.5, 3), 1.5);
}

}  // namespace
}  // namespace lockstep
