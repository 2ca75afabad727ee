// SPDX-License-Identifier: Apache-2.0
// What every program of the build owes its users: a word when its output is lost, and help that is right.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_program.hpp"

namespace lockstep::program_test {
namespace {

using Args = std::vector<std::string>;
using testing::Program;
using testing::ProgramResult;

class Programs : public testing::ProgramTest {
 protected:
  void bench_refuses(const Args& args, const std::string& part) {
    const ProgramResult result = Program(folder_, args, "lockstep-bench").wait();
    EXPECT_EQ(result.status, 2) << part;
    EXPECT_EQ(result.out, "") << part;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
    EXPECT_LT(result.err.size(), 200u) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "wanted: " << part;
  }
};

TEST_F(Programs, AFullDiskIsAnError) {
  const Args sample = {"sample",   "--target", "gaussian",  "--sampler", "hmc",          "--quiet",
                       "--chains", "16",       "--threads", "1",         "--iterations", "50"};
  Args json = sample;
  json.push_back("--json");
  for (const Args& args : {sample, json, Args{"--help"}, Args{"targets"}, Args{"targets", "mixture20"},
                           Args{"samplers"}, Args{"devices"}, Args{"check", "gaussian", "--threads", "1"}}) {
    const ProgramResult result = run_on_full_disk(args);
    EXPECT_EQ(result.status, 1) << args[0];
    EXPECT_EQ(result.err.find("lockstep: standard output could not be written"), 0u) << result.err;
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }
  EXPECT_EQ(run_on_full_disk({"--help"}, "lockstep-bench").status, 1);
}

// Of two runs, for the program itself has some memory too.
TEST_F(Programs, MemoryPlansAreTrueToATenth) {
  const auto plan_and_peak = [&](const char* sampler, const char* chains, bool saved) {
    Args args = {"sample",   "--device", "cpu",      "--target", "gaussian",     "--sampler", sampler,
                 "--chains", chains,     "--warmup", "20",       "--iterations", "200"};
    if (saved) args.insert(args.end(), {"--out", chains, "--checkpoint", "0.001"});
    const ProgramResult result = run(args);
    const std::string said = "memory plan: ";
    const auto at = result.err.find(said);
    EXPECT_NE(at, std::string::npos) << result.err;
    return std::pair{std::stod(result.err.substr(at + said.size())), result.peak_mib};
  };
  // Pages of libraries count where they are in the system's cache, to which the first run of a program brings them.
  plan_and_peak("hmc", "1000", false);
  for (auto [sampler, saved] : {std::pair{"hmc", false}, std::pair{"pe", false}, std::pair{"hmc", true}}) {
    const auto small = plan_and_peak(sampler, "10000", saved), large = plan_and_peak(sampler, "30000", saved);
    const double planned = large.first - small.first, had = large.second - small.second;
    EXPECT_GT(had, 50);
    EXPECT_NEAR(planned, had, 0.1 * had) << sampler;
  }
}

TEST_F(Programs, TooManyThreadsForTheSystemAreRefused) {
  // Stacks for a thousand threads do not fit in the address space.
  const ProgramResult result =
      Program(folder_,
              {"bash", "-c", "ulimit -v 4000000; exec \"$@\"", "bash",
               (std::filesystem::path(LOCKSTEP_BINARY_DIR) / "lockstep").string(), "sample", "--target",
               "gaussian", "--sampler", "hmc", "--threads", "1000", "--device", "cpu"},
              "/usr/bin/env")
          .wait();
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err.find("lockstep: --threads is 1000, and the system starts"), 0u) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
}

TEST_F(Programs, ExamplesOfSamplePassTheirGates) {
  for (const Args& help : {Args{"--help"}, Args{"sample", "--help"}}) {
    std::istringstream lines(run(help).out);
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      Args args{std::istream_iterator<std::string>(words), {}};
      if (args.size() < 3 || args[0] != "lockstep" || args[1] != "sample") continue;
      args.erase(args.begin());
      const ProgramResult result = run(args);
      EXPECT_EQ(result.status, 0) << line << result.out;
      ++examples;
    }
    EXPECT_GE(examples, 1);
  }
}

TEST_F(Programs, StartsFromFilesOfEveryFormat) {
  put("starts.json", R"({"x": [[1, 2], [3, 4], [5, 6]]})");
  put("plain.csv", "1,2\n3,4\n5,6\n");
  put("named.csv", "x0,x1\n1,2\n3,4\n5,6\n");
  const auto estimates = [&](const std::string& file) {
    const ProgramResult result =
        run({"sample", "--target", "mixture20", "--sampler", "hmc", "--json", "--quiet", "--chains", "6",
             "--iterations", "20", "--warmup", "20", "--threads", "1", "--init", file});
    return nlohmann::json::parse(result.out, nullptr, false).value("estimates", nlohmann::json());
  };
  const auto wanted = estimates("starts.json");
  EXPECT_TRUE(wanted.is_object());
  EXPECT_EQ(estimates("plain.csv"), wanted);
  EXPECT_EQ(estimates("named.csv"), wanted);
}

TEST_F(Programs, BenchRefusesBeforeItMeasures) {
  put("file", "");
  bench_refuses({"--json", "file/x.json"}, "Not a directory");
  bench_refuses({"--json", "."}, "--json . is a folder");
  bench_refuses({"--chains", "0"}, "--chains: Value 0 not in range 1 to 16777216");
  bench_refuses({"--seconds", "-1"}, "--seconds: Value -1 not in range 0.01 to 3600");
  bench_refuses({"--threads", "0"}, "--threads: Value 0 not in range");
  bench_refuses({"--pseudo-samples", "65"}, "--pseudo-samples: Value 65 not in range 1 to 64");
  bench_refuses({"--precision", "half"}, "--precision: half not in {single,mixed,double}");
  bench_refuses({"--target", "mixture"}, "target mixture has no data");
  bench_refuses({"--target", "mixtrue20"}, "Did you mean mixture20?");
  bench_refuses({"--set", "sampler.step_sise=1"}, "Did you mean step_size?");
}

// Comparisons with other programs stand on it: the same steps, as many as were asked for.
TEST_F(Programs, BenchTakesTheStepsItIsTold) {
  const ProgramResult result = Program(folder_, {"--target",  "gaussian",
                                                 "--sampler", "hmc",
                                                 "--device",  "cpu",
                                                 "--threads", "1",
                                                 "--chains",  "16",
                                                 "--seconds", "0.01",
                                                 "--json",    "out.json",
                                                 "--set",     "target.dim=3",
                                                 "--set",     "sampler.num_leapfrog=7",
                                                 "--set",     "sampler.jitter=false",
                                                 "--set",     "sampler.step_size=0.25",
                                                 "--set",     "sampler.adapt=none"},
                                       "lockstep-bench")
                                   .wait();
  ASSERT_EQ(result.status, 0) << result.err;
  const auto out = nlohmann::json::parse(std::ifstream(folder_ / "out.json"));
  EXPECT_EQ(out["dim"], 3);
  EXPECT_EQ(out["settings"]["num_leapfrog"], 7);
  EXPECT_EQ(out["runs"][0]["steps_per_iteration"], 7);
  EXPECT_GT(out["runs"][0]["gradients_per_cpu_s"], 0);
}

}  // namespace
}  // namespace lockstep::program_test
