// SPDX-License-Identifier: Apache-2.0
// The page and the pictures of a run, and what they never cost it.
#include "host/commands/run_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::contents;
using testing::ProgramResult;
using Args = std::vector<std::string>;

class RunReport : public testing::ProgramTest {
 protected:
  void TearDown() override {
    unsetenv("LOCKSTEP_PYTHON");
    ProgramTest::TearDown();
  }
  static Args sample(const Args& more) {
    Args all = {"sample",       "--target",  "gaussian", "--sampler", "hmc", "--set",
                "target.dim=2", "--warmup",  "100",      "--chains",  "4",   "--iterations",
                "300",          "--threads", "1",        "--out",     "run"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// What an earlier run has left, and a picture that is no run's.
  void put_stale() {
    fs::create_directory(folder_ / "run");
    for (const char* name :
         {"run/report.html", "run/schedule.png", "run/corner.png", "run/.pictures.nc", "run/mine.png"})
      put(name, "old");
  }
  bool there(const std::string& name) const { return fs::exists(folder_ / "run" / name); }
};

TEST_F(RunReport, ShowsWhatTheRunLeft) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  put_stale();
  const ProgramResult result = run_with_pictures(sample({"--draws"}));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("pictures in run/report.html\n"), std::string::npos) << result.err;
  for (const char* name : {"marginals.png", "corner.png", "trace.png", "rank.png"})
    EXPECT_EQ(contents(folder_ / "run" / name).substr(0, 4), "\x89PNG") << name;
  for (const char* name : {"schedule.png", "log_z.png", ".pictures.nc"}) EXPECT_FALSE(there(name)) << name;
  const std::string page = contents(folder_ / "run/report.html");
  for (const char* part : {"gaussian by hmc", "Verdict: pass", "data:image/png;base64,", "R-hat", "</html>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

/// A run without draws.nc leaves a few for the pictures alone.
TEST_F(RunReport, TakesTheFewDrawsOfARunThatStoresNone) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  ASSERT_EQ(run(sample({"--draws"})).status, 0);
  fs::rename(folder_ / "run", folder_ / "other");
  ASSERT_EQ(run(sample({})).status, 0);
  EXPECT_FALSE(there("report.html")) << "--no-pictures";
  fs::rename(folder_ / "other/draws.nc", folder_ / "run/.pictures.nc");
  RunOptions options;
  options.out = folder_ / "run";
  options.quiet = true;
  setenv("LOCKSTEP_PLOT_DIR", LOCKSTEP_SOURCE_DIR "/plot", 1);
  setenv("LOCKSTEP_PYTHON", LOCKSTEP_PYTHON, 1);
  draw_run(options);
  unsetenv("LOCKSTEP_PLOT_DIR");
  EXPECT_TRUE(there("marginals.png"));
  EXPECT_FALSE(there(".pictures.nc"));
  EXPECT_FALSE(there("draws.nc"));
  const ProgramResult again = run_with_pictures({"sample", "--out", "run", "--resume"});
  EXPECT_NE(again.err.find("finished"), std::string::npos) << again.err;
  EXPECT_TRUE(there("marginals.png")) << "nothing is new, and the draws are gone";
}

TEST_F(RunReport, ShowsEvidence) {
  if (!can_draw()) GTEST_SKIP() << "pictures need matplotlib and netCDF4";
  const ProgramResult result =
      run_with_pictures({"evidence", "--target", "gaussian", "--method", "pt", "--gradients", "3e5", "--set",
                         "target.dim=2", "--threads", "1", "--json", "--out", "run"});
  EXPECT_EQ(result.err.find("picture"), std::string::npos) << "drawn in silence: " << result.err;
  const auto summary = nlohmann::json::parse(result.out);
  EXPECT_EQ(summary["command"], "evidence");
  EXPECT_GT(summary["diagnostics"]["least_round_trips"], 1);  // the picture shows what the gate asks for
  for (const char* name : {"log_z.png", "schedule.png", "round_trips.png", "report.html"})
    EXPECT_TRUE(there(name)) << name;
  EXPECT_FALSE(there("trace.png"));
}

TEST_F(RunReport, IsLeftOutWhereItIsNotWanted) {
  put_stale();
  EXPECT_EQ(run_with_pictures(sample({"--no-pictures"})).status, 0);
  EXPECT_TRUE(there("summary.json"));
  for (const char* name : {"report.html", "corner.png", "schedule.png", ".pictures.nc"})
    EXPECT_FALSE(there(name)) << name;
  EXPECT_TRUE(there("mine.png"));
  put("off.toml", "target = 'gaussian'\nsampler = 'hmc'\nchains = 4\niterations = 300\npictures = false\n");
  const ProgramResult off =
      run_with_pictures({"sample", "--config", "off.toml", "--out", "other", "--threads", "1"});
  EXPECT_TRUE(fs::exists(folder_ / "other/summary.json")) << off.err;
  EXPECT_FALSE(fs::exists(folder_ / "other/report.html"));
}

/// One line, no traceback, the same exit status and the same answer.
TEST_F(RunReport, CostsNothingButItselfWhenItFails) {
  const auto lines_of = [](const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  };
  setenv("LOCKSTEP_PYTHON", "/no/python", 1);
  const ProgramResult without = run_with_pictures(sample({}));
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_EQ(lines_of(without.err, "no picture"), 1) << without.err;
  EXPECT_EQ(lines_of(without.err, "not found"), 0) << without.err;
  EXPECT_TRUE(there("summary.json"));
  fs::remove_all(folder_ / "run");
  const ProgramResult quiet = run_with_pictures(sample({"--quiet"}));
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(quiet.status, 0);
  fs::remove_all(folder_ / "run");
  put("python",
      "#!/bin/sh\necho 'Traceback (most recent call last):' >&2\necho 'ValueError: no' >&2\nexit 1\n");
  fs::permissions(folder_ / "python", fs::perms::owner_all);
  setenv("LOCKSTEP_PYTHON", (folder_ / "python").c_str(), 1);
  const ProgramResult broken = run_with_pictures(sample({}));
  EXPECT_EQ(broken.status, 0);
  EXPECT_EQ(lines_of(broken.err, "Traceback"), 0) << broken.err;
  EXPECT_EQ(lines_of(broken.err, "stopped (ValueError: no)"), 1) << broken.err;
}

}  // namespace
}  // namespace lockstep
