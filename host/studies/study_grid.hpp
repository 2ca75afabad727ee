// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "host/options/config.hpp"

namespace lockstep {

/// The settings that one [[setting]] stands for: every combination of the entries of those of data, method
/// (or sampler), gradients, chains and those in target_settings that are arrays, data the slowest and the last the
/// fastest; itself where none is. In the label {data} becomes the last component of the path without extension, {method} or
/// {sampler} the name, {gradients} a number such as 1e6, {chains} a number, {split} the value of a setting
/// `split` of the target. plot/grid.py does the same.
/// Throws UserError where an array is empty or has no placeholder: two settings would have one label.
std::vector<GivenOptions> combinations(const GivenOptions& setting);

}  // namespace lockstep
