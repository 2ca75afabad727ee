// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a path begins, as an engine holds it.
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// Normal bases, one for each unit or one for all.
struct BaseRows {
  std::vector<double> mean, sd;   // [unit][axis]; empty: no base, the log density is log_norm everywhere
  std::vector<double> precision;  // [unit][lower triangle, by rows], of engines with a dense base
  std::vector<double> log_norm;   // [unit]: log density at the mean
};

/// Writes them into the parameters of every chain.
void write_base(Engine& engine, const BaseRows& base);

}  // namespace lockstep
