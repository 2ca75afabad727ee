// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/options/config.hpp"

namespace lockstep {

/// Refuses, with file and line, whatever plot/ could not use in a study's [plot] table: pictures come
/// last, and a mistake there must not cost the run. `labels`: those of the study's settings. (Names of
/// quantities are the targets' and are checked with them.)
void check_plot(const Settings& plot, const TomlFile& file, const std::vector<std::string>& labels);

/// Whether a picture that [plot] asks for, by `kind` or `panels`, shows stored draws.
bool wants_draws(const Settings& plot);

}  // namespace lockstep
