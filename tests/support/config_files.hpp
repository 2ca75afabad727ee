// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fstream>

#include "host/options/config.hpp"
#include "host/util/errors.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep::testing {

/// Options and studies from files, in a folder of the test's own.
class ConfigFiles : public FolderTest {
 protected:
  void SetUp() override {  // not so long a name that messages, which are of one line, would shorten it
    folder_ = std::filesystem::path(::testing::TempDir()) / ("lockstep-config-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  std::filesystem::path put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  RunOptions run_of(const std::string& text) {
    RunOptions run;
    load_run_config(put("run.toml", text), run);
    return run;
  }

  Study study_of(const std::string& text) { return load_study(put("study.toml", text)); }

  template <class Action>
  std::string complaint(Action action) {
    try {
      action();
    } catch (const UserError& error) {
      std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      for (auto at = text.find(folder_.string()); at != std::string::npos; at = text.find(folder_.string()))
        text.erase(at, folder_.string().size() + 1);
      return text;
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }

  void refuses_run(const std::string& text, const std::string& part) {
    const std::string said = complaint([&] { run_of(text); });
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nwanted: " << part;
  }
  void refuses_study(const std::string& text, const std::string& part) {
    const std::string said = complaint([&] { study_of(text); });
    EXPECT_NE(said.find(part), std::string::npos) << said << "\nwanted: " << part;
  }
};

}  // namespace lockstep::testing
