// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: what was recorded is kept, and the exit status says so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::contents;
using testing::ProgramResult;

class Interrupt : public testing::ProgramTest {};

TEST_F(Interrupt, LeavesWhatThereIs) {
  // Ctrl-C finds the run in warm-up on a slow machine; then there is nothing to keep, and it is tried later.
  for (const int milliseconds : {300, 2000, 10000}) {
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

}  // namespace
}  // namespace lockstep
