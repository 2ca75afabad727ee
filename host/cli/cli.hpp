// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "host/options/options.hpp"
#include "host/studies/study.hpp"

namespace lockstep {

/// A checked command line. Which part counts depends on `command`: targets, samplers (name), devices
/// (measure), sample, evidence, check, modes (run), study (study).
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
