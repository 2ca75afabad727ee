// SPDX-License-Identifier: Apache-2.0
#pragma once
// The modes that a search has found so far: which places are modes, and which of them are the same.
#include <vector>

#include "host/modes/mode_descents.hpp"
#include "host/modes/search_result.hpp"

namespace lockstep {

/// Two places are one mode where a Mahalanobis distance of 1 of either holds the other; unless they differ in height by more
/// than a tenth: then both have to (a narrow mode may lie in the midst of a wide one).
class ModeKeeper {
 public:
  /// Keeps what is found in `result`; `points` are what it is looked at with.
  ModeKeeper(const RunContext& context, std::uint32_t unit, PointEngine& points, SearchResult& result);
  /// Takes over what `result` already has.
  void know();

  /// Whether x is a mode or leads to one; a new one is added.
  bool consider(const Eigen::VectorXd& x, double hits);
  /// The mode that was found again where a descent came to rest; -1: none, or something else.
  int found_again(const Eigen::VectorXd& x, double log_density) const;
  /// Counts hits, and looks closer where there is no mode yet, until `most` evaluations of the points. Returns for each
  /// descent the mode, known before, that it found again, or -1.
  std::vector<int> take_in(const DescentEnds& ends, double most);

  bool full() const { return result_.library.size() >= most_; }
  /// Of the modes that hold something; those nobody met by chance (hints) do not count.
  double least_hits() const;
  /// Laplace mass, of the largest.
  double highest() const { return highest_; }
  /// Negligible modes may lie on what is not.
  void raise_specks();
  void drop_negligible();

  template <class Archive>
  void fields(Archive& archive) {
    archive("highest", highest_);
    archive("rejected", rejected_);
  }

 private:
  bool negligible(int k) const;
  bool as_high(int k, double log_density) const;
  bool same(int k, const Mode& mode) const;
  int nearest_since(int known, const Eigen::VectorXd& x) const;
  bool is_rejected(const Eigen::VectorXd& x) const;

  const RunContext& context_;
  const std::uint32_t unit_;
  PointEngine& points_;
  SearchResult& result_;
  const int most_;
  double highest_ = -INFINITY;
  std::vector<Eigen::VectorXd> rejected_;  // places where descents come to rest that are no modes
};

}  // namespace lockstep
