// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns of numbers in the data of a target.
#include <cmath>

#include "targets/target.hpp"

namespace lockstep {

/// The data entry `name` as a plain list of finite numbers, one for each `unit` ("school"): as many as
/// `like_y`, the first column read; empty for that one itself. Fails with the error of a bad input.
inline std::vector<double> read_column(TargetInput& in, const std::string& name, const std::string& unit,
                                       const std::vector<double>& like_y = {}) {
  const DataArray a = in.array(name);
  if (a.shape.size() != 1 || a.values.empty())
    in.fail(name + " is no plain list (it has one number for each " + unit + "). Write it as [v1, v2, ...]");
  if (!like_y.empty() && a.values.size() != like_y.size())
    in.fail(name + " has " + std::to_string(a.values.size()) + " entries and y has " +
            std::to_string(like_y.size()) + " (each " + unit + " has one of each). Make them equally long");
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (!std::isfinite(a.values[i]))
      in.fail("entry " + std::to_string(i + 1) + " of " + name +
              " is no finite number (a density needs finite numbers). Correct it");
  return a.values;
}

}  // namespace lockstep
