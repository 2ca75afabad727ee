// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options.hpp"

namespace lockstep {

struct StudyCommand {
  std::filesystem::path file, out;
  int replicates = 0;                 // 0: the study's
  std::vector<std::string> only;      // labels; empty: all
  bool resume = false, quiet = false;
  int threads = 0;
  std::string device = "auto";
};

/// `lockstep study`: runs every setting, all its replicates at once, and writes results.csv, timings.csv, table.md, the
/// picture and report.html. True: interrupted. Throws UserError before anything runs when a setting cannot.
bool run_study(const StudyCommand& command);

}  // namespace lockstep
