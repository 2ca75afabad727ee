// SPDX-License-Identifier: Apache-2.0
// A run that was stopped and gone on with is the run that was never stopped.
#include "host/engines/checkpoint.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "host/options/target_input.hpp"
#include "host/util/files.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::contents;
using testing::ProgramResult;
using Args = std::vector<std::string>;

struct Inner {
  double value = 0;
  template <class Archive>
  void fields(Archive& archive) {
    archive("value", value);
  }
};

struct State {
  bool flag = false;
  std::int64_t count = 0;
  std::vector<float> floats;
  std::vector<std::vector<double>> lists;
  std::vector<Inner> inner;
  template <class Archive>
  void fields(Archive& archive) {
    archive("flag", flag);
    archive("count", count);
    archive("floats", floats);
    archive("lists", lists);
    archive("inner", inner);
  }
};

class CheckpointFile : public testing::FolderTest {
 protected:
  std::string complaint(const std::string& identity) {
    try {
      Checkpoint read(folder_ / "checkpoint", identity);
      State state;
      read("state", state);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(CheckpointFile, GivesBackEveryBit) {
  State state{true, -7, {1.1f, -0.0f, NAN}, {{}, {0.1, INFINITY}}, {{3}, {4}}}, again;
  Checkpoint out;
  out("state", state);
  out.write(folder_ / "checkpoint", "this run");
  Checkpoint in(folder_ / "checkpoint", "this run");
  in("state", again);
  EXPECT_EQ(again.flag, true);
  EXPECT_EQ(again.count, -7);
  ASSERT_EQ(again.floats.size(), 3u);
  EXPECT_EQ(std::memcmp(again.floats.data(), state.floats.data(), 12), 0);
  EXPECT_EQ(again.lists, state.lists);
  ASSERT_EQ(again.inner.size(), 2u);
  EXPECT_EQ(again.inner[1].value, 4);
}

TEST_F(CheckpointFile, RefusesWhatItIsNot) {
  EXPECT_NE(complaint("this run").find("does not exist"), std::string::npos);
  State state;
  Checkpoint out;
  out("other", state);
  out.write(folder_ / "checkpoint", "this run");
  EXPECT_NE(complaint("this run").find("is damaged"), std::string::npos);  // no "state"
  EXPECT_NE(complaint("that run").find("other options"), std::string::npos);
}

TEST_F(CheckpointFile, IsRefusedWithAnyDamage) {
  State state{true, -7, {1.1f, -0.0f, NAN}, {{}, {0.1, INFINITY}}, {{3}, {4}}};
  Checkpoint out;
  out("state", state);
  out.write(folder_ / "checkpoint", "this run");
  ASSERT_EQ(complaint("this run"), "none");
  const std::string whole = contents(folder_ / "checkpoint");
  const auto refused = [&](const std::string& text) {
    std::ofstream(folder_ / "checkpoint", std::ios::binary) << text;
    return complaint("this run").find("is damaged") != std::string::npos;
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string text = whole;
    text[bit / 8] = char(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(refused(text)) << bit;
  }
  EXPECT_TRUE(refused(""));
  for (std::size_t at = 1; at < whole.size(); ++at) {
    EXPECT_TRUE(refused(whole.substr(0, at))) << at;
    EXPECT_TRUE(refused(whole.substr(0, at) + whole.substr(at / 2))) << at;
  }
  EXPECT_TRUE(refused(whole + "\n"));
  // What programs before the checksum have written: CBOR alone.
  EXPECT_TRUE(refused("\xA1\x68identity\x68this run"));
}

TEST_F(CheckpointFile, OfAnotherFormatSaysSo) {
  State state;
  Checkpoint out;
  out("state", state);
  out.write(folder_ / "checkpoint", "this run");
  std::string text = contents(folder_ / "checkpoint");
  text.resize(text.size() - 32);
  const std::string now = "lockstep checkpoint 12 ";
  ASSERT_EQ(text.substr(0, now.size()), now);
  text[now.size() - 2] ^= 1;
  std::ofstream(folder_ / "checkpoint", std::ios::binary)
      << text << fmt::format("{:016x}{}", text.size(), checksum(text));
  EXPECT_NE(complaint("this run").find("another version of lockstep"), std::string::npos);
}

TEST(RunIdentity, ComprisesTheDefaultsThatHold) {
  RunOptions run;
  run.target = "gaussian";
  const auto target = build_target(run);
  const std::string before = run_identity(run, *target, {{"tilt", 3}});
  EXPECT_EQ(run_identity(run, *target, {{"tilt", 3}}), before);
  EXPECT_NE(run_identity(run, *target, {{"tilt", 2}}), before);
  run.threads = 7;  // of no consequence
  EXPECT_EQ(run_identity(run, *target, {{"tilt", 3}}), before);
  // Known starts are data: another point under the same name is another run.
  run.init = ::testing::TempDir() + "identity-starts.json";
  const auto with_starts = [&](const std::string& rows) {
    write_atomically(run.init, "{\"x\": " + rows + "}");
    return run_identity(run, *target, {{"tilt", 3}});
  };
  const std::string d10 = "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]", other = "[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
  EXPECT_EQ(with_starts("[" + d10 + "]"), with_starts("[" + d10 + "]"));
  EXPECT_NE(with_starts("[" + d10 + "]"), with_starts("[" + other + "]"));
  EXPECT_NE(with_starts("[" + d10 + "]"), with_starts("[" + d10 + ", " + d10 + "]"));
}

TEST(RunIdentity, IsOfEveryOptionButTheSurroundings) {
  RunOptions run;
  run.target = "gaussian";
  const std::string as_ever =  // checkpoints of earlier runs are known by it
      "# Repeats this run: lockstep sample --config run.toml\n"
      "command = \"sample\"\ntarget = \"gaussian\"\npaper_settings = false\nchains = 256\nwarmup = 1000\n"
      "iterations = 1000\nseed = 1\ninit = \"scout\"\ninit_scale = 10.0\ndevice = \"auto\"\nthreads = 0\n"
      "precision = \"mixed\"\ndraws = false\nweighted_draws = false\nwarmup_draws = false\npictures = true\n"
      "thin = 1\ncheckpoint = 0.0\njson = false\nquiet = false\n";
  EXPECT_EQ(essential_options(run), as_ever);
  run.device = "cpu";
  run.threads = 3;
  run.out = "out";
  run.pictures = false;
  run.checkpoint = 9;
  run.resume = run.force = run.json = run.quiet = true;
  EXPECT_EQ(essential_options(run), as_ever);
  run.thin = 2;
  EXPECT_NE(essential_options(run), as_ever);
}

class Resume : public testing::ProgramTest {
 protected:
  /// The summary but for how long it took.
  Json summary(const std::string& out) {
    Json s = Json::parse(contents(folder_ / out / "summary.json"));
    for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) s["cost"].erase(key);
    return s;
  }
  Args with(Args args, const Args& more) {
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
};

const std::vector<Args> kRuns = {
    {"sample", "--target", "mixture20", "--sampler", "pe", "--iterations", "4000", "--chains", "20",
     "--draws", "--thin", "37", "--threads", "1"},
    {"sample", "--target", "banana", "--sampler", "hmc", "--gradients", "2e7", "--chains", "33", "--set",
     "sampler.metric=dense", "--threads", "1"},
    {"sample", "--target", "bimodal", "--sampler", "rwm", "--iterations", "150000", "--chains", "64", "--se",
     "0.0001", "--precision", "double", "--threads", "1"},
    {"evidence", "--target", "mixture20", "--method", "st", "--gradients", "6e6", "--draws", "--threads",
     "1"},
    {"evidence", "--target", "two_modes", "--method", "ct-joint", "--gradients", "3e6", "--threads", "1"},
    {"evidence", "--target", "two_modes", "--method", "ct-adiabatic", "--gradients", "2e6", "--threads", "1"},
    {"evidence", "--target", "two_modes", "--method", "pt", "--gradients", "1.5e6", "--draws", "--threads",
     "1"}};

TEST_F(Resume, AfterAKillAndAnInterruptNoBitDiffers) {
  for (const Args& args : kRuns) {
    const std::string whole = "whole " + args[4], out = args[4];
    const int status = run(with(args, {"--out", whole})).status;
    EXPECT_TRUE(status == 0 || status == 3);
    {
      testing::Program program(folder_, with(args, {"--out", out, "--checkpoint", "0.001"}));
      ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / out / "checkpoint"); })) << out;
      program.send(SIGKILL);
      EXPECT_EQ(program.wait().status, 137);
    }
    EXPECT_FALSE(fs::exists(folder_ / out / "summary.json"));
    {
      fs::remove(folder_ / ".stderr");  // of the program before, which has said the same
      testing::Program program(folder_, {args[0], "--out", out, "--resume", "--checkpoint", "1000"});
      program.wait_for(
          [&] { return contents(folder_ / ".stderr").find("memory plan") != std::string::npos; });
      program.send(SIGINT);
      const ProgramResult result = program.wait();
      EXPECT_EQ(result.status, 130) << out;
      EXPECT_NE(result.err.find("lockstep " + args[0] + " --out " + out + " --resume goes on"),
                std::string::npos);
      if (result.err.find("before anything was added") ==
          std::string::npos) {  // as a slow program may have it
        EXPECT_NE(contents(folder_ / out / "summary.json").find("\"interrupted"), std::string::npos);
      }
    }
    EXPECT_TRUE(fs::exists(folder_ / out / "checkpoint"));
    EXPECT_EQ(run({args[0], "--out", out, "--resume", "--threads", "2"}).status, status);
    Json resumed = summary(out), expected = summary(whole);
    resumed.erase("threads");
    expected.erase("threads");
    EXPECT_EQ(resumed, expected);
    const Json cost = Json::parse(contents(folder_ / out / "summary.json"))["cost"];
    EXPECT_GE(double(cost["wall_s"]), double(cost["sampling_s"])) << "of all that ran";
    EXPECT_EQ(contents(folder_ / out / "draws.nc"), contents(folder_ / whole / "draws.nc")) << out;
    EXPECT_FALSE(fs::exists(folder_ / out / "checkpoint"));
  }
}

TEST_F(Resume, MixesNoTwoRuns) {
  const Args& args = kRuns[0];
  {
    testing::Program program(folder_, with(args, {"--out", "run", "--checkpoint", "0.001"}));
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / "run/checkpoint"); }));
    program.send(SIGKILL);
    program.wait();
  }
  const std::string before = contents(folder_ / "run/checkpoint");
  const auto refused = [&](const Args& more, const std::string& part) {
    const ProgramResult result = run(with(with(args, {"--out", "run"}), more));
    EXPECT_EQ(result.status, 2) << part;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(contents(folder_ / "run/checkpoint"), before);
  };
  refused({}, "holds the checkpoint of an interrupted run");
  refused({"--resume", "--seed", "2"}, "other options");
  refused({"--resume", "--set", "target.scenario=b"}, "other options");
  refuses({"sample", "--resume"}, "never/run.toml");
  EXPECT_EQ(run(with(args, {"--out", "run", "--resume"})).status, 0) << "the same options are welcome";
  const ProgramResult other = run(with(args, {"--out", "run", "--resume", "--seed", "2"}));
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("run/summary.json is of a run with other options"), std::string::npos)
      << other.err;
}

}  // namespace
}  // namespace lockstep
