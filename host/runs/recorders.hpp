// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recorders that many runs have.
#include "host/estimators/pack_sums.hpp"
#include "host/estimators/weighted_moments.hpp"
#include "host/runs/run.hpp"
#include "host/runs/weighted_draws.hpp"

namespace lockstep {

/// The statistics, summed over all chains, of recorded iterations and others; and so many counters of a transition.
class StatSums {
 public:
  explicit StatSums(std::size_t counters = 0) : sums_(kStatRows + counters, 0.0) {}
  void record(Launched& launched) {
    const auto& s = launched.stats();
    const std::size_t n = launched.chains();
    for (std::size_t r = 0; r < sums_.size(); ++r) sums_[r] += sum_of({s.data() + r * n, n});
  }
  double operator[](StatRow row) const { return sums_[row]; }
  double counter(std::size_t k) const { return sums_[kStatRows + k]; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  std::vector<double> sums_;
};

/// Moments of recorded iterations, by equal groups of chains.
class GroupMoments {
 public:
  GroupMoments(int groups, const MomentLayout& layout)
      : layout_(layout), sums_(groups, std::vector<double>(layout.rows(), 0.0)) {}
  void record(Launched& launched) {
    if (!launched.spec.record) return;
    const auto& m = launched.moments();
    const std::size_t n = launched.chains(), per = n / sums_.size();
    for (std::size_t r = 0; r < sums_[0].size(); ++r)
      for (std::size_t g = 0; g < sums_.size(); ++g) sums_[g][r] += sum_of({m.data() + r * n + g * per, per});
  }
  WeightedMoments value() const { return weighted_moments(layout_, sums_); }
  double total() const {
    double sum = 0;
    for (const auto& s : sums_) sum += s[MomentLayout::count];
    return sum;
  }
  std::vector<double> weights() const {  // [group]
    std::vector<double> of;
    for (const auto& s : sums_) of.push_back(s[MomentLayout::count]);
    return of;
  }

  template <class Archive>
  void fields(Archive& archive) {
    archive("sums", sums_);
  }

 private:
  MomentLayout layout_;
  std::vector<std::vector<double>> sums_;  // [group][row]
};

/// The states in which recorded launches end, by weight; `wanted` false: none.
struct StateRecorder {
  WeightedDraws& draws;
  Control control;
  void record(Launched& launched) {
    if (launched.spec.record) draws.add(launched.engine, control);
  }
  template <class Archive>
  void fields(Archive& archive) {
    archive("draws", draws);
  }
};

}  // namespace lockstep
