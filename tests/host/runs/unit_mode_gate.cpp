// SPDX-License-Identifier: Apache-2.0
// What a run's draws say of the modes that were found before it.
#include "host/runs/mode_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/runs/mode_search.hpp"

namespace lockstep {
namespace {

/// Of two modes in one dimension, at 0 and 10, that hold .7 and .3, known this well.
SearchResult library_of_two(double effective) {
  SearchResult r;
  r.library = ModeLibrary(1);
  for (int k = 0; k < 2; ++k) {
    Mode m;
    m.place = {10.0 * k};
    m.factor = {1};
    m.log_mass = m.laplace_log_mass = std::log(k == 0 ? 0.7 : 0.3);
    m.effective_share = effective;
    m.hits = 10 + k;
    r.library.add(m);
  }
  r.stopped = kSearchHits;
  r.scale = 10;
  return r;
}
ModesVerdict judged(const SearchResult& r, int of_second, std::optional<double> log_z,
                    std::optional<double> scout = {}) {
  std::vector<float> x(1000, 0.3f);
  std::fill_n(x.begin(), of_second, 10.2f);
  return judge_modes(r, {x, {}}, log_z, scout, 1);
}

TEST(ModeGate, AsksForAThirdOfWhatAModeHolds) {
  const SearchResult r = library_of_two(0.5);
  EXPECT_EQ(judged(r, 300, 0).failed, "");
  EXPECT_EQ(judged(r, 101, 0).failed, "");
  EXPECT_EQ(judged(r, 99, 0).failed, "modes");
  EXPECT_EQ(judged(r, 0, 0).failed, "modes");
  const auto v = judged(r, 0, 0);
  EXPECT_EQ(v.summary.expected, 2);
  EXPECT_EQ(v.summary.visited, 1);
  EXPECT_EQ(v.summary.least_hits, 10);
  // A Z e^5 times as large: each holds less than one in a hundred of it.
  EXPECT_EQ(judged(r, 0, 5).failed, "");
}

TEST(ModeGate, AsksForAVisitWhereTheMassIsNotKnown) {
  const SearchResult r = library_of_two(0.02);
  EXPECT_EQ(judged(r, 1, 0).failed, "");
  EXPECT_EQ(judged(r, 0, 0).failed, "modes");
}

TEST(ModeGate, AVisitIsToBeNearestWhereAModeIsNoDrawsHome) {
  SearchResult r = library_of_two(0.02);
  r.library = ModeLibrary(1);
  for (const double sd : {1.0, 10.0}) {  // the wide one about the narrow one
    Mode m;
    m.place = {sd < 5 ? 0.5 : 0.0};
    m.factor = {sd};
    m.log_mass = m.laplace_log_mass = std::log(0.5);
    m.effective_share = 0.02;
    m.hits = 10;
    r.library.add(m);
  }
  std::vector<float> x(1000, 0.5f);
  EXPECT_EQ(judge_modes(r, {x, {}}, 0, {}, 1).failed, "modes");
  std::fill_n(x.begin(), 100, 0.0f);
  EXPECT_EQ(r.library.home(std::vector<double>{0}.data()), 0);
  EXPECT_EQ(judge_modes(r, {x, {}}, 0, {}, 1).failed, "");
}

TEST(ModeGate, WhereMostModesWereNotVisitedNothingIsEstablished) {
  SearchResult r = library_of_two(0.5);
  r.library = ModeLibrary(1);
  for (int k = 0; k < 50; ++k) {  // of a fiftieth each
    Mode m;
    m.place = {10.0 * k};
    m.factor = {1};
    m.log_mass = m.laplace_log_mass = -std::log(50.0);
    m.effective_share = 0.5;
    m.hits = 10;
    r.library.add(m);
  }
  std::vector<float> x(100);
  for (int n = 0; n < 100; ++n) x[n] = 10.0f * float(n % 20);
  EXPECT_EQ(judge_modes(r, {x, {}}, 0, {}, 1).failed, "modes_mass");
  for (int n = 0; n < 100; ++n) x[n] = 10.0f * float(n % 40);
  EXPECT_EQ(judge_modes(r, {x, {}}, 0, {}, 1).failed, "");
}

TEST(ModeGate, FailsWhereTheMassesKnownAreMoreThanZ) {
  const SearchResult r = library_of_two(0.5);  // 128 effective draws of each
  EXPECT_EQ(judged(r, 300, -0.2).failed, "");
  EXPECT_EQ(judged(r, 300, -0.65).failed, "modes");
}

TEST(ModeGate, WithoutALogZTheScoutsHasToAgree) {
  const SearchResult r = library_of_two(0.5);
  EXPECT_EQ(judged(r, 300, {}, 0.3).failed, "");
  EXPECT_EQ(judged(r, 300, {}, 3).failed, "modes_mass");
  EXPECT_EQ(judged(r, 300, {}).failed, "modes_mass");
  EXPECT_EQ(judged(r, 0, {}, 0.3).failed, "modes");
  EXPECT_EQ(judged(r, 0, {}, 3).failed, "modes_mass");  // nobody knows what is missing
}

TEST(ModeGate, ReportsWhatIsVisitedLessThanHalfAsOften) {
  const SearchResult r = library_of_two(0.5);
  EXPECT_TRUE(judged(r, 160, 0).warnings.empty());
  const ModesVerdict v = judged(r, 140, 0);
  EXPECT_EQ(v.failed, "");
  EXPECT_THAT(v.warnings.at(0), ::testing::HasSubstr("less than half"));
}

TEST(ModeGate, SaysThatASearchWasNotDone) {
  SearchResult r = library_of_two(0.5);
  r.library[1].hits = 1;
  EXPECT_TRUE(judged(r, 300, 0).warnings.empty());
  r.stopped = kSearchBudget;
  EXPECT_THAT(judged(r, 300, 0).warnings.at(0), ::testing::HasSubstr("1 of the 2 found were met once"));
  r.library[1].hits = 2;
  EXPECT_TRUE(judged(r, 300, 0).warnings.empty());
}

TEST(ModeGate, MorePlacesThatAreNoModeThanHitsEstablishNothing) {
  SearchResult r = library_of_two(0.5);  // met 21 times
  r.rejected = 21;
  EXPECT_EQ(judged(r, 300, 0).failed, "");
  r.rejected = 22;
  EXPECT_EQ(judged(r, 300, 0).failed, "modes_mass");
  EXPECT_THAT(judged(r, 300, 0).warnings.at(0), ::testing::HasSubstr("22 places that are no mode"));
  EXPECT_EQ(judged(r, 10, 0).failed, "modes") << "what is known to be missing says more";
  EXPECT_EQ(judged(r, 300, -0.65).failed, "modes") << "so do masses known that are more than Z";
  r.stopped = kSearchGiven;
  EXPECT_EQ(judged(r, 300, 0).failed, "");
}

TEST(ModeGate, WhatItsBudgetEndedEstablishesNothing) {
  SearchResult r = library_of_two(0.5), none;
  r.stopped = kSearchBudget;
  r.starts = 1000;
  r.library[0].hits = r.library[1].hits = 300;
  EXPECT_EQ(judged(r, 300, {}, 0.3).failed, "modes_mass");
  EXPECT_EQ(judged(r, 300, 0).failed, "");  // a log Z of its own says what there is
  EXPECT_THAT(judged(r, 300, 0).warnings.at(0), ::testing::HasSubstr("600 led to the 2 modes found"));
  r.library[0].hits = 600;  // nearly all: what else there is has a small basin
  EXPECT_EQ(judged(r, 300, {}, 0.3).failed, "");
  EXPECT_TRUE(judged(r, 300, 0).warnings.empty());
  none.library = ModeLibrary(1);
  none.starts = 1000;
  none.stopped = kSearchBudget;
  EXPECT_EQ(judged(none, 300, {}, 0.3).failed, "modes_mass");
  none.stopped = kSearchHits;  // a density without a mode
  EXPECT_EQ(judged(none, 300, {}, 0.3).failed, "");
}

TEST(ModeGate, SpeaksOfOneModeInTheSingular) {
  const SearchResult r = library_of_two(0.5);
  SearchResult one = r;
  one.library = ModeLibrary(1);
  one.library.add(r.library[0]);
  one.starts = 1000;
  one.stopped = kSearchBudget;
  EXPECT_THAT(judged(one, 0, 0).warnings.at(0), ::testing::HasSubstr("led to the one mode found: there"));
}

TEST(ModeGate, CountsByWeight) {
  const SearchResult r = library_of_two(0.5);
  std::vector<float> x(400, 0.0f);
  std::fill_n(x.begin(), 200, 10.0f);
  std::vector<double> light(400, 0.0), heavy(400, 0.0);
  std::fill_n(light.begin(), 200, -4.0);
  std::fill_n(heavy.begin(), 200, -0.8);
  EXPECT_EQ(judge_modes(r, {x, light}, 0, {}, 1).failed, "modes");
  EXPECT_EQ(judge_modes(r, {x, heavy}, 0, {}, 1).failed, "");
}

TEST(ModeGate, FewDrawsSayNothing) {
  const SearchResult r = library_of_two(0.5);
  const std::vector<float> few(20, 0.0f), more(40, 0.0f);  // 6 and 12 should be in the second mode
  const ModesVerdict v = judge_modes(r, {few, {}}, 0, {}, 1);
  EXPECT_EQ(v.failed, "");
  EXPECT_EQ(v.summary.visited, 1);  // and it says so
  EXPECT_THAT(v.warnings.at(0), ::testing::HasSubstr("too few"));
  EXPECT_EQ(judge_modes(r, {more, {}}, 0, {}, 1).failed, "modes");
}

TEST(ModeGate, WithoutDrawsNothingIsEstablished) {
  const std::vector<float> none;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {none, {}}, 0, {}, 1).failed, "modes_mass");
}

