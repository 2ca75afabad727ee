// SPDX-License-Identifier: Apache-2.0
// Points that a user gives, and what becomes of them.
#include "host/runs/given_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/util/errors.hpp"
#include "host/util/files.hpp"
#include "targets/mixture.hpp"
#include "tests/support/run_python.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Three modes in the plane, the third of this weight.
struct GivenPoints : testing::FolderTest {
  static testing::MemoryInput three(double third) {
    testing::MemoryInput in;
    in.arrays["means"] = {{0, 0, 40, 40, -20, 10}, {3, 2}};
    in.arrays["weights"] = {{0.5, 0.5 - third, third}, {3}};
    in.arrays["sds"] = {{1, 1, 1}, {3}};
    return in;
  }
  std::string put(const std::string& rows) {
    const std::string file = (folder_ / "points.csv").string();
    write_atomically(file, rows);
    return file;
  }
  std::string refusal(const std::string& rows) {
    try {
      usable_starts(put(rows), c.target);
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  }
  testing::SearchCase<MixtureTarget> c{three(0.2)};
};

TEST_F(GivenPoints, FromWhichNoChainMovesAreRefused) {
  EXPECT_EQ(usable_starts("scout", c.target).size(), 0u);
  EXPECT_THAT(refusal("0,0\n1e30,1e30\n"), HasSubstr("row 2 of --init"));
  EXPECT_EQ(refusal("0,0\n40,40\n1e4,0\n"), "");
}

TEST_F(GivenPoints, AreNamedWhereTheyAreNoHintOrTheSame) {
  SearchResult found;
  found.library = ModeLibrary(2);
  Mode mode;
  mode.place = {0, 0};
  mode.factor = {1, 0, 0, 1};
  mode.log_density = 0;
  found.library.add(mode);
  found.stopped = kSearchHits;
  const auto rows = put("0,0\n40,40\n1e4,0\n");
  EXPECT_THAT(judge_given(c.target, "scout", "", found), IsEmpty());
  EXPECT_THAT(judge_given(c.target, rows, "", found), ElementsAre(HasSubstr("row 3 of --init lies far out")));
  EXPECT_THAT(judge_given(c.target, "scout", rows, found),
              ElementsAre(HasSubstr("3 places of --modes lead to one mode, which leaves nothing to compare: "
                                    "modes were searched for"),
                          HasSubstr("place 2 of --modes is 57 standard deviations from the mode")));
  EXPECT_THAT(
      judge_given(c.target, "scout", put("0,0\n"), found),
      ElementsAre(HasSubstr("the one place of --modes leads to one mode, which leaves nothing to compare")));
  found.stopped = kSearchGiven;
  EXPECT_THAT(judge_given(c.target, "scout", put("0,0\n40,40\n1e4,0\n"), found),
              ElementsAre(HasSubstr("3 places of --modes lead to 1 mode: the others are the same"),
                          HasSubstr("place 2 of --modes")));
}

TEST_F(GivenPoints, AListOfAllModesIsGoneBy) {
  const auto list = put("0,0\n40,40\n-20,10\n");
  const SearchResult found = find_modes(c.context, 0, "scout", list, {.gradients = 1e5});
  EXPECT_EQ(found.stopped, kSearchGiven);
  EXPECT_EQ(found.library.size(), 3);
  EXPECT_LT(found.gradients, 2e4) << "what weighs them, and one round of descents";
  EXPECT_THAT(judge_given(c.target, "scout", list, found), IsEmpty());
}

// As many descents as the first round of a search has say so.
TEST_F(GivenPoints, AListThatLeavesOneOutIsNoListOfAll) {
  const auto list = put("0,0\n40,40\n");
  const SearchResult found = find_modes(c.context, 0, "scout", list, {.gradients = 1e5});
  EXPECT_EQ(found.stopped, kSearchHits);
  EXPECT_EQ(found.library.size(), 3);
  EXPECT_EQ(found.met, 0);
  EXPECT_THAT(
      judge_given(c.target, "scout", list, found),
      ElementsAre(HasSubstr("--modes leaves modes out, which 256 descents from elsewhere came upon: they "
                            "were searched for, and 3 are known")));
  const SearchResult listed =
      modes_listed(c.context, 0, {Eigen::Vector2d(0, 0), Eigen::Vector2d(40, 40)}, {.gradients = 1e5});
  EXPECT_EQ(listed.stopped, kSearchGiven);
  EXPECT_EQ(listed.library.size(), 3);
  EXPECT_EQ(listed.met, 1);
}

// Under a hundredth nothing is made of it.
TEST_F(GivenPoints, AListMayLeaveSmallOnesOut) {
  testing::SearchCase<MixtureTarget> small(three(0.005));
  const SearchResult found = find_modes(small.context, 0, "scout", put("0,0\n40,40\n"), {.gradients = 1e5});
  EXPECT_EQ(found.stopped, kSearchGiven);
  EXPECT_EQ(found.library.size(), 2);
}

}  // namespace
}  // namespace lockstep
