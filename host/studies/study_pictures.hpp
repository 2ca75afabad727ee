// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "host/options/options.hpp"
#include "host/options/sampler_config.hpp"
#include "host/studies/study_args.hpp"

namespace lockstep {

/// The part of a file's name that stands for a label, another one for every label: blanks are underscores,
/// what a name had better not hold is a percent sign and two hexadecimal digits. plot/read.py does the
/// same.
std::string file_key(const std::string& label);

struct StudyTarget {
  const StudySetting* setting;
  const TargetInstance* target;
  const SamplerConfig* config;
};

/// What the study's [plot] table asks for: density grids of one- and two-dimensional targets, the first draws
/// of replicate 0 of each setting shown, and the pictures themselves, drawn by plot/ (Python). Returns
/// the pictures made; where Python or matplotlib is missing it says so and returns none.
std::vector<std::filesystem::path> draw_study(const Study& study, const std::vector<StudyTarget>& targets,
                                              const StudyArgs& command);

}  // namespace lockstep