TEST(ModeGate, LooksAtEveryChain) {
  // The last of eight chains alone is in the second mode, and more draws are kept than are looked at.
  std::vector<float> x(std::size_t(8) << 16, 0.0f);
  for (std::size_t n = 7; n < x.size(); n += 8) x[n] = 10;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {x, {}, 8}, 0, {}, 1).failed, "");
  for (float& v : x) v = 0;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {x, {}, 8}, 0, {}, 1).failed, "modes");
}

TEST(ModeGate, PassesOneModeAndNone) {
  SearchResult none;
  const std::vector<float> x = {1};
  EXPECT_EQ(judge_modes(none, {x, {}}, 0, {}, 1).failed, "");
  SearchResult one = library_of_two(0.5);
  ModeLibrary single(1);
  single.add(one.library[0]);
  one.library = single;
  EXPECT_EQ(judge_modes(one, {x, {}}, {}, {}, 1).failed, "");
  EXPECT_EQ(judge_modes(one, {x, {}}, std::log(0.7), {}, 1).failed, "");
}

// A run that has a wide part around its one mode, and not the mode: it may not pass.
TEST(ModeGate, FailsWhereTheOneModeHoldsMoreThanTheRun) {
  SearchResult one = library_of_two(0.5);
  ModeLibrary single(1);
  single.add(one.library[0]);
  one.library = single;
  const std::vector<float> x = {1};
  const ModesVerdict v = judge_modes(one, {x, {}}, std::log(0.1), {}, 1);
  EXPECT_EQ(v.failed, "modes");
  EXPECT_THAT(v.warnings.at(0), ::testing::HasSubstr("the mode found holds 7 times exp(log Z)"));
  one.library[0].effective_share = 0.02;  // a guess
  EXPECT_EQ(judge_modes(one, {x, {}}, std::log(0.1), {}, 1).failed, "");
}

}  // namespace
}  // namespace lockstep
