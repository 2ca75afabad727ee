// SPDX-License-Identifier: Apache-2.0
// Modes that no start of the search led to, and chains came upon.
#include "host/modes/modes_met.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_search.hpp"
#include "host/runs/mode_gate.hpp"
#include "targets/mixture.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {

/// A mode of sd 3 about 0, and one of sd .3 in its tail, which a start in 10^5 would lead to.
struct ModesMet : ::testing::Test {
  using Rows = PointEngine::Rows;
  static constexpr int kDim = 6;
  static constexpr double kInside = 5;  // of the narrow mode, on each axis

  static testing::MemoryInput nested() {
    testing::MemoryInput in;
    std::vector<double> means(2 * kDim, 0.0);
    std::fill(means.begin() + kDim, means.end(), kInside);
    in.arrays["means"] = {means, {2, kDim}};
    in.arrays["weights"] = {{0.6, 0.4}, {2}};
    in.arrays["sds"] = {{3, 0.3}, {2}};
    return in;
  }
  /// Of a run of so many gradients.
  static SearchPlan plan(double gradients) {
    SearchPlan p;
    p.gradients = kSearchShare * gradients;
    return p;
  }
  /// `count` places about 0, but for one in the narrow mode.
  static Rows places(int count, int there) {
    Rows x(kDim, count);
    for (int c = 0; c < count; ++c)
      for (int i = 0; i < kDim; ++i) x(i, c) = c == there ? kInside + 0.1 : std::sin(c + 7.0 * i);
    return x;
  }
  static std::vector<float> draws(const Rows& x) {
    std::vector<float> all;
    for (Eigen::Index c = 0; c < x.cols(); ++c)
      for (int i = 0; i < kDim; ++i) all.push_back(float(x(i, c)));
    return all;
  }
  const std::vector<double> equally;
  const std::vector<float> no_draws;
  testing::SearchCase<MixtureTarget> c{nested()};
  const SearchResult found = search_modes(c.context, 0, {.gradients = 2e4});
};

TEST_F(ModesMet, AreAddedAndWeighed) {
  ASSERT_EQ(found.library.size(), 1);
  const SearchResult more = with_modes_met(c.context, 0, plan(1e6), found, places(256, 100));
  ASSERT_EQ(more.library.size(), 2);
  EXPECT_EQ(more.met, 1);
  EXPECT_EQ(more.library[1].hits, 1);
  EXPECT_NEAR(more.library[1].place[3], kInside, 1e-3);
  const double effective = 256 * more.library[1].effective_share;
  EXPECT_NEAR(std::exp(more.library[1].log_mass), 0.4, 4 * 0.4 / std::sqrt(effective));
  EXPECT_GT(more.gradients, found.gradients);
  EXPECT_LT(more.gradients,
            found.gradients + 1e4 + 2 * kMassDraws + 20 * kDim);  // a hundredth, and the weighing
}

TEST_F(ModesMet, NothingChangesWhereThereAreNone) {
  const SearchResult more = with_modes_met(c.context, 0, plan(1e6), found, places(256, -1));
  EXPECT_EQ(more.library.size(), 1);
  EXPECT_EQ(more.met, 0);
  EXPECT_EQ(more.library[0].hits, found.library[0].hits);
  EXPECT_EQ(more.library[0].log_mass, found.library[0].log_mass);
}

TEST_F(ModesMet, OneChainOfManyIsSeenIfItsDrawsCount) {
  constexpr int kChains = 64, kTimes = 40;
  const auto x = draws(places(kChains * kTimes, (kTimes - 1) * kChains + 13));  // where it is in the end
  EXPECT_EQ(with_modes_met(c.context, 0, plan(1e4), found, SeenDraws{x, equally, kChains}).met, 1);
  std::vector<double> log_weight(kChains * kTimes, 0.0);
  EXPECT_EQ(with_modes_met(c.context, 0, plan(1e4), found, SeenDraws{x, log_weight, kChains}).met, 1);
  log_weight[(kTimes - 1) * kChains + 13] = -INFINITY;
  EXPECT_EQ(with_modes_met(c.context, 0, plan(1e4), found, SeenDraws{x, log_weight, kChains}).met, 0);
  EXPECT_EQ(with_modes_met(c.context, 0, plan(1e4), found, SeenDraws{no_draws, equally, kChains}).met, 0);
}

