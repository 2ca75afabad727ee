// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "host/options.hpp"

namespace lockstep {

/// What `lockstep study` was asked to do.
struct StudyArgs {
  std::filesystem::path file, out;
  std::filesystem::path data_dir;  // empty: $LOCKSTEP_DATA
  std::optional<int> replicates;   // none: the study's
  std::vector<std::string> only;   // labels; empty: all
  bool resume = false;
  bool force = false;
  bool quiet = false;
  int threads = 0;              // 0: all
  std::string device = "auto";  // auto | cpu | cuda
};

/// A checked command line. Which part counts depends on `command`: targets, samplers (name), devices
/// (measure), sample, evidence, check (run), study (study).
struct CommandLine {
  std::string command;
  RunOptions run;
  StudyArgs study;
  std::string name;  // the optional NAME of targets, samplers and check
  bool measure = false;
};

/// Thrown instead of a UserError when there is only a text to show: --help and --version (status 0, standard
/// output), or no command at all (status 2, standard error).
struct HelpRequest {
  std::string text;
  int exit_status = 0;
};

/// Reads the command line, and the file of `--config` below it. Everything that needs no registry is checked
/// here: throws UserError with one line, or HelpRequest.
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace lockstep
