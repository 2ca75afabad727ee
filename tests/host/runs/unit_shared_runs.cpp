// SPDX-License-Identifier: Apache-2.0
// sample, evidence and study as several processes under mpirun: the files of one process; stopped and killed too.
#include <gtest/gtest.h>

#include <chrono>

#include "host/engines/sharded_engine.hpp"
#include "tests/support/shared_run.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using namespace testing;

const char* const kStudy = R"(name = "small"
replicates = 3
seed = 5
warmup = 60
chains = 2
iterations = 300
[[setting]]
label = "pe"
target = "mixture20"
sampler = "pe"
[[setting]]
label = "pooled"
target = "banana"
sampler = "hmc"
adaptation = "pooled"
[[setting]]
label = "st"
command = "evidence"
target = "two_modes"
method = "st"
gradients = 1e5
)";

class SharedRuns : public SharedRun {
 protected:
  /// The same options by one process alone and by one, two and three: the same status, words and files.
  void expect_the_same(const Args& options, const Args& files) {
    const auto args = [&](const std::string& out) {
      return options + Args{"--quiet", "--threads", "1", "--device", "cpu", "--out", out};
    };
    const ProgramResult alone = run(args("alone"));
    EXPECT_TRUE(alone.status == 0 || alone.status == 3) << alone.err;
    for (const int processes : {1, 2, 3}) {
      const std::string out = std::to_string(processes);
      const ProgramResult shared = share(processes, args(out));
      EXPECT_EQ(shared.status, alone.status) << shared.err;
      EXPECT_EQ(own_lines(shared.err), 0) << shared.err;
      EXPECT_EQ(shared.out.substr(0, shared.out.find(" gradients, ")),
                alone.out.substr(0, alone.out.find(" gradients, ")));
      expect_same_files("alone", out, files);
    }
  }
  /// A run that takes seconds, saved every so often.
  Args slow() const {
    return {"sample",       "--target",  "mixture20", "--sampler", "pe",      "--chains", "40",
            "--iterations", "2000",      "--warmup",  "50",        "--draws", "100",      "--checkpoint",
            "0.05",         "--threads", "1",         "--device",  "cpu",     "--quiet"};
  }
  /// Whether the process is there, and is not only waiting to be counted off.
  static bool runs(int process) {
    const std::string status = contents("/proc/" + std::to_string(process) + "/stat");
    const auto name_ends = status.rfind(") ");
    return name_ends != std::string::npos && status[name_ends + 2] != 'Z';
  }
  bool saved(const std::string& out, const std::string& what = "checkpoint") const {
    return fs::exists(folder_ / out / what);
  }
};

