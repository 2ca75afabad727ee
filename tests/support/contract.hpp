// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fixture of the suites that run over every registered target.
#include <gtest/gtest.h>

#include "tests/support/all_targets.hpp"
#include "tests/support/points.hpp"

namespace lockstep::testing {

class ContractTest : public ::testing::TestWithParam<SubjectCase> {
 protected:
  void SetUp() override { subject_ = GetParam().make(); }
  const Subject& s() const { return *subject_; }
  const Truth& truth() const { return subject_->target->truth(); }
  /// Typical points, points near the centre and points far away, but for those where most digits are lost.
  std::vector<Point> points() const {
    auto all = typical_points(s(), 200, 11);
    for (double factor : {0.05, 5.0, 50.0})
      for (const Point& x : scaled_points(s(), 40, factor, 12)) all.push_back(x);
    std::erase_if(all, [&](const Point& x) { return !(s().lost(x) < 1e4); });
    return all;
  }

 private:
  std::unique_ptr<Subject> subject_;
};

/// Name of a case in the list of tests.
inline constexpr auto kLabel = [](const auto& info) { return info.param.label; };

}  // namespace lockstep::testing
