// SPDX-License-Identifier: Apache-2.0
// Points that a user gives, and what becomes of them.
#include "host/modes/given_points.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/engines/points_file.hpp"
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

// Chains do not begin where they would not arrive from; descents do.
TEST_F(GivenPoints, FarOutAreNoStartsOfChains) {
  const auto rows = put("0,0\n1e4,0\n40,40\n60,60\n");
  const auto near = near_starts(rows, c.target);
  ASSERT_EQ(near.size(), 3u);
  EXPECT_EQ(near[1], Eigen::Vector2d(40, 40));
  EXPECT_EQ(near[2], Eigen::Vector2d(60, 60));  // e^-400
  EXPECT_EQ(read_starts(rows, 2).size(), 4u);
  EXPECT_EQ(near_starts("scout", c.target).size(), 0u);
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
  found.listed = 1;
  EXPECT_THAT(judge_given(c.target, "scout", put("0,0\n40,40\n1e4,0\n"), found),
              ElementsAre(HasSubstr("3 places of --modes lead to 1 mode: the others are the same"),
                          HasSubstr("place 2 of --modes")));
  SearchResult none;  // beyond the dimensions that are searched
  none.library = ModeLibrary(2);
  none.stopped = kSearchDimension;
  none.listed = 1;
  EXPECT_THAT(judge_given(c.target, "scout", put("0,0\n"), none),
              ElementsAre(HasSubstr("leads to one mode")));
}

TEST_F(GivenPoints, AListOfAllModesIsGoneBy) {
  const auto list = put("0,0\n40,40\n-20,10\n");
  const SearchResult found = find_modes(c.context, 0, "scout", list, {.gradients = 1e5});
  EXPECT_EQ(found.stopped, kSearchGiven);
  EXPECT_EQ(found.library.size(), 3);
  EXPECT_LT(found.gradients, 5e4) << "a quarter of the budget, and what weighs them";
  EXPECT_THAT(judge_given(c.target, "scout", list, found), IsEmpty());
}

// A search of a quarter of the usual budget says so.
TEST_F(GivenPoints, AListThatLeavesOneOutIsNoListOfAll) {
  const auto list = put("0,0\n40,40\n");
  const SearchResult found = find_modes(c.context, 0, "scout", list, {.gradients = 1e5});
  EXPECT_EQ(found.stopped, kSearchHits);
  EXPECT_EQ(found.library.size(), 3);
  EXPECT_EQ(found.met, 0);
  EXPECT_THAT(judge_given(c.target, "scout", list, found),
              ElementsAre(HasSubstr("--modes leaves modes out, which a search from")));
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
  EXPECT_GT(found.beside, 1000);
}

// Descents end at twelve light peaks first, which are higher; what looks for others has a least budget of its own.
TEST(GivenList, IsHeldAgainstOthersWhateverTheBudget) {
  constexpr int kAxes = 10;
  testing::MemoryInput in;
  std::vector<double> means, weights = {0.345, 0.345, 0.28}, sds = {1, 1, 1};
  for (const double at : {0.0, 6.0, -5.0}) means.insert(means.end(), kAxes, at);
  for (int k = 0; k < 12; ++k) {
    for (int i = 0; i < kAxes; ++i) means.push_back(3 * std::sin(1.0 + 5 * k + 2.3 * i));
    weights.push_back(0.0025);
    sds.push_back(0.4);
  }
  in.arrays["means"] = {means, {15, kAxes}};
  in.arrays["weights"] = {weights, {15}};
  in.arrays["sds"] = {sds, {15}};
  testing::SearchCase<MixtureTarget> c(in);
  const std::vector<Eigen::VectorXd> places = {Eigen::VectorXd::Zero(kAxes),
                                               Eigen::VectorXd::Constant(kAxes, 6)};
  for (const double gradients : {1e3, 1e6}) {
    const SearchResult found = modes_listed(c.context, 0, places, {.gradients = gradients});
    EXPECT_EQ(found.listed, 2);
    EXPECT_GT(found.met, 0) << gradients;
    EXPECT_EQ(found.library.size(), found.listed + found.met);
    const double x[kAxes] = {-5, -5, -5, -5, -5, -5, -5, -5, -5, -5};
    EXPECT_LT(found.library.distance(found.library.nearest(x), x), 1) << gradients;
  }
}

// A mode that no descent leads to stays known, however many rows there are beside it, when the list turns out not to be of all.
TEST(GivenList, IsNotLostAmongTheRowsOfInit) {
  constexpr int kAxes = 12;
  testing::MemoryInput in;
  std::vector<double> means(3 * kAxes, 0.0);
  means[kAxes] = 12;
  means[2 * kAxes + 1] = 15;
  in.arrays["means"] = {means, {3, kAxes}};
  in.arrays["weights"] = {{0.4, 0.3, 0.3}, {3}};
  in.arrays["sds"] = {{1, 0.03, 1}, {3}};
  testing::SearchCase<MixtureTarget> c(in);
  const auto row = [](double first, double second) {
    return fmt::format("{},{},0,0,0,0,0,0,0,0,0,0\n", first, second);
  };
  std::string rows;
  for (int n = 0; n < 300; ++n) rows += row(0.01 * n, 0);
  const std::string init = ::testing::TempDir() + "given_init.csv",
                    list = ::testing::TempDir() + "given_list.csv";
  write_atomically(init, rows);
  write_atomically(list, row(0, 0) + row(12, 0));
  const SearchResult found = find_modes(c.context, 0, init, list, {.gradients = 2.5e5});
  EXPECT_EQ(found.library.size(), 3);
  EXPECT_THAT(judge_given(c.target, init, list, found), ElementsAre(HasSubstr("--modes leaves modes out")));
}

}  // namespace
}  // namespace lockstep