TEST_F(SharedRuns, OfSampleWriteTheFilesOfOne) {
  expect_the_same({"sample", "--target", "banana", "--sampler", "hmc", "--chains", "100", "--warmup", "200",
                   "--iterations", "300", "--draws", "--thin", "3", "--warmup-draws"},
                  {"draws.nc"});
}
TEST_F(SharedRuns, OfRecycledDrawsWriteTheFilesOfOne) {
  expect_the_same({"sample", "--target", "welling_teh", "--sampler", "hmc", "--chains", "40", "--warmup",
                   "100", "--gradients", "3e4", "--set", "sampler.recycle=true"},
                  {});
}
TEST_F(SharedRuns, OfPseudoExtendedSampleWriteTheFilesOfOne) {
  expect_the_same({"sample", "--target", "mixture20", "--sampler", "pe", "--chains", "10", "--warmup", "100",
                   "--iterations", "300", "--draws", "--weighted-draws", "--se", "0.001"},
                  {"draws.nc"});
}
// Fewer chains than processes.
TEST_F(SharedRuns, OfOneChainWriteTheFilesOfOne) {
  expect_the_same({"sample", "--target", "gaussian", "--sampler", "hmc", "--chains", "1", "--warmup", "50",
                   "--iterations", "200", "--draws"},
                  {"draws.nc"});
}
TEST_F(SharedRuns, OfEvidenceWriteTheFilesOfOne) {
  for (const char* method : {"auto", "smc", "pt", "ct-joint", "ct-adiabatic", "pe"}) {
    SCOPED_TRACE(method);
    expect_the_same(
        {"evidence", "--target", "two_modes", "--method", method, "--gradients", "2e5", "--draws", "--force"},
        {"draws.nc"});
  }
}
TEST_F(SharedRuns, OfStudiesWriteTheFilesOfOne) {
  put("study.toml", kStudy);
  expect_the_same({"study", "study.toml"}, {"results.csv", "table.md"});
  // What is finished is not run again.
  const ProgramResult again = share(2, {"study", "study.toml", "--out", "3", "--resume"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_NE(again.err.find("holds every setting"), std::string::npos) << again.err;
}

TEST_F(SharedRuns, SayOnceWhatIsWrong) {
  for (const Args& wrong : {Args{"--set", "target.dim=-1"}, Args{"--out", "/proc/never"}}) {
    const ProgramResult all = share(3, Args{"sample", "--target", "gaussian", "--sampler", "hmc"} + wrong);
    EXPECT_EQ(all.status, 2);
    EXPECT_EQ(own_lines(all.err), 1) << all.err;
    EXPECT_EQ(all.out, "");
  }
}
// A finished run is shown once more, and not run over.
TEST_F(SharedRuns, LeaveAFinishedRunAlone) {
  const Args options = {"sample", "--target",     "gaussian", "--sampler", "hmc",   "--chains",
                        "40",     "--iterations", "200",      "--quiet",   "--out", "done"};
  const ProgramResult first = share(2, options), again = share(3, {"sample", "--out", "done", "--resume"}),
                      other = share(3, options);
  EXPECT_EQ(again.status, first.status) << again.err;
  EXPECT_NE(again.out, "");
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(own_lines(other.err), 1) << other.err;
  EXPECT_NE(other.err.find("holds the results"), std::string::npos) << other.err;
}

// One rank is killed, of each command another: all end within 30 s, and what was saved goes on, as any number of processes.
TEST_F(SharedRuns, KilledGoOnAsAnyNumber) {
  std::string study = kStudy;
  put("study.toml", study.replace(study.find("1e5"), 3, "1e6"));
  struct Case {
    Args run;
    std::string saves;  // a file that is there once something is saved
    Args files;
  };
  const Args evidence = {"evidence",    "--target", "mixture20", "--method",     "st",
                         "--gradients", "2e6",      "--draws",   "--checkpoint", "0.05",
                         "--threads",   "1",        "--device",  "cpu",          "--quiet"};
  const std::vector<Case> cases = {{slow(), "checkpoint", {"draws.nc"}},
                                   {evidence, "checkpoint", {"draws.nc"}},
                                   {{"study", "study.toml", "--threads", "1", "--device", "cpu", "--quiet"},
                                    "parts/0.csv",
                                    {"results.csv", "table.md"}}};
  for (int rank = 0; rank < 3; ++rank) {
    const auto& [options, saves, files] = cases[rank];
    const std::string whole = "whole " + options[0], out = "killed " + options[0];
    run(options + Args{"--out", whole});
    Program program(folder_, as_processes(3, options + Args{"--out", out}), "/usr/bin/env");
    ASSERT_TRUE(program.wait_for([&] { return saved(out, saves); })) << out;
    kill(std::stoi(contents(folder_ / ("pid" + std::to_string(rank)))), SIGKILL);
    const auto killed = std::chrono::steady_clock::now();
    const auto too_late = [&] {
      return std::chrono::steady_clock::now() - killed > std::chrono::seconds(30);
    };
    ASSERT_FALSE(program.wait_for(too_late)) << "mpirun goes on";
    const ProgramResult result = program.wait();
    EXPECT_NE(result.status, 0);
    EXPECT_LE(own_lines(result.err), 1) << result.err;
    for (const int other : {0, 1, 2})
      while (runs(std::stoi(contents(folder_ / ("pid" + std::to_string(other))))))
        ASSERT_FALSE(too_late()) << other;
    ASSERT_TRUE(saved(out, saves));
    const Args go_on =
        (options[0] == "study" ? options : Args{options[0], "--quiet"}) + Args{"--out", out, "--resume"};
    const ProgramResult rest = rank == 0 ? run(go_on) : share(rank + 1, go_on);
    EXPECT_TRUE(rest.status == 0 || rest.status == 3) << rest.err;
    expect_same_files(whole, out, files);
  }
}

// Ctrl-C in the terminal of mpirun, which alone hears it: Open MPI passes TERM on after so many seconds (one, if
// not told), and kills after as many again.
TEST_F(SharedRuns, InterruptedGoOnAsAnyNumber) {
  const auto longer = [&](const std::string& out) {
    Args options = slow() + Args{"--out", out};
    std::replace(options.begin(), options.end(), std::string("2000"), std::string("10000"));
    std::replace(options.begin(), options.end(), std::string("0.05"), std::string("1000"));
    return options;
  };
  run(longer("whole"));
  Program program(folder_, Args{"OMPI_MCA_odls_base_sigkill_timeout=2"} + as_processes(2, longer("stopped")),
                  "/usr/bin/env");
  ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / "stopped/run.toml"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.send(SIGINT);
  const ProgramResult stopped = program.wait();
  EXPECT_NE(stopped.status, 0);
  ASSERT_TRUE(saved("stopped")) << stopped.err;
  const ProgramResult rest = share(3, {"sample", "--out", "stopped", "--resume", "--quiet"});
  EXPECT_TRUE(rest.status == 0 || rest.status == 3) << rest.err;
  expect_same_files("whole", "stopped", {"draws.nc"});
}

}  // namespace
}  // namespace lockstep
