// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "targets/engine.hpp"

namespace lockstep {

/// States that count by weight, as `evidence --draws` stores them: [draw][chain].
struct WeightedDraws {
  int dim = 0, chains = 0, draws = 0;
  std::vector<float> x;                  // [draw][chain][dim]
  std::vector<double> log_weight, beta;  // [draw][chain]; log weight of beta = 1; beta may be empty

  /// The present states of an engine on a path, weighed by p(beta = 1 | x).
  void add(Engine& engine, Control control);
  /// States [row][chain] with their log weights.
  void add(const std::vector<double>& position, const std::vector<double>& log_weight_of);

  template <class Archive>
  void fields(Archive& archive) {
    archive("dim", dim);
    archive("chains", chains);
    archive("draws", draws);
    archive("x", x);
    archive("log_weight", log_weight);
    archive("beta", beta);
  }
};

/// Writes draws.nc: the group `weighted` as they are, and in `posterior` unweighted draws, by systematic
/// resampling within each of `groups` equal groups of chains (a group is one chain there), as many as the
/// smallest effective sample size (sum w)^2 / sum w^2 of a group. Attribute `resampled`. Nothing where the
/// weights of a group all vanish but an empty posterior.
void write_weighted_draws(const std::filesystem::path& path, const WeightedDraws& stored, int groups,
                          const StreamKey& key, std::map<std::string, std::string> attributes);

}  // namespace lockstep
