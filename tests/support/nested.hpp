// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixtures whose components lie within each other.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::testing {

/// Normals about the origin.
inline std::string nested(int d, const std::vector<double>& sds, const std::vector<double>& weights) {
  const std::vector<std::vector<double>> means(sds.size(), std::vector<double>(d, 0.0));
  return nlohmann::json{{"means", means}, {"sds", sds}, {"weights", weights}}.dump();
}

/// In six dimensions: two spikes of sd .05 (a tenth each) within bumps of sd 1 (.2 and .3), on a normal of sd 20 (.3).
/// A search meets both in one of two runs; `x`, for --init, names their places.
inline std::string spikes_in_bumps() {
  const std::vector<double> origin(6, 0.0), one = {5.5, 2.2, -0.6, -23, 4.3, -21},
                                            other = {9, 6, 8, 8, 3, -5};
  return nlohmann::json{{"x", {one, other}},
                        {"means", {origin, one, other, one, other}},
                        {"sds", {20, 0.05, 0.05, 1, 1}},
                        {"weights", {0.3, 0.1, 0.1, 0.2, 0.3}}}
      .dump();
}

}  // namespace lockstep::testing
