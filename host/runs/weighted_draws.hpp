// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "host/formats/draws_file.hpp"
#include "targets/registry.hpp"

namespace lockstep {

/// States that count by weight, as `evidence --draws` stores them: [draw][chain].
struct WeightedDraws {
  int dim = 0, chains = 0, draws = 0;
  std::vector<float> x;                  // [draw][chain][dim]
  std::vector<double> log_weight, beta;  // [draw][chain]; log weight of beta = 1; beta may be empty
  /// Keep at most so many draws of those that are added, evenly spread: when there are more, every second
  /// goes, and of the next every 2 stride-th alone is taken. 0: all.
  std::int64_t limit = 0, stride = 1, added = 0;

  /// The present states of an engine on a path, weighed by p(beta = 1 | x).
  void add(Engine& engine, Control control);
  /// States [row][chain] with their log weights.
  void add(const std::vector<double>& position, const std::vector<double>& log_weight_of);

  template <class Archive>
  void fields(Archive& archive) {
    archive("dim", dim);
    archive("chains", chains);
    archive("draws", draws);
    archive("stride", stride);
    archive("added", added);
    archive("x", x);
    archive("log_weight", log_weight);
    archive("beta", beta);
  }
};

/// The numbers of states that `evidence` keeps where it is not asked for all.
inline constexpr std::int64_t kWeightedNumbers = std::int64_t(1) << 22;

/// What a file of draws is to hold: at most so many draws, or kAllDraws, and the states behind them; its
/// attributes.
struct WeightedDrawsAsked {
  std::int64_t most = 0;
  bool weighted = false;
  std::map<std::string, DrawsAttribute> attributes = {};
};

/// Writes a file of draws: in `posterior` unweighted draws of `target`, by systematic resampling within each
/// of `groups` equal groups of chains (a group is one chain there), as many as the smallest effective sample
/// size (sum w)^2 / sum w^2 of a group; where asked, the states as they are in the group `weighted`. Attribute
/// `resampled`. Nothing where the weights of a group all vanish but an empty posterior.
void write_weighted_draws(const std::filesystem::path& path, const WeightedDraws& stored,
                          const TargetInstance& target, int groups, const StreamKey& key,
                          WeightedDrawsAsked asked);

}  // namespace lockstep
