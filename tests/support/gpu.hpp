// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tests that need a GPU: skipped where there is none, unless LOCKSTEP_REQUIRE_GPU=1 says that there must be
// one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "targets/cuda_device.hpp"

namespace lockstep::testing {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_not = "its architecture is not among those of this build";
    if (cuda_available()) return;
    find_cuda_device(&why_not);
    const char* required = std::getenv("LOCKSTEP_REQUIRE_GPU");
    if (required != nullptr && std::string(required) == "1")
      FAIL() << "LOCKSTEP_REQUIRE_GPU is 1 and there is no usable GPU: " << why_not;
    GTEST_SKIP() << "no usable GPU: " << why_not;
  }
};

}  // namespace lockstep::testing
