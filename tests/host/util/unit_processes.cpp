// SPDX-License-Identifier: Apache-2.0
// Evidence image by image as several processes under mpirun: the same files as by one.
#include "host/util/processes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/decoder.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Args = std::vector<std::string>;
using Json = nlohmann::ordered_json;
using testing::contents;
using testing::Program;
using testing::ProgramResult;

Args operator+(Args a, const Args& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The first mpirun on PATH; empty: there is none.
std::string find_mpirun() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::exists(fs::path(folder) / "mpirun")) return (fs::path(folder) / "mpirun").string();
  return "";
}

std::string npy(const DataArray& a) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (int n : a.shape) header += std::to_string(n) + ", ";
  header += "), }\n";
  const char* bytes = reinterpret_cast<const char*>(a.values.data());
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header +
         std::string(bytes, a.values.size() * sizeof(double));
}

/// Lines by which the program, not mpirun, says something.
int own_lines(const std::string& text) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.rfind("lockstep: ", 0) == 0;
  return count;
}

class Launched : public testing::ProgramTest {
 protected:
  /// As process `rank` of `size`, so far as the environment says.
  ProgramResult pretend(int rank, int size, const Args& args) {
    return Program(folder_,
                   Args{"OMPI_COMM_WORLD_RANK=" + std::to_string(rank),
                        "OMPI_COMM_WORLD_SIZE=" + std::to_string(size), kProgram} +
                       args,
                   "/usr/bin/env")
        .wait();
  }
  const std::string kProgram = LOCKSTEP_BINARY_DIR "/lockstep";
};

class SharedRuns : public Launched {
 protected:
  void SetUp() override {
    mpirun_ = find_mpirun();
    if (!Processes::built_in() || mpirun_.empty())
      GTEST_SKIP() << "no MPI in this build, or no mpirun on PATH: runs by several processes are not tested";
    Launched::SetUp();
    fs::create_directory(folder_ / "w");
    for (const auto& [name, array] : testing::random_decoder({3, 7, 5, 16}))
      put("w/" + name + ".npy", npy(array));
  }

  /// Two images a batch and thread.
  Args evidence(const std::string& out, int images, int temperatures) const {
    return {"evidence",  "--target",
            "decoder",   "--quiet",
            "--threads", "1",
            "--seed",    "3",
            "--out",     out,
            "--set",     "target.weights=w",
            "--set",     "target.images=simulate:" + std::to_string(images),
            "--set",     "sampler.runs=96",
            "--set",     "sampler.temperatures=" + std::to_string(temperatures)};
  }
  /// Open MPI refuses root, and more processes than cores, unless told; others do not read this. What a
  /// library holds until its end is no leak of ours.
  Args under_mpirun(const Args& words) const {
    return Args{"OMPI_ALLOW_RUN_AS_ROOT=1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                "OMPI_MCA_rmaps_base_oversubscribe=1",
                "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
                "ASAN_OPTIONS=detect_leaks=0",
                mpirun_} +
           words;
  }
  ProgramResult share(int processes, const Args& args) {
    return Program(folder_, under_mpirun(Args{"-n", std::to_string(processes), kProgram} + args),
                   "/usr/bin/env")
        .wait();
  }

  /// The summary without what depends on the clock and on the processors.
  std::string numbers(const std::string& out) {
    Json s = Json::parse(contents(folder_ / out / "summary.json"), nullptr, false);
    if (!s.is_object()) return out + " has no summary.json";
    s.erase("threads");
    for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) s["cost"].erase(key);
    return s.dump(1);
  }
  void expect_same_files(const std::string& one, const std::string& other) {
    EXPECT_EQ(numbers(one), numbers(other)) << other;
    for (const char* file : {"items.csv", "images.npy"}) {
      const std::string wanted = contents(folder_ / one / file);
      EXPECT_FALSE(wanted.empty()) << file;
      EXPECT_TRUE(wanted == contents(folder_ / other / file)) << other << "/" << file;
    }
    EXPECT_FALSE(fs::exists(folder_ / other / "checkpoint"));
  }

  std::string mpirun_;
};

