// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <Eigen/Core>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

/// Points of `dim` coordinates, of option `option`: the rows of a .csv, of a .npy, or of x in a .json or .npz; or the places of
/// the modes in modes.json of `lockstep modes`, or in summary.json of a run. UserError unless they are finite.
std::vector<Eigen::VectorXd> read_points(const std::filesystem::path& file, int dim,
                                         const std::string& option);

/// The rows of `x` in the file that `--init` names; none when it names scout or uniform:R. UserError unless
/// they are finite points of `dim` coordinates.
std::vector<Eigen::VectorXd> read_starts(const std::string& init, int dim);

}  // namespace lockstep
