// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "host/formats/draws_file.hpp"
#include "host/util/bare_vector.hpp"
#include "targets/engine.hpp"

namespace lockstep {

/// Draws of some chains of a run, in blocks as engines leave them; within a block chain by chain, as files have them.
struct StoredDraws {
  /// Of one launch: x [chain][draw][dim], then of each DrawRow [chain][draw].
  struct Block {
    int draws = 0;
    BareVector<float> numbers;
    template <class Archive>
    void fields(Archive& archive) {
      archive("draws", draws);
      archive("numbers", numbers);
    }
  };
  int dim = 0, draws = 0;   // draws: of each chain
  int skipped = 0;          // older ones that the first block has too
  std::int64_t first = 0;   // the iteration of the first
  std::vector<int> chains;  // of the batch
  std::vector<Block> blocks;
  std::vector<double> weighted_x, log_weight, beta;  // [draw][chain][..], older ones too

  /// Takes the `count` draws of the engine's last launch, which stores those of `chains`. `weighted`: the
  /// states of all pseudo-samples too, as they are now.
  void append(Engine& engine, int count, bool weighted, int threads);
  /// Forgets what is older than the last `most` draws, by whole launches.
  void forget(std::int64_t most);
  /// Only the last draws count, `most` of them or as many as there are.
  void end(std::int64_t most);
  /// Makes one block of all.
  void join();
  /// Only those chains stay.
  void keep_chains(const std::vector<int>& kept);

  /// A part of the draws: x [chain][draw][dim], a statistic [chain][draw], a weighted array [chain][draw][..].
  void read_x(const DrawsPart& part, float* out) const { read(0, dim, part, out); }
  template <class T>
  void read(DrawRow statistic, const DrawsPart& part, T* out) const {
    read(dim + statistic, 1, part, out);
  }
  void read(const std::vector<double>& weighted, const DrawsPart& part, double* out) const;
  /// All of them.
  std::vector<float> x() const;
  std::vector<float> values(DrawRow statistic) const;
  std::vector<double> values(const std::vector<double>& weighted) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("dim", dim);
    archive("count", draws);
    archive("chains", chains);
    archive("blocks", blocks);
    archive("weighted_x", weighted_x);
    archive("log_weight", log_weight);
    archive("beta", beta);
  }

 private:
  DrawsPart all() const { return {0, int(chains.size()), 0, draws}; }
  /// What lies `row` rows of a block behind its start, `width` numbers of each draw.
  template <class T>
  void read(int row, int width, const DrawsPart& part, T* out) const;
  /// Numbers of a draw in one of the weighted arrays.
  std::size_t width(const std::vector<double>& weighted) const {
    return weighted.size() / (std::size_t(skipped + draws) * chains.size());
  }
};

}  // namespace lockstep
