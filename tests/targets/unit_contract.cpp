// SPDX-License-Identifier: Apache-2.0
// What every registered target owes its samplers: a description, a right gradient, and a truth, which
// statistical_truth.cpp confirms. (What its engines owe: unit_contract_engines.cpp.)
#include <gtest/gtest.h>

#include <set>

#include "tests/support/contract.hpp"

namespace lockstep::testing {
namespace {

class TargetContract : public ContractTest {};

TEST(AllTargets, EveryRegisteredTargetIsListedOnceOrMore) {
  std::set<std::string> listed, registered;
  for (const SubjectCase& c : all_targets()) listed.insert(c.name);
  for (const TargetEntry& e : target_registry())
    EXPECT_TRUE(registered.insert(e.info().name).second) << e.info().name << " is registered twice";
  EXPECT_EQ(listed, registered) << "give a target that needs data some in tests/support/all_targets.hpp";
}

/// Of others no switches are counted.
TEST(AllTargets, SomeSayWhichModeAPlaceBelongsTo) {
  std::set<std::string> name_modes;
  for (const SubjectCase& c : all_targets())
    if (c.make()->target->names_modes()) name_modes.insert(c.name);
  EXPECT_EQ(name_modes, std::set<std::string>({"bimodal", "bimodal_ct", "mixture", "mixture20", "scattered",
                                               "two_modes", "welling_teh"}));
}

TEST_P(TargetContract, DescribesItself) {
  const TargetInfo info = find_target(GetParam().name)->info();
  EXPECT_EQ(info.name, GetParam().name);
  for (const std::string* text : {&info.name, &info.summary, &info.formula, &info.truth}) {
    EXPECT_FALSE(text->empty());
    EXPECT_EQ(text->find('\n'), std::string::npos);
  }
  std::set<std::string> described;
  for (const auto& [key, meaning] : info.settings) {
    described.insert(key);
    EXPECT_NE(meaning.find("default"), std::string::npos) << key << ": " << meaning;
  }
  EXPECT_EQ(described, s().input.asked) << "settings described, and settings read";
  EXPECT_EQ(info.data.empty(), s().input.arrays.empty());
  EXPECT_GE(s().dim(), 1);
  EXPECT_EQ(truth().mean.size(), std::size_t(s().dim()));
  EXPECT_EQ(truth().covariance.size(), std::size_t(s().dim() * s().dim()));
  EXPECT_EQ(s().target->quantities().size(), s().quantities(Point(s().dim(), 0.5)).size());
  EXPECT_EQ(s().target->names().size(), std::size_t(s().dim()));
  std::set<std::string> names(s().target->names().begin(), s().target->names().end());
  names.insert(s().target->quantities().begin(), s().target->quantities().end());
  names.erase("");
  EXPECT_EQ(names.size(), s().target->names().size() + s().target->quantities().size());  // all different
  EXPECT_TRUE(truth().quantities.empty() || truth().quantities.size() == s().target->quantities().size());
}

TEST_P(TargetContract, GradientEqualsFiniteDifferences) {
  for (const Point& x : points()) {
    Point g;
    s().log_density(x, &g);
    double largest = 0;
    for (double v : g) largest = std::max(largest, std::abs(v));
    for (int i = 0; i < s().dim(); ++i) {
      const Difference d = central_difference(s(), x, g, i);
      ASSERT_LE(std::abs(g[i] - d.value), d.error)
          << "coordinate " << i << ", x = " << ::testing::PrintToString(x);
      ASSERT_LT(d.error, 1e-5 * (1 + largest))
          << "the difference is too coarse to say anything at x = " << ::testing::PrintToString(x);
    }
  }
}

TEST_P(TargetContract, GradientEqualsDualNumbers) {
  for (const Point& x : points()) {
    Point g;
    const double f = s().log_density(x, &g);
    const Point d = s().dual_gradient(x), condition = gradient_condition(s(), x);
    ASSERT_NEAR(f, s().value(x), 8e-16 * s().lost(x) * value_condition(f, g, x));
    for (int i = 0; i < s().dim(); ++i)
      ASSERT_NEAR(g[i], d[i], 16 * 2.2e-16 * s().lost(x) * condition[i])
          << "coordinate " << i << ", x = " << ::testing::PrintToString(x);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TargetContract, ::testing::ValuesIn(all_targets()), kLabel);

}  // namespace
}  // namespace lockstep::testing