// Of modes that the search had not found the run was to have as much as they hold, and there may be others.
TEST_F(ModesMet, TheRunIsJudgedByThem) {
  constexpr int kChains = 512, kTimes = 8;
  const auto x = draws(places(kChains * kTimes, kTimes * kChains - 1));
  const SeenDraws seen{x, equally, kChains};
  EXPECT_EQ(judge_modes(found, seen, LogZ{-0.51, 0.01}, {}, 1).failed, "");
  const SearchResult more = with_modes_met(c.context, 0, plan(1e6), found, seen);
  const ModesVerdict lost = judge_modes(more, seen, LogZ{-0.51, 0.01}, {}, 1);
  EXPECT_EQ(lost.failed, "modes");
  Rows half(kDim, kChains * kTimes);
  half << places(kChains * kTimes / 2, -1),
      (Rows::Constant(kDim, kChains * kTimes / 2, kInside) + 0.1 * places(kChains * kTimes / 2, -1));
  const auto y = draws(half);
  const ModesVerdict visited = judge_modes(more, {y, equally, kChains}, LogZ{0, 0.01}, {}, 1);
  EXPECT_EQ(visited.failed, "modes_mass");
  EXPECT_THAT(
      visited.warnings,
      ::testing::Contains(::testing::HasSubstr("chains came upon 1 of the 2 modes known, where no start")));
  SearchResult given = more;
  given.stopped = kSearchGiven;
  EXPECT_EQ(judge_modes(given, {y, equally, kChains}, LogZ{0, 0.01}, {}, 1).failed, "modes_mass");
  given.met = 0;
  EXPECT_EQ(judge_modes(given, {y, equally, kChains}, LogZ{0, 0.01}, {}, 1).failed, "");
}

// A mode of a thousandth is no reason to say that nothing is known.
TEST_F(ModesMet, CountFromAHundredthOn) {
  auto in = nested();
  in.arrays["weights"] = {{0.995, 0.005}, {2}};
  testing::SearchCase<MixtureTarget> small(in);
  const SearchResult wide = search_modes(small.context, 0, {.gradients = 2e4});
  ASSERT_EQ(wide.library.size(), 1);
  const SearchResult more = with_modes_met(small.context, 0, plan(1e6), wide, places(256, 100));
  EXPECT_EQ(more.met, 0);
  EXPECT_EQ(more.library.size(), 1);
  EXPECT_GT(more.gradients, wide.gradients);
}

// What is weighed again holds as much as before, its halos once.
TEST(ModesMetBesideAHalo, WeighedTwiceIsAsWeighedOnce) {
  testing::MemoryInput in;
  in.arrays["means"] = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0}, {3, 4}};
  in.arrays["weights"] = {{0.3, 0.3, 0.4}, {3}};
  in.arrays["sds"] = {{0.05, 2, 1}, {3}};
  testing::SearchCase<MixtureTarget> c(in);
  const SearchResult found = search_modes(c.context, 0, {.gradients = 2e5});
  ASSERT_EQ(found.library.size(), 2);
  ASSERT_EQ(found.library.parts(), 3);
  const SearchResult on = search_on(c.context, 0, {.gradients = 4 * found.gradients}, found);
  EXPECT_GT(on.starts, found.starts);
  EXPECT_EQ(on.library.parts(), 3);
  EXPECT_NEAR(on.library.log_total(), found.library.log_total(), 1e-6);
}

TEST_F(ModesMet, ASearchGoesOnFromWhatItHasFound) {
  const SearchResult same = search_on(c.context, 0, {.gradients = 1.5 * found.gradients}, found);
  EXPECT_EQ(same.starts, found.starts);
  const SearchResult more = search_on(c.context, 0, {.gradients = 4e6}, found);
  EXPECT_GT(more.starts, 10 * found.starts);
  EXPECT_GT(more.gradients, found.gradients);
  EXPECT_LT(more.gradients, 4e6);
  EXPECT_EQ(more.library.size(), 2);
  EXPECT_EQ(more.met, 0);
  EXPECT_GT(more.foretold, 0.9 * more.starts);
}

}  // namespace
}  // namespace lockstep
