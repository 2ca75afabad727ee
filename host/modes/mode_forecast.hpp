// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a descent would end, foretold by one gradient.
#include <vector>

#include "host/engines/point_engine.hpp"
#include "host/modes/mode_library.hpp"

namespace lockstep {

/// Around a mode whose density goes by the Mahalanobis distance alone (a normal, a Student t; any elliptical one), however
/// far from it, the gradient times the mode's covariance points at it. Where that is so, up to an angle whose cosine is over
/// .999 and to less than a standard deviation of the mode, a descent is foretold to end there: at the mode that is missed
/// least. (Along axes much narrower than others a start is thousands of standard deviations away, and nearly every gradient is
/// at a small angle to the way to any mode.) That is believed of a mode once it has come true of ten descents, and as long as
/// it does of nine in ten; one in 128 of what is believed is tried. A start from which the end is foretold so costs one
/// gradient where a descent costs 3 to 30: a mode that hides in the tails of another, to be seen from one start in 10^5, is
/// looked for among as many more.
///
/// In one dimension every gradient points at every mode on that side, and nothing is foretold.
class ModeForecast {
 public:
  /// Of the columns of x, the number of the mode that each leads to, or -1.
  std::vector<int> of(const ModeLibrary& modes, const PointEngine::Rows& x, const PointEngine::Rows& gradient,
                      int threads);
  bool believed(int mode) const;
  /// A descent that was foretold to end at `mode` did, or did not.
  void came(int mode, bool true_);
  /// The modes that stay, by their numbers of before.
  void keep(const std::vector<int>& modes);
  /// Of all the columns asked for, the share whose end was foretold, and would be believed now.
  double share() const;
  double asked() const { return asked_; }

  template <class Archive>
  void fields(Archive& archive) {
    archive("asked", asked_);
    archive("foretold", foretold_);
    archive("right", right_);
    archive("wrong", wrong_);
  }

 private:
  double asked_ = 0;
  std::vector<double> foretold_, right_, wrong_;  // [mode]
};

}  // namespace lockstep
