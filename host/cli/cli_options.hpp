// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "host/options/options.hpp"

#ifndef LOCKSTEP_VERSION  // set by the build
#define LOCKSTEP_VERSION "unknown"
#endif

namespace lockstep {

enum class OptionKind { text, number, toggle, repeated, optional };  // optional: a toggle, or with a value

/// One option of a command, as the help shows it.
struct OptionSpec {
  const char* flag;   ///< "--chains"; its key in files and in RunOptions is "chains"
  const char* value;  ///< what stands for its value: "N"
  OptionKind kind;
  const char* group;  ///< heading in the help
  std::string text;
  bool show_default = false;  ///< append the default of RunOptions
};

/// What the help of one command says around its options.
struct CommandText {
  const char* name;
  const char* word;  ///< its positional argument, or ""
  const char* word_help;
  const char* description;
  const char* footer;
};

/// sample and evidence take the same options (but for the name of the sampler), check those that concern the
/// target.
std::vector<OptionSpec> run_option_specs(const std::string& command);
std::vector<OptionSpec> study_option_specs();
/// Those of any command.
std::vector<OptionSpec> option_specs(const std::string& command);

const std::vector<CommandText>& command_texts();
/// The program as a whole.
const CommandText& program_text();

/// Rules that involve more than one option. Throw UserError.
void refuse_both(bool resume, bool force);
void check_together(const RunOptions& run);

}  // namespace lockstep
