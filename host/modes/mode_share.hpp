// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <vector>

namespace lockstep {

/// A mode: which part of the draws, by weight, is at home there, its Monte Carlo standard error, and what it should be
/// (unknown: NaN).
struct ModeShare {
  std::vector<double> place;
  double share = NAN, se = NAN, expected = NAN, hits = NAN;

  template <class Archive>
  void fields(Archive& archive) {
    archive("place", place);
    archive("share", share);
    archive("share_se", se);
    archive("expected", expected);
    archive.whole("hits", hits);
  }
};

}  // namespace lockstep
