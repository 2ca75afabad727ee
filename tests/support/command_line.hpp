// SPDX-License-Identifier: Apache-2.0
#pragma once
// Command lines as words, read by the program's own parser.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "host/cli/cli.hpp"
#include "host/util/errors.hpp"

namespace lockstep::testing {

using Words = std::vector<std::string>;

inline CommandLine parse(const Words& words) {
  std::vector<const char*> argv = {"lockstep"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

/// `lockstep sample` with all that it needs, and `more`.
inline Words sample(const Words& more) {
  Words words = {"sample", "--target", "t", "--sampler", "s"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline std::string complaint(const Words& words) {
  try {
    parse(words);
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  } catch (const HelpRequest& help) {
    return "help";
  }
  return "nothing was wrong";
}

inline HelpRequest help(const Words& words) {
  try {
    parse(words);
  } catch (const HelpRequest& request) {
    return request;
  }
  ADD_FAILURE() << "no help";
  return {};
}

inline void refuses(const Words& words, const std::string& part) {
  const std::string said = complaint(words);
  EXPECT_NE(said.find(part), std::string::npos) << said << "\nwanted: " << part;
}

/// A file that is removed at the end of the test.
struct TemporaryFile {
  std::filesystem::path path;
  TemporaryFile(const std::string& name, const std::string& text)
      : path(std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "_" + name)) {
    std::ofstream(path) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace lockstep::testing
