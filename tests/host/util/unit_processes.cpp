// SPDX-License-Identifier: Apache-2.0
// Evidence image by image as several processes under mpirun: the same files as by one.
#include "host/util/processes.hpp"

#include <gtest/gtest.h>

#include "tests/support/decoder.hpp"
#include "tests/support/shared_run.hpp"

namespace lockstep::processes_test {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using Json = nlohmann::ordered_json;

std::string npy(const DataArray& a) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (int n : a.shape) header += std::to_string(n) + ", ";
  header += "), }\n";
  const char* bytes = reinterpret_cast<const char*>(a.values.data());
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header +
         std::string(bytes, a.values.size() * sizeof(double));
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

class SharedItems : public SharedRun {
 protected:
  void SetUp() override {
    SharedRun::SetUp();
    if (IsSkipped()) return;
    fs::create_directory(folder_ / "w");
    for (const auto& [name, array] : random_decoder({3, 7, 5, 16})) put("w/" + name + ".npy", npy(array));
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
};
const Args kFiles = {"items.csv", "images.npy"};

// Of several processes the first lists targets; help is said once.
TEST_F(Launched, OtherCommandsAreTheFirstOnes) {
  for (const Args& args : {Args{"targets"}, Args{"--help"}, Args{"check", "--target", "gaussian"}}) {
    const ProgramResult first = pretend(0, 2, args), second = pretend(1, 2, args);
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(second.status, 0) << second.err;
    EXPECT_NE(first.out, "");
    EXPECT_EQ(second.out + second.err, "");
  }
  if (Processes::built_in()) return;
  for (const char* command : {"sample", "evidence"}) {
    const ProgramResult run = pretend(0, 2, {command, "--target", "gaussian"});
    EXPECT_EQ(run.status, 2);
    EXPECT_NE(run.err.find("this build has no MPI"), std::string::npos) << run.err;
  }
}

TEST_F(SharedItems, WriteTheFilesOfOneProcess) {
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
      EXPECT_EQ(shared.out.substr(0, shared.out.find(" gradients, ")),
                one.out.substr(0, one.out.find(" gradients, ")));
      expect_same_files(method + std::string("1"), method + out, kFiles);
    }
  }
}

TEST_F(SharedItems, SayOnceWhatIsWrong) {
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
}

TEST_F(SharedItems, StopAndGoOnAsAnyNumber) {
  constexpr int kImages = 60, kTemperatures = 400;
  run(evidence("whole", kImages, kTemperatures));
  const std::string all = contents(folder_ / "whole/items.csv");
  // One of two processes is told to stop; each leaves its number as it starts.
  for (const int processes : {2, 1}) {
    const std::string out = "by" + std::to_string(processes);
    const Args words = evidence(out, kImages, kTemperatures) + Args{"--checkpoint", "0.001"};
    Program program(folder_, as_processes(processes, words), "/usr/bin/env");
    ASSERT_TRUE(program.wait_for([&] { return fs::exists(folder_ / out / "checkpoint"); }));
    kill(std::stoi(contents(folder_ / ("pid" + std::to_string(processes - 1)))), SIGINT);
    const ProgramResult stopped = program.wait();
    EXPECT_EQ(stopped.status, 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume goes on"), std::string::npos) << stopped.err;
    const std::string some = contents(folder_ / out / "items.csv");
    EXPECT_TRUE(!some.empty() && some.size() < all.size() && all.rfind(some, 0) == 0) << some;

    const Args go_on = {"evidence", "--out", out, "--resume"};
    const ProgramResult rest = processes == 1 ? share(3, go_on) : run(go_on);
    EXPECT_NE(rest.out.find("verdict"), std::string::npos) << rest.err;
    expect_same_files("whole", out, kFiles);
    const Json cost = Json::parse(contents(folder_ / out / "summary.json"))["cost"];
    EXPECT_GE(double(cost["wall_s"]), double(cost["sampling_s"])) << "of all that ran";
  }
}

}  // namespace
}  // namespace lockstep::processes_test
