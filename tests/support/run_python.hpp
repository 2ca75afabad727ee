// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace lockstep::testing {

/// Runs tests/support/<script> on `file` and returns what it prints; empty, with a test failure, when it
/// fails.
inline std::string run_python(const std::string& script, const std::filesystem::path& file) {
  const std::string command = std::string(LOCKSTEP_PYTHON) + " " LOCKSTEP_SOURCE_DIR "/tests/support/" +
                              script + " '" + file.string() + "'";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot start " << command;
    return "";
  }
  char buffer[4096];
  for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  EXPECT_EQ(status, 0) << command;
  return status == 0 ? output : "";
}

/// A folder of its own for each test, empty at the start and removed at the end.
class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(::testing::TempDir()) / (std::string("lockstep-") + info->test_suite_name() +
                                                       "-" + info->name() + "-" + std::to_string(getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

}  // namespace lockstep::testing
