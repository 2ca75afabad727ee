// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// Draws of some chains of a run. They are collected as engines leave them, and arranged once, at the end: a
/// number is moved twice, not once for every launch.
struct StoredDraws {
  /// Of one launch, as Engine::draws() has them.
  struct Block {
    int draws = 0;
    std::vector<float> numbers;
    template <class Archive>
    void fields(Archive& archive) {
      archive("draws", draws);
      archive("numbers", numbers);
    }
  };
  int draws = 0;            // of each chain
  std::int64_t first = 0;   // the iteration of the first
  std::vector<int> chains;  // of the batch
  // Once arranged, [chain][draw][..].
  std::vector<float> x, log_density, acceptance, steps, diverging, energy;
  std::vector<double> weighted_x, log_weight, beta;  // until then [draw][chain][..]
  std::vector<Block> blocks;                         // until then

  /// Takes the `count` draws of the engine's last launch, which stores those of `chains`. `weighted`: the
  /// states of all pseudo-samples too, as they are now.
  void append(Engine& engine, int count, bool weighted);
  /// Forgets what is older than the last `most` draws, by whole launches.
  void forget(std::int64_t most);
  /// The last draws, `most` of them or as many as there are, in their final order.
  void arrange(int dim, std::int64_t most, int threads);
  /// Of what is arranged, only those chains stay.
  void keep_chains(const std::vector<int>& kept);

  template <class Archive>
  void fields(Archive& archive) {
    archive("count", draws);
    archive("chains", chains);
    archive("blocks", blocks);
    archive("x", x);
    archive("log_density", log_density);
    archive("acceptance", acceptance);
    archive("steps", steps);
    archive("diverging", diverging);
    archive("energy", energy);
    archive("weighted_x", weighted_x);
    archive("log_weight", log_weight);
    archive("beta", beta);
  }

 private:
  /// f(array) of everything that there is one of for each draw.
  template <class F>
  void arrays(F f) {
    for (auto* v : {&x, &log_density, &acceptance, &steps, &diverging, &energy}) f(*v);
    for (auto* v : {&weighted_x, &log_weight, &beta}) f(*v);
  }
};

}  // namespace lockstep
