// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a target says of settings and data that it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/target_input.hpp"

namespace lockstep::testing {

/// The message of a failing build: one line, what is wrong (why it matters). what to do
template <class Definition>
std::string build_complaint(MemoryInput in) {
  try {
    Definition::build(in);
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("("));
    EXPECT_THAT(e.what(), ::testing::HasSubstr("). "));
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace lockstep::testing
