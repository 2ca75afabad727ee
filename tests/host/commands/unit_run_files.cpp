// SPDX-License-Identifier: Apache-2.0
// One run in a folder at a time, no results overwritten unasked, and what a killed or finished run has left
// is gone on with.
#include "host/commands/run_files.hpp"

#include <gtest/gtest.h>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::contents;
using testing::Program;
using testing::ProgramResult;
using Args = std::vector<std::string>;

Args operator+(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

const Args kSample = {"sample", "--target",  "gaussian", "--sampler", "hmc", "--warmup",
                      "50",     "--threads", "1",        "--device",  "cpu"};
const Args kFew = kSample + Args{"--chains", "16"};
const Args kOut = {"--out", "run"};

class RunFolder : public testing::ProgramTest {
 protected:
  void refused(const Args& args, const std::string& part) {
    const ProgramResult result = run(args);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "wanted: " << part;
  }
  std::string kept(const std::string& name = "summary.json") { return contents(folder_ / "run" / name); }
};

TEST_F(RunFolder, IsOneRunsAtATime) {
  const Args study = {"study", "study.toml", "--out", "run", "--threads", "1"};
  put("study.toml",
      "name = \"s\"\nreplicates = 1\n[[setting]]\nlabel = \"a\"\ntarget = \"gaussian\"\n"
      "sampler = \"hmc\"\niterations = 10\nwarmup = 10\n");
  {
    Program first(folder_, kFew + kOut + Args{"--iterations", "2000000000"});
    ASSERT_TRUE(first.wait_for([&] { return fs::exists(folder_ / "run/run.toml"); }));
    const std::string before = kept("run.toml");
    for (const Args& more : {Args{}, Args{"--force"}, Args{"--resume"}}) {
      refused(kFew + kOut + more, "run is in use by another run, process ");
      refused(study + more, "run is in use by another run, process ");
    }
    refused({"evidence", "--target", "gaussian", "--out", "run"}, "in use");
    EXPECT_EQ(kept("run.toml"), before);
  }  // killed: its lock ends with it
  EXPECT_EQ(run(kFew + kOut).status, 0);
  EXPECT_FALSE(fs::exists(folder_ / "run/.lock"));
}

TEST_F(RunFolder, ResultsAreOverwrittenOnlyByForce) {
  ASSERT_EQ(run(kFew + kOut + Args{"--draws"}).status, 0);
  const std::string before = kept();
  refused(kFew + kOut, "--force to overwrite them, or --resume");
  refused({"evidence", "--target", "gaussian", "--out", "run"}, "holds the results of an earlier run");
  refused({"sample", "--config", "run/run.toml"}, "holds the results of an earlier run");
  refused(kFew + Args{"--force"}, "--force has no --out");
  refused(kFew + kOut + Args{"--force", "--resume"}, "--resume and --force are both given");
  EXPECT_EQ(kept(), before);
  EXPECT_EQ(run(kFew + kOut + Args{"--force", "--seed", "2"}).status, 0);
  EXPECT_EQ(Json::parse(kept())["seed"], 2);
  EXPECT_FALSE(fs::exists(folder_ / "run/draws.nc")) << "of the earlier run";
  EXPECT_EQ(kept("run.toml").find("force"), std::string::npos);
  // A study's.
  fs::create_directories(folder_ / "study");
  put("study/results.csv", "");
  refused(kFew + Args{"--out", "study"}, "results.csv");
}

TEST_F(RunFolder, ResumeOfAFinishedRunShowsItAgain) {
  Args fails = kFew;
  fails[4] = "rwm";
  fails.insert(fails.end(), {"--set", "sampler.adapt=none", "--set", "sampler.step_size=100"});
  const std::pair<Args, int> runs[] = {
      {kFew, 0},
      {fails, 3},
      {{"evidence", "--target", "gaussian", "--method", "ais", "--gradients", "2e5", "--threads", "1"}, -1}};
  for (const auto& [args, status] : runs) {
    fs::remove_all(folder_ / "run");
    const ProgramResult first = run(args + kOut);
    EXPECT_EQ(status >= 0 ? status : first.status, first.status) << first.out << first.err;
    const std::string before = kept();
    const auto written = fs::last_write_time(folder_ / "run/summary.json");
    const ProgramResult shown = run({args[0], "--out", "run", "--resume"});
    EXPECT_EQ(shown.status, first.status) << shown.err;
    EXPECT_EQ(shown.out, first.out);
    EXPECT_NE(shown.err.find("run holds this run, finished: nothing is computed"), std::string::npos)
        << shown.err;
    EXPECT_EQ(run({args[0], "--out", "run", "--resume", "--json", "--quiet"}).out, before);
    EXPECT_EQ(kept(), before);
    EXPECT_EQ(fs::last_write_time(folder_ / "run/summary.json"), written);
    refused({args[0], "--out", "run", "--resume", "--seed", "9"}, "other options");
    EXPECT_EQ(run({args[0], "--out", "run", "--resume", "--no-pictures", "--quiet"}).status, first.status);
    // Neither another number nor a part that is missing is shown as the run's answer.
    const std::size_t mean = before.find("\"mean\": [");
    ASSERT_NE(mean, std::string::npos);
    std::string changed = before;
    changed.insert(mean + 9, "9.5, ");
    put("run/summary.json", changed);
    refused({args[0], "--out", "run", "--resume"}, "summary.json is damaged");
    Json part = Json::parse(before);
    part.erase("cost");
    put("run/summary.json", part.dump());
    refused({args[0], "--out", "run", "--resume"}, "summary.json is damaged");
  }
}

TEST_F(RunFolder, ResumeBeginsWhatWasKilledBeforeItsFirstCheckpoint) {
  const Args args = {"sample",   "--target", "mixture20", "--sampler", "pe",           "--chains", "20",
                     "--warmup", "5000",     "--threads", "1",         "--iterations", "1000",     "--draws"};
  const ProgramResult whole = run(args + Args{"--out", "whole"});
  {
    Program killed(folder_, args + kOut);
    ASSERT_TRUE(killed.wait_for([&] { return fs::exists(folder_ / "run/run.toml"); }));
  }
  ASSERT_FALSE(fs::exists(folder_ / "run/summary.json"));
  put("run/.draws.nc.123456-0.tmp", "half a file");
  put("run/.hidden", "somebody else's");
  put("run/.corner.png.4711.tmp", "half a picture");
  refused({"sample", "--out", "run", "--resume", "--seed", "5"},
          "run/run.toml is of a run with other options");
  const ProgramResult again = run({"sample", "--out", "run", "--resume"});
  EXPECT_EQ(again.status, whole.status) << again.err;
  EXPECT_NE(again.err.find("the run begins"), std::string::npos) << again.err;
  EXPECT_EQ(kept("draws.nc"), contents(folder_ / "whole/draws.nc"));
  EXPECT_FALSE(fs::exists(folder_ / "run/.draws.nc.123456-0.tmp"));
  EXPECT_FALSE(fs::exists(folder_ / "run/.corner.png.4711.tmp"));
  EXPECT_TRUE(fs::exists(folder_ / "run/.hidden"));
  // Draws that did not get to the disk are made again.
  fs::remove(folder_ / "run/draws.nc");
  EXPECT_EQ(run({"sample", "--out", "run", "--resume"}).status, whole.status);
  EXPECT_EQ(kept("draws.nc"), contents(folder_ / "whole/draws.nc"));
}

/// Files above a size cannot be written, as on a disk that is full.
TEST_F(RunFolder, AFullDiskCostsOnlyWhatDoesNotFit) {
  const auto limited = [&](const Args& args, const char* blocks) {  // of 1024 bytes
    return Program(folder_,
                   Args{"bash", "-c", "trap '' XFSZ; ulimit -f " + std::string(blocks) + "; exec \"$@\"",
                        "bash", (fs::path(LOCKSTEP_BINARY_DIR) / "lockstep").string()} +
                       args,
                   "/usr/bin/env")
        .wait();
  };
  const ProgramResult draws = limited(kFew + Args{"--draws", "--out", "run"}, "64");
  EXPECT_EQ(draws.status, 1);
  EXPECT_NE(draws.out.find("verdict"), std::string::npos) << "the table is shown all the same";
  EXPECT_NE(draws.err.find("draws.nc': "), std::string::npos) << draws.err;
  EXPECT_NE(draws.err.find("File too large"), std::string::npos) << draws.err;
  EXPECT_TRUE(Json::parse(kept(), nullptr, false).contains("verdict"));
  EXPECT_NE(kept("run.toml"), "");
  EXPECT_FALSE(fs::exists(folder_ / "run/draws.nc"));
  EXPECT_EQ(run({"sample", "--out", "run", "--resume"}).status, 0) << "with room again";
  EXPECT_TRUE(fs::exists(folder_ / "run/draws.nc"));
  // And in the midst of arrays that are written by parts.
  const ProgramResult parts = limited(
      kSample + Args{"--iterations", "200", "--chains", "1024", "--draws", "all", "--out", "parts"}, "3000");
  EXPECT_EQ(parts.status, 1);
  EXPECT_NE(parts.err.find("File too large"), std::string::npos) << parts.err;
  EXPECT_EQ(parts.err.find("HDF5-DIAG"), std::string::npos) << "the library's own complaint as well";

  const ProgramResult checkpoint = limited(
      kSample + Args{"--iterations", "20000", "--chains", "512", "--checkpoint", "0.001", "--out", "second"},
      "64");
  EXPECT_EQ(checkpoint.status, 0) << checkpoint.err;
  const auto said = checkpoint.err.find("no checkpoint: cannot write");
  EXPECT_NE(said, std::string::npos) << checkpoint.err;
  EXPECT_EQ(checkpoint.err.find("no checkpoint", said + 1), std::string::npos) << "said once";
  for (const auto& entry : fs::directory_iterator(folder_ / "second"))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

}  // namespace
}  // namespace lockstep
