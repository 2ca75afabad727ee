// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace lockstep
