// SPDX-License-Identifier: Apache-2.0
#include "targets/banana.hpp"

#include <gtest/gtest.h>

#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

double log_normal(double x, double mean, double variance) {
  return -0.5 * std::log(2 * kPi * variance) - 0.5 * (x - mean) * (x - mean) / variance;
}

TEST(Banana, IsTheProductOfItsConditionals) {
  MemoryInput in;
  in.numbers = {{"b", -0.3}, {"nu", 7}};
  const SubjectOf<BananaTarget> s(in);
  for (const auto& [x1, x2] : {std::pair{0.0, 0.0}, {3.0, -1.0}, {-8.0, -17.0}, {2.5, 40.0}})
    EXPECT_NEAR(s.value({x1, x2}), log_normal(x1, 0, 7) + log_normal(x2, -0.3 * (x1 * x1 - 7), 1),
                1e-12 * (1 + std::abs(s.value({x1, x2}))));
}

TEST(Banana, HasThePublishedMoments) {
  const SubjectOf<BananaTarget> s({});
  EXPECT_EQ(s.target->truth().mean, (std::vector<double>{0, 0}));
  EXPECT_NEAR(s.target->truth().covariance[0], 100, 1e-12);
  EXPECT_NEAR(s.target->truth().covariance[3], 201, 1e-12);
  EXPECT_EQ(s.target->truth().covariance[1], 0);
}

TEST(Banana, RefusesSettingsOutOfRange) {
  for (const auto& [key, value] : {std::pair{"nu", 0.0}, {"nu", -1.0}, {"b", 11.0}}) {
    MemoryInput in;
    in.numbers[key] = value;
    EXPECT_THROW(BananaTarget::build(in), UserError) << key << " = " << value;
  }
}

}  // namespace
}  // namespace lockstep::testing
