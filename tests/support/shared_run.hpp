// SPDX-License-Identifier: Apache-2.0
#pragma once
// The program as several processes under mpirun, and what one process writes beside it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "host/util/processes.hpp"
#include "tests/support/run_program.hpp"

namespace lockstep::testing {

using Args = std::vector<std::string>;
inline Args operator+(Args a, const Args& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The first mpirun on PATH; empty: there is none.
inline std::string find_mpirun() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (std::filesystem::exists(std::filesystem::path(folder) / "mpirun"))
      return (std::filesystem::path(folder) / "mpirun").string();
  return "";
}

/// Lines by which the program, not mpirun, says something.
inline int own_lines(const std::string& text) {
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += line.rfind("lockstep: ", 0) == 0;
  return count;
}

/// Skipped where there is no MPI.
class SharedRun : public ProgramTest {
 protected:
  void SetUp() override {
    mpirun_ = find_mpirun();
    if (!Processes::built_in() || mpirun_.empty())
      GTEST_SKIP() << "no MPI in this build, or no mpirun on PATH: runs by several processes are not tested";
    ProgramTest::SetUp();
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
  /// The program's words as `processes` processes, each of which leaves its number in a file pid<rank>.
  Args as_processes(int processes, const Args& args) const {
    const char* leave = "echo $$ > pid${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; exec \"$@\"";
    return under_mpirun(Args{"-n", std::to_string(processes), "/bin/sh", "-c", leave, "sh", kProgram} + args);
  }
  ProgramResult share(int processes, const Args& args) {
    return Program(folder_, as_processes(processes, args), "/usr/bin/env").wait();
  }

  /// The summary without what depends on the clock and on the processors.
  std::string numbers(const std::string& out) {
    auto s = nlohmann::ordered_json::parse(contents(folder_ / out / "summary.json"), nullptr, false);
    if (!s.is_object()) return out + " has no summary.json";
    s.erase("threads");
    for (const char* key : {"wall_s", "sampling_s", "gradients_per_s"}) s["cost"].erase(key);
    return s.dump(1);
  }
  /// Summaries, other files by their bytes, and nothing that is left of a run that is over.
  void expect_same_files(const std::string& one, const std::string& other, const Args& files) {
    if (std::filesystem::exists(folder_ / one / "summary.json")) {
      EXPECT_EQ(numbers(one), numbers(other)) << other;
    }
    for (const std::string& file : files) {
      const std::string wanted = contents(folder_ / one / file);
      EXPECT_FALSE(wanted.empty()) << file;
      EXPECT_TRUE(wanted == contents(folder_ / other / file)) << other << "/" << file;
    }
    EXPECT_FALSE(std::filesystem::exists(folder_ / other / "checkpoint"));
  }

  std::string mpirun_;
  const std::string kProgram = LOCKSTEP_BINARY_DIR "/lockstep";
};

}  // namespace lockstep::testing
