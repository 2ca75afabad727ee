// SPDX-License-Identifier: Apache-2.0
#include "host/util/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace lockstep {
namespace {

/// Standard error of a test is no terminal.
TEST(Progress, PipedIsALineForEveryTenthAfterTwoSeconds) {
  auto health = std::make_shared<RunHealth>();
  health->rhat = [] { return 1.0123; };
  const auto progress = progress_printer(false, "name", health),
             quiet = progress_printer(true, "quiet", health);
  ::testing::internal::CaptureStderr();
  for (const double share : {0.0, 0.1, 0.2, 0.3}) progress("sampling", share);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "a short run says nothing";
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  health->counts = [] { return RunHealth::Counts{1e6, 3}; };
  ::testing::internal::CaptureStderr();
  for (const double share : {0.41, 0.42, 0.495, 0.5, 0.59, 0.73, 1.0}) {
    progress("sampling", share);
    quiet("sampling", share);
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
  auto health = std::make_shared<RunHealth>();
  double gradients = 0;
  health->counts = [&] { return RunHealth::Counts{gradients, NAN}; };
  const auto progress = progress_printer(false, "name", health);
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));
  ::testing::internal::CaptureStderr();
  progress("annealing", 0.9);
  gradients = 1e6;
  progress("annealing", 1);
  gradients = 0;  // counts of the first round went with it
  progress("annealing", 0.1);
  gradients = 1e5;
  progress("annealing", 0.3);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("annealing 30 %, "), std::string::npos) << text;
  EXPECT_EQ(text.find('-'), std::string::npos) << "rates are of the stage: " << text;
  EXPECT_EQ(text.find("divergences"), std::string::npos) << "nobody counts them";
}

}  // namespace
}  // namespace lockstep
