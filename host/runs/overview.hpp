// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "targets/engine.hpp"

namespace lockstep {

/// x of every chain at every stride-th iteration, and the acceptance there, at most `most` times: what quantiles, R-hat and
/// effective sample sizes of a run are computed from, in memory that does not grow with it. When there would be more,
/// one in three is kept and the stride trebles, so that what is kept depends on the number of iterations alone. Not one in
/// two: a chain that jumps between two modes at every iteration would be seen in one of them.
class Overview {
 public:
  Overview() = default;
  /// Of `chains` chains; most = 0 keeps nothing.
  Overview(int chains, int dim, std::int64_t most);
  /// The draws that a launch of any length can ever store.
  int capacity() const;
  /// Sets what the launch [begin, end) stores. To be called before it, with its final end.
  int place(LaunchSpec& launch);
  /// Takes the `count` draws of the engine's last launch.
  void add(Engine& engine, int count);

  std::int64_t draws() const {
    return dim_ == 0 ? 0 : std::int64_t(x_.size()) / (std::int64_t(chains_) * dim_);
  }
  std::int64_t stride() const { return stride_; }
  const std::vector<float>& x() const { return x_; }                    // [draw][chain][dim]
  const std::vector<float>& acceptance() const { return acceptance_; }  // [draw][chain]
  /// The same of `count` chains from `first` on.
  std::vector<float> of_chains(int first, int count) const;

  template <class Archive>
  void fields(Archive& archive) {
    archive("stride", stride_);
    archive("x", x_);
    archive("acceptance", acceptance_);
  }

 private:
  int chains_ = 0, dim_ = 0;
  std::int64_t most_ = 0, stride_ = 1;
  std::vector<float> x_, acceptance_;
};

}  // namespace lockstep
