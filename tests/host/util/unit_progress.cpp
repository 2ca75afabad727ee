// SPDX-License-Identifier: Apache-2.0
#include "host/util/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace lockstep::progress_test {
namespace {

void tell(Progress& progress, const std::string& stage, double share, const RunHealth& health = {}) {
  if (progress.tell(stage, share)) progress.show(health);
}

/// Standard error of a test is no terminal.
TEST(Progress, PipedIsALineForEveryTenthAfterTwoSeconds) {
  const auto progress = progress_printer(false, "name"), quiet = progress_printer(true, "quiet");
  ::testing::internal::CaptureStderr();
  for (const double share : {0.0, 0.1, 0.2, 0.3}) tell(*progress, "sampling", share);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a short run says nothing";
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  ::testing::internal::CaptureStderr();
  double rhat = 1.0123;
  for (const double share : {0.41, 0.42, 0.495, 0.5, 0.59, 0.73, 1.0}) {
    tell(*progress, "sampling", share, {1e6, 3, rhat});
    tell(*quiet, "sampling", share, {1e6, 3, rhat});
    rhat = NAN;  // not looked at: the last one holds
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;  // 41, 59, 73 and 100 %
  EXPECT_EQ(text.rfind("name sampling 41 %, ", 0), 0u) << text;
  for (const char* part : {" gradients/s, ", " s left, 3 divergences, worst r_hat 1.012\n",
                           "name sampling 59 %", "name sampling 73 %", "name sampling 100 %"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(text.find('\r'), std::string::npos) << "bars are for terminals";
}

TEST(Progress, AStageThatBeginsAnewIsShownAnew) {
  const auto progress = progress_printer(false, "name");
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  ::testing::internal::CaptureStderr();
  tell(*progress, "annealing", 0.9, {0, NAN});
  tell(*progress, "annealing", 1, {1e6, NAN});
  tell(*progress, "annealing", 0.1, {0, NAN});  // counts of the first round went with it
  tell(*progress, "annealing", 0.3, {1e5, NAN});
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("annealing 30 %, "), std::string::npos) << text;
  EXPECT_EQ(text.find('-'), std::string::npos) << "rates are of the stage: " << text;
  EXPECT_EQ(text.find("divergences"), std::string::npos) << "nobody counts them";
}

TEST(Progress, ARoundIsAPartOfTheWholeAndGoesItsWaysOneAfterTheOther) {
  const auto progress = progress_printer(false, "name");
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  ::testing::internal::CaptureStderr();
  progress->begin({.name = "images", .when_last = {}, .begin = 0.5, .end = 1, .ways = 2});
  for (const double share : {0.0, 0.8, 0.0, 0.8}) tell(*progress, "annealing", share);
  const std::string text = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"name images 70 %", "name images 95 %"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

}  // namespace
}  // namespace lockstep::progress_test
