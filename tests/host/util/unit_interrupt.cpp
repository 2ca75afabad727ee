// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: what was recorded is kept, and the exit status says so.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "host/util/interrupt.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep::interrupt_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::contents;
using testing::ProgramResult;

class Interrupt : public testing::ProgramTest {};

TEST_F(Interrupt, LeavesWhatThereIs) {
  // Ctrl-C finds the run in warm-up on a slow machine; then there is nothing to keep, and it is tried later.
  for (const int milliseconds : {300, 2000, 10000}) {
    fs::remove_all(folder_ / "run");
    testing::Program program(
        folder_,
        {"sample", "--target", "gaussian", "--sampler", "hmc", "--warmup", "0", "--chains", "4",
         "--iterations", "2000000000", "--threads", "1", "--out", "run"},
        "lockstep", true);
    program.wait_for([&] { return contents(folder_ / ".stderr").find("memory plan") != std::string::npos; });
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    program.send(SIGINT);
    program.send(SIGINT);  // as `timeout` does: one request, sent twice
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.status, 130);
    EXPECT_NE(result.err.find("interrupted"), std::string::npos) << result.err;
    if (!fs::exists(folder_ / "run/summary.json")) continue;
    const Json s = Json::parse(contents(folder_ / "run/summary.json"));
    EXPECT_GT(s["iterations"], 0);
    EXPECT_LT(s["iterations"], 2000000000);
    EXPECT_NE(s["warnings"].dump().find("interrupted after"), std::string::npos);
    EXPECT_TRUE(fs::exists(folder_ / "run/run.toml"));
    EXPECT_EQ(fs::exists(folder_ / "run/report.html"), can_draw()) << result.err;
    return;
  }
  FAIL() << "no run was interrupted while it sampled";
}

TEST_F(Interrupt, InWarmUpSaysSo) {
  testing::Program program(folder_, {"sample", "--target", "gaussian", "--sampler", "hmc", "--warmup",
                                     "2000000000", "--chains", "32", "--threads", "1", "--out", "run"});
  program.wait_for([&] { return contents(folder_ / ".stderr").find("memory plan") != std::string::npos; });
  program.send(SIGTERM);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.status, 130);
  EXPECT_NE(result.err.find("interrupted before anything was recorded"), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(folder_ / "run/summary.json"));
}

const std::vector<std::string> kLong = {"sample",     "--target",  "gaussian", "--sampler", "hmc",
                                        "--warmup",   "50",        "--chains", "4",         "--iterations",
                                        "2000000000", "--threads", "1",        "--out",     "run"};

// As a terminal that is closed does, and a batch system before it kills.
TEST_F(Interrupt, HangingUpAndTerminatingSaveTheState) {
  for (const int signal_number : {SIGHUP, SIGTERM}) {
    fs::remove_all(folder_ / "run");
    testing::Program program(folder_, kLong);
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / "run/run.toml"); }));
    std::this_thread::sleep_for(std::chrono::seconds(3));
    program.send(signal_number);
    const ProgramResult result = program.wait();
    EXPECT_EQ(result.status, 130);
    EXPECT_NE(result.err.find("--resume goes on"), std::string::npos) << result.err;
    EXPECT_TRUE(fs::exists(folder_ / "run/checkpoint"));
  }
}

// A target whose exact sums take half a second or more is being built: nobody asks yet, and nothing is there to keep.
TEST_F(Interrupt, BeforeARunBeginsEndsAtOnce) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    testing::Program program(folder_, {"sample", "--target", "boltzmann", "--set", "target.units=32",
                                       "--sampler", "hmc", "--out", "run"});
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto sent = std::chrono::steady_clock::now();
    program.send(signal_number);
    EXPECT_EQ(program.wait().status, 128 + signal_number);
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(5));
    EXPECT_FALSE(fs::exists(folder_ / "run"));
  }
}

// A process in which nobody asks any more, as in a computation that does not end.
void wait_forever_after(int first, int second, double seconds_between) {
  catch_interrupts();
  (void)interrupted();
  std::raise(first);
  if (second != 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_between));
    std::raise(second);
  }
  std::this_thread::sleep_for(std::chrono::seconds(14));
  std::_Exit(7);
}

TEST(InterruptDeathTest, WhatDoesNotAskIsEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_forever_after(SIGTERM, 0, 0), ::testing::KilledBySignal(SIGTERM), "")
      << "after ten seconds";
  EXPECT_EXIT(wait_forever_after(SIGINT, SIGINT, 1), ::testing::KilledBySignal(SIGINT), "")
      << "the second time";
  EXPECT_EXIT(wait_forever_after(SIGINT, SIGTERM, 1), ::testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace lockstep::interrupt_test