TEST_F(Launched, OtherCommandsRunAsOneProcess) {
  for (const Args& args : {Args{"targets"}, Args{"sample", "--target", "gaussian", "--sampler", "hmc"}}) {
    const ProgramResult first = pretend(0, 2, args), second = pretend(1, 2, args);
    EXPECT_EQ(first.status, 2);
    EXPECT_EQ(second.status, 2);
    EXPECT_NE(first.err.find("lockstep " + args[0] + " runs as one"), std::string::npos) << first.err;
    EXPECT_EQ(first.err.find('\n'), first.err.size() - 1) << first.err;
    EXPECT_EQ(first.out + second.out + second.err, "");
  }
  EXPECT_EQ(pretend(0, 1, {"targets"}).status, 0);
  const ProgramResult first = pretend(0, 2, {"--help"}), second = pretend(1, 2, {"--help"});
  EXPECT_NE(first.out, "");
  EXPECT_EQ(second.out, "");
  if (Processes::built_in()) return;
  const ProgramResult evidence = pretend(0, 2, {"evidence", "--target", "decoder"});
  EXPECT_EQ(evidence.status, 2);
  EXPECT_NE(evidence.err.find("this build has no MPI"), std::string::npos) << evidence.err;
}

TEST_F(SharedRuns, WriteTheFilesOfOneProcess) {
  for (const char* method : {"bdmc", "st"}) {
    const auto args = [&](const std::string& out) {
      return evidence(method + out, 12, 30) + Args{"--method", method};
    };
    const ProgramResult one = run(args("1"));
    for (int processes : {2, 5}) {  // five: nothing is left for some in the second round
      const std::string out = std::to_string(processes);
      const ProgramResult shared = share(processes, args(out));
      EXPECT_EQ(shared.status, one.status) << shared.err;
      const Json summary = Json::parse(contents(folder_ / (method + out) / "summary.json"), nullptr, false);
      EXPECT_EQ(summary.value("threads", 0), processes);  // each has one
      EXPECT_EQ(shared.out.substr(0, shared.out.find(" gradients in")),
                one.out.substr(0, one.out.find(" gradients in")));
      expect_same_files(method + std::string("1"), method + out);
    }
  }
}

TEST_F(SharedRuns, SayOnceWhatIsWrong) {
  const Args right = evidence("out", 12, 30);
  Args wrong = right;
  *std::find(wrong.begin(), wrong.end(), "target.weights=w") = "target.weights=absent";
  const ProgramResult all = share(2, wrong);
  EXPECT_EQ(all.status, 2);
  EXPECT_EQ(own_lines(all.err), 1) << all.err;
  EXPECT_NE(all.err.find("lockstep: the data absent were not found"), std::string::npos) << all.err;

  const ProgramResult second =
      Program(folder_,
              under_mpirun(Args{"-n", "1", kProgram} + right + Args{":", "-n", "1", kProgram} + wrong),
              "/usr/bin/env")
          .wait();
  EXPECT_EQ(second.status, 2);
  EXPECT_EQ(own_lines(second.err), 1) << second.err;
  EXPECT_NE(second.err.find("lockstep: process 1: the data absent were not found"), std::string::npos)
      << second.err;

  const ProgramResult density = share(2, {"evidence", "--target", "gaussian"});
  EXPECT_EQ(density.status, 2);
  EXPECT_EQ(own_lines(density.err), 1) << density.err;
  EXPECT_NE(density.err.find("is one density"), std::string::npos) << density.err;
}

TEST_F(SharedRuns, StopAndGoOnAsAnyNumber) {
  constexpr int kImages = 60, kTemperatures = 400;
  run(evidence("whole", kImages, kTemperatures));
  const std::string all = contents(folder_ / "whole/items.csv");
  // One of two processes is told to stop; each leaves its number as it starts.
  for (const int processes : {2, 1}) {
    const std::string out = "by" + std::to_string(processes);
    const Args words = evidence(out, kImages, kTemperatures) + Args{"--checkpoint", "0.001"};
    const Args start =
        Args{"/bin/sh", "-c", "echo $$ > pid${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-1}}; exec \"$@\"", "sh",
             kProgram} +
        words;
    Program program(folder_, processes == 1 ? start : under_mpirun(Args{"-n", "2"} + start), "/usr/bin/env");
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / out / "checkpoint"); }));
    kill(std::stoi(contents(folder_ / "pid1")), SIGINT);
    const ProgramResult stopped = program.wait();
    EXPECT_EQ(stopped.status, 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume goes on"), std::string::npos) << stopped.err;
    const std::string some = contents(folder_ / out / "items.csv");
    EXPECT_TRUE(!some.empty() && some.size() < all.size() && all.rfind(some, 0) == 0) << some;

    const Args go_on = {"evidence", "--out", out, "--resume"};
    const ProgramResult rest = processes == 1 ? share(3, go_on) : run(go_on);
    EXPECT_NE(rest.out.find("verdict"), std::string::npos) << rest.err;
    expect_same_files("whole", out);
  }
}

}  // namespace
}  // namespace lockstep
