// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "host/util/program.hpp"

int main(int argc, char** argv) {
  lockstep::keep_memory();  // as the programs do
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
