// SPDX-License-Identifier: Apache-2.0
// What a run's draws say of the modes that were found before it.
#include "host/runs/mode_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "host/modes/mode_search.hpp"

namespace lockstep {
namespace {

constexpr LogZ kOne{0, 0.001};

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
  return judge_modes(r, {x, {}}, log_z ? std::optional<LogZ>({*log_z, 0.001}) : std::nullopt, scout, 1);
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
  EXPECT_NEAR(v.summary.log_total, 0, 1e-12);
  const auto shares = judged(r, 300, 0).summary.shares;
  ASSERT_EQ(shares.size(), 2u);
  for (const ModeShare& m : shares) {
    EXPECT_NEAR(m.share, m.place[0] > 5 ? 0.3 : 0.7, 1e-12);
    EXPECT_NEAR(m.expected, m.place[0] > 5 ? 0.3 : 0.7, 1e-9);
  }
  // A Z e^5 times as large: each holds less than one in a hundred of it.
  EXPECT_EQ(judged(r, 0, 5).failed, "");
}

TEST(ModeGate, AsksForWhatLiesAboutAMode) {
  SearchResult r = library_of_two(0.5);
  r.library[0].halos = {{{0}, {50}, std::log(0.4)}};
  EXPECT_EQ(judged(r, 300, 0).failed, "modes");
  std::vector<float> x(1000, 0.3f);
  std::fill_n(x.begin(), 300, 10.2f);
  std::fill_n(x.rbegin(), 39, 45.f);  // a tenth of .4 but one
  EXPECT_EQ(judge_modes(r, {x, {}}, LogZ{0, 0.001}, {}, 1).failed, "modes");
  std::fill_n(x.rbegin(), 41, 45.f);
  EXPECT_EQ(judge_modes(r, {x, {}}, LogZ{0, 0.001}, {}, 1).failed, "");
}

TEST(ModeGate, AsksForAVisitWhereTheMassIsNotKnown) {
  const SearchResult r = library_of_two(0.02);
  EXPECT_EQ(judged(r, 1, 0).failed, "");
  EXPECT_EQ(judged(r, 0, 0).failed, "modes");
}

TEST(ModeGate, WhereManyDescentsEndARunHasToHaveBeen) {
  SearchResult r = library_of_two(0.5);
  Mode peak = r.library[1];  // that may be a peak on top of something as wide as the first
  r.library = ModeLibrary(1);
  r.library.add(library_of_two(0.5).library[0]);
  peak.factor = {0.01};
  peak.log_mass = peak.laplace_log_mass = std::log(0.003);
  peak.effective_share = 0.02;
  r.library.add(peak);
  EXPECT_EQ(judged(r, 0, 0).failed, "modes_mass");
  EXPECT_THAT(judged(r, 0, 0).warnings.at(0),
              ::testing::HasSubstr("52 % of the descents came to rest at x[0] = 10"));
  std::vector<float> x(1000, 0.3f);
  x[0] = x[1] = 10;
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "");
  r.library[0].hits = 300;  // few
  EXPECT_EQ(judged(r, 0, 0).failed, "");
  r.library[0].hits = 10;
  EXPECT_EQ(judged(r, 0, 4).failed, "") << "were it as wide, it would still be little";
  r.library[1].effective_share = 0.1;
  EXPECT_EQ(judged(r, 0, 0).failed, "modes_mass")
      << "that it is little is what a normal says which it does not resemble";
  r.library[1].effective_share = 0.5;
  EXPECT_EQ(judged(r, 0, 0).failed, "") << "what it holds is known to be little";
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
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "modes");
  std::fill_n(x.begin(), 100, 0.0f);
  EXPECT_EQ(r.library.of_points(Eigen::MatrixXd::Zero(1, 1), ModeLibrary::By::density, 1)[0], 0);
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "");
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
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "modes_mass");
  for (int n = 0; n < 100; ++n) x[n] = 10.0f * float(n % 40);
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "");
}

TEST(ModeGate, FailsWhereTheMassesKnownAreMoreThanZ) {
  const SearchResult r = library_of_two(0.5);  // 128 effective draws of each
  EXPECT_EQ(judged(r, 300, -0.2).failed, "");
  EXPECT_EQ(judged(r, 300, -0.65).failed, "modes");
}

/// Of 3,200 draws, which in blocks of a hundred are all alike: second moments are .1 + 30.
std::vector<float> alike() {
  std::vector<float> x(3200);
  for (int n = 0; n < 3200; ++n) x[n] = n % 10 < 3 ? 10.0f : 0.378f;
  return x;
}
/// What the modes hold of first moments, and of second ones, that with an error, and of all.
HeldMoments held(double small, double large, double error) {
  return {0, {0, small, 0.7, 3, large, 0.3}, {0, 0, 0, 0, error * error, 0}};
}

TEST(ModeGate, FailsWhereTheModesHoldMoreOfASecondMomentThanTheRun) {
  SearchResult r = library_of_two(0.5);
  const std::vector<float> x = alike();
  const auto of = [&](double small, double large, double error, double log_z_se = 0.001) {
    r.held = held(small, large, error);
    return judge_modes(r, {x, {}}, LogZ{0, log_z_se}, {}, 1);
  };
  EXPECT_EQ(of(0.1, 30, 0.1).failed, "");
  EXPECT_EQ(of(0.1, 20, 0.1).failed, "") << "they are not all";
  EXPECT_EQ(of(0.1, 32.9, 0.1).failed, "") << "within a tenth";
  EXPECT_EQ(of(0.1, 34, 1.5).failed, "") << "within three errors of the library's";
  EXPECT_EQ(of(0.1, 34, 0.1, 0.05).failed, "") << "within those of log Z";
  EXPECT_EQ(of(0.1, 34, 0.1).failed, "modes");
  EXPECT_THAT(of(0.1, 34, 0.1).warnings.at(0),
              ::testing::HasSubstr("of second_moment[0] the modes found but the 1 largest hold 34"));
  EXPECT_EQ(of(34, 30, 0.1).failed, "modes") << "of the largest too";
  r.held = {};
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "");
}

TEST(ModeGate, SecondMomentsSeenAreKnownAsWellAsBlocksAreAlike) {
  SearchResult r = library_of_two(0.5);
  r.held = held(0.1, 34, 0.1);
  std::vector<float> x = alike();
  EXPECT_EQ(judge_modes(r, {x, {}, 3200}, kOne, {}, 1).failed, "modes") << "chains of one draw";
  std::sort(x.begin(), x.end());
  EXPECT_EQ(judge_modes(r, {x, {}}, kOne, {}, 1).failed, "") << "a block of draws has one mode or the other";
  EXPECT_EQ(judge_modes(r, {x, {}, 3200}, kOne, {}, 1).failed, "") << "so has a block of chains";
  EXPECT_EQ(judge_modes(r, {x, {}, 100}, kOne, {}, 1).failed, "modes") << "here all have both";
}

TEST(ModeGate, ErrorsAreAtLeastThoseOfTheVisitsToModes) {
  // A hundred modes at 10 + .1 k, of a hundredth each; every second one beyond the 32 that chains jump between is visited
  // twice as often as it should be, the others never.
  ModeLibrary library(1);
  HeldMoments exact{0, {}, {}};
  std::vector<float> uneven, even;
  double mean = 0, second = 0;
  for (int k = 0; k < 100; ++k) {
    Mode m;
    m.place = {10 + 0.1 * k};
    m.factor = {0.001};
    m.log_mass = m.laplace_log_mass = -std::log(100.0) - 1e-6 * k;
    library.add(m);
    // Of x, of x^2, of a quantity 2 x, and of all.
    exact.part.insert(exact.part.end(),
                      {m.place[0] / 100, m.place[0] * m.place[0] / 100, m.place[0] / 50, 0.01});
    exact.variance.insert(exact.variance.end(), {0, 0, 0, 0});
    const int times = k < 32 ? 1 : 2 * (k % 2);
    for (int n = 0; n < 1000; ++n) even.push_back(float(m.place[0]));
    for (int n = 0; n < 1000 * times; ++n) uneven.push_back(float(m.place[0]));
    if (k < 32) continue;  // about the means over all, of x and of x^2
    mean += std::pow((m.place[0] - 14.95) / 100, 2);
    second += std::pow((m.place[0] * m.place[0] - 231.835) / 100, 2);
  }
  const auto errors = [&](const std::vector<float>& x, const HeldMoments& held) {
    return moments_by_modes(library, held, HousedDraws(library, {x, {}}, 1), kOne).least;
  };
  const MomentErrors by_visits = errors(uneven, exact);
  EXPECT_NEAR(by_visits.mean[0], std::sqrt(mean), 0.002 * std::sqrt(mean));
  EXPECT_NEAR(by_visits.second[0], std::sqrt(second), 0.002 * std::sqrt(second));
  EXPECT_NEAR(by_visits.quantity[0], 2 * by_visits.mean[0], 1e-9);
  EXPECT_EQ(errors(even, exact).mean[0], 0);
  EXPECT_EQ(errors(even, exact).second[0], 0);
  // Where the library itself knows no better it says nothing.
  HeldMoments unsure = exact;
  for (std::size_t i = 0; i < unsure.part.size(); ++i) unsure.variance[i] = std::pow(unsure.part[i], 2);
  EXPECT_EQ(errors(uneven, unsure).second[0], 0);
  // None of them at all, which all lie to one side.
  const std::vector<float> first(even.begin(), even.begin() + 32000);
  double to_a_side = 0;
  for (int k = 32; k < 100; ++k) to_a_side += (library[k].place[0] - 14.95) / 100;
  EXPECT_NEAR(errors(first, exact).mean[0], to_a_side, 1e-6);
  // Half as often as they should be, all of them alike.
  HeldMoments twice = exact;
  for (double& v : twice.part) v *= 2;
  double lacks = 0;
  for (int k = 32; k < 100; ++k) lacks += (std::pow(library[k].place[0], 2) - 231.835) / 100;
  EXPECT_NEAR(errors(even, twice).second[0], lacks, 1e-3 * lacks);

  WeightedMoments m;
  m.mean_se = {0.1};
  m.second_se = {500};
  m.mean_unscaled_se = {0.05};
  m.quantity_se = {0.1};
  widen(m, by_visits);
  EXPECT_EQ(m.quantity_se[0], by_visits.quantity[0]);
  EXPECT_EQ(m.mean_se[0], by_visits.mean[0]);
  EXPECT_NEAR(m.mean_unscaled_se[0], by_visits.mean[0] / 2, 1e-12);
  EXPECT_EQ(m.second_se[0], 500);
}

TEST(ModeGate, ErrorsOfRightRunsDoNotGrow) {
  // A hundred modes of equal mass, which the library knows to a tenth, and independent draws.
  constexpr int kReplicates = 200, kDraws = 20000;
  std::mt19937_64 random(20261201);
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> mode(0, 99);
  ModeLibrary library(1);
  for (int k = 0; k < 100; ++k) {
    Mode m;
    m.place = {double(k)};
    m.factor = {0.001};
    m.log_mass = m.laplace_log_mass = -std::log(100.0) - 1e-6 * k;
    library.add(m);
  }
  const double natural = 28.9 / std::sqrt(kDraws);  // error of the mean
  int grown = 0;
  for (int r = 0; r < kReplicates; ++r) {
    HeldMoments held{0, {}, {}};
    for (int k = 0; k < 100; ++k) {
      const double share = 0.01 * (1 + 0.1 * normal(random)), variance = 1e-6;
      held.part.insert(held.part.end(), {share * k, share * k * k, share});
      held.variance.insert(held.variance.end(), {variance * k * k, variance * k * k * k * k, variance});
    }
    std::vector<float> x;
    for (int n = 0; n < kDraws; ++n) x.push_back(float(mode(random)));
    const MomentErrors least = moments_by_modes(library, held, HousedDraws(library, {x, {}}, 1), kOne).least;
    // The library's noise comes to the root of 68 modes' (.001 29)^2, .24, which is no error of the run's.
    grown += least.mean[0] > natural;
  }
  // One in 22 is over 2 errors: some 9 of 200, and more than 21 once in 10,000.
  EXPECT_LE(grown, 21);
}

TEST(ModeGate, WhatErrorsHoldOfALackingMomentIsNoFailureUpToAQuarter) {
  // A hundred modes as above, of which those from a rank on hold `times` what the run has there.
  SearchResult r;
  r.library = ModeLibrary(1);
  r.stopped = kSearchHits;
  r.scale = 10;
  std::vector<float> x;
  for (int k = 0; k < 100; ++k) {
    Mode m;
    m.place = {10 + 0.1 * k};
    m.factor = {0.001};
    m.log_mass = m.laplace_log_mass = -std::log(100.0) - 1e-6 * k;
    m.effective_share = 0.5;
    m.hits = 20;
    r.library.add(m);
    for (int n = 0; n < 1000; ++n) x.push_back(float(m.place[0]));
  }
  const auto failed = [&](int first, double times, double of_largest = 1) {
    r.held = {0, {}, {}};
    for (int k = 0; k < 100; ++k) {
      const double place = r.library[k].place[0], held = (k < first ? of_largest : times) / 100;
      r.held.part.insert(r.held.part.end(), {held * place, held * place * place, held});
      r.held.variance.insert(r.held.variance.end(), {0, 0, 0});
    }
    return judge_modes(r, {x, {}, 100}, kOne, {}, 1).failed;
  };
  EXPECT_EQ(failed(32, 1), "");
  EXPECT_EQ(failed(32, 1.25), "") << "a fifth, held by errors";
  EXPECT_EQ(failed(32, 1.5), "modes") << "two fifths";
  EXPECT_EQ(failed(16, 1.2), "") << "most of it among those that errors are for";
  EXPECT_EQ(failed(32, 1, 1.6), "modes") << "of the 32, which chains go to by jumps";
}

TEST(ModeGate, DrawsFarFromTheModesGivenSayThatThereAreOthers) {
  SearchResult r = library_of_two(0.5);
  const auto failed = [&](int far) {
    std::vector<float> x(1000, 0.3f);
    std::fill_n(x.begin(), 300, 10.2f);
    std::fill_n(x.rbegin(), far, 40.f);
    return judge_modes(r, {x, {}}, kOne, {}, 1).failed;
  };
  EXPECT_EQ(failed(400), "") << "of a search others are judged elsewhere";
  r.stopped = kSearchGiven;
  EXPECT_EQ(failed(0), "");
  EXPECT_EQ(failed(40), "") << "a twenty-fifth";
  EXPECT_EQ(failed(60), "modes_mass");
  for (int k = 0; k < 2; ++k) r.library[k].effective_share = 0.1;
  EXPECT_EQ(failed(60), "") << "modes like no normal may reach so far";
}

TEST(ModeGate, WithoutALogZTheScoutsHasToAgree) {
  const SearchResult r = library_of_two(0.5);
  EXPECT_EQ(judged(r, 300, {}, 0.3).failed, "");
  EXPECT_EQ(judged(r, 300, {}, 3).failed, "modes_mass");
  EXPECT_EQ(judged(r, 300, {}).failed, "modes_mass");
  EXPECT_EQ(judged(r, 0, {}, 0.3).failed, "modes");
  EXPECT_EQ(judged(r, 0, {}, 3).failed, "modes_mass");  // nobody knows what is missing
  EXPECT_EQ(judged(r, 300, {}, -3).failed,
            "modes_mass");  // where particles see less the search did mostly too
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

/// Each holds under 1 %, but there are likely twice as many that nobody met: of these 20, if 5 were met twice.
TEST(ModeGate, WhereModesThatNobodyMetLikelyHoldATwentiethNothingIsEstablished) {
  for (const auto& [each, failed] : {std::pair(0.0018, "modes_mass"), {0.0012, ""}}) {
    SearchResult r = library_of_two(0.5);
    for (int k = 0; k < 25; ++k) {
      Mode m = r.library[1];
      m.place = {30.0 + 10 * k};
      m.log_mass = m.laplace_log_mass = std::log(each);
      m.hits = k < 20 ? 1 : 2;
      r.library.add(m);
    }
    for (const char* ended : {kSearchModes, kSearchBudget, kSearchHits}) {
      r.stopped = ended;
      EXPECT_EQ(judged(r, 300, {}, 0).failed, ended == kSearchHits ? "" : failed) << ended << " " << each;
      EXPECT_EQ(judged(r, 300, r.library.log_total()).failed, "") << ended << ", with a log Z of its own";
    }
  }
}

TEST(ModeGate, AModeThatMattersAndWasHardlyMetEstablishesNothing) {
  SearchResult r = library_of_two(0.5);
  r.stopped = kSearchBudget;
  for (const double hits : {1.0, 4.0}) {
    r.library[1].hits = hits;
    EXPECT_EQ(judged(r, 300, {}, 0).failed, "modes_mass") << hits;
    EXPECT_THAT(judged(r, 300, {}, 0).warnings.at(0),
                ::testing::HasSubstr("of the 2 found, 1 that holds over 1 % was met fewer than 5 times"));
    EXPECT_EQ(judged(r, 0, {}, 0).failed, "modes") << "what is known to be missing says more";
    EXPECT_EQ(judged(r, 300, 0).failed, "") << "a log Z of its own tells of what is missing";
  }
  r.library[1].hits = 5;
  EXPECT_EQ(judged(r, 300, {}, 0).failed, "");
  r.listed = 1;
  EXPECT_EQ(judged(r, 300, {}, 0).failed, "modes_mass") << "a list that left one out";
  EXPECT_EQ(judged(r, 300, 0).failed, "");
  r.listed = 2;
  EXPECT_EQ(judged(r, 300, {}, 0).failed, "");
  r.listed = 0;
  r.library[1].given = true;  // a hint: whether the search would have met it nobody asks
  for (const double hits : {0.0, 1.0}) {
    r.library[1].hits = hits;
    EXPECT_EQ(judged(r, 300, {}, 0).failed, "") << hits;
  }
  r.library[1].given = false;
  r.library[1].hits = 1;
  r.stopped = kSearchHits;
  EXPECT_EQ(judged(r, 300, {}, 0).failed, "");
  r.stopped = kSearchBudget;
  r.library[1].log_mass = r.library[1].laplace_log_mass = std::log(0.005);
  EXPECT_EQ(judged(r, 300, {}, std::log(0.705)).failed, "") << "it matters little";
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
  EXPECT_EQ(judge_modes(r, {x, light}, kOne, {}, 1).failed, "modes");
  EXPECT_EQ(judge_modes(r, {x, heavy}, kOne, {}, 1).failed, "");
}

TEST(ModeGate, FewDrawsSayNothing) {
  const SearchResult r = library_of_two(0.5);
  const std::vector<float> few(20, 0.0f), more(40, 0.0f);  // 6 and 12 should be in the second mode
  const ModesVerdict v = judge_modes(r, {few, {}}, kOne, {}, 1);
  EXPECT_EQ(v.failed, "");
  EXPECT_EQ(v.summary.visited, 1);  // and it says so
  EXPECT_THAT(v.warnings.at(0), ::testing::HasSubstr("too few"));
  EXPECT_EQ(judge_modes(r, {more, {}}, kOne, {}, 1).failed, "modes");
}

TEST(ModeGate, WithoutDrawsNothingIsEstablished) {
  const std::vector<float> none;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {none, {}}, kOne, {}, 1).failed, "modes_mass");
}

TEST(ModeGate, LooksAtEveryChain) {
  // The last of eight chains alone is in the second mode, and more draws are kept than are looked at.
  std::vector<float> x(std::size_t(8) << 16, 0.0f);
  for (std::size_t n = 7; n < x.size(); n += 8) x[n] = 10;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {x, {}, 8}, kOne, {}, 1).failed, "");
  for (float& v : x) v = 0;
  EXPECT_EQ(judge_modes(library_of_two(0.5), {x, {}, 8}, kOne, {}, 1).failed, "modes");
}

TEST(ModeGate, PassesOneModeAndNone) {
  SearchResult none;
  const std::vector<float> x = {1};
  EXPECT_EQ(judge_modes(none, {x, {}}, kOne, {}, 1).failed, "");
  SearchResult one = library_of_two(0.5);
  ModeLibrary single(1);
  single.add(one.library[0]);
  one.library = single;
  EXPECT_EQ(judge_modes(one, {x, {}}, {}, {}, 1).failed, "");
  EXPECT_EQ(judge_modes(one, {x, {}}, LogZ{std::log(0.7), 0.001}, {}, 1).failed, "");
}

// A run that has a wide part around its one mode, and not the mode: it may not pass.
TEST(ModeGate, FailsWhereTheOneModeHoldsMoreThanTheRun) {
  SearchResult one = library_of_two(0.5);
  ModeLibrary single(1);
  single.add(one.library[0]);
  one.library = single;
  const std::vector<float> x = {1};
  const ModesVerdict v = judge_modes(one, {x, {}}, LogZ{std::log(0.1), 0.001}, {}, 1);
  EXPECT_EQ(v.failed, "modes");
  EXPECT_THAT(v.warnings.at(0), ::testing::HasSubstr("the mode found holds 7 times exp(log Z)"));
  one.library[0].effective_share = 0.02;  // a guess
  EXPECT_EQ(judge_modes(one, {x, {}}, LogZ{std::log(0.1), 0.001}, {}, 1).failed, "");
}

// Samplers without a log Z: a core of .3 in something wide of .7, of which the scout's particles saw the wide part alone. All
// draws are at home in the one mode, wherever they are.
TEST(ModeGate, AsksForTheCoreOfTheOneMode) {
  SearchResult one = library_of_two(0.5);
  ModeLibrary single(1);
  single.add(one.library[1]);  // at 10
  single[0].core_log_mass = std::log(0.3);
  one.library = single;
  const auto seen = [&](int in_core, std::optional<LogZ> log_z, std::optional<double> scout) {
    std::vector<float> x(1000, -20.0f);
    std::fill_n(x.begin(), in_core, 10.5f);
    return judge_modes(one, {x, {}}, log_z, scout, 1);
  };
  const double wide = std::log(0.7);
  EXPECT_EQ(seen(0, {}, wide).failed, "modes");
  EXPECT_EQ(seen(99, {}, wide).failed, "modes");
  EXPECT_EQ(seen(101, {}, wide).failed, "");
  EXPECT_EQ(seen(101, {}, wide).summary.visited, 1);
  EXPECT_THAT(seen(0, {}, wide).warnings.at(0),
              ::testing::HasSubstr("holds 0 of the draws in its core and should hold 0.3"));
  EXPECT_EQ(seen(0, kOne, {}).failed, "modes");
  EXPECT_EQ(seen(300, kOne, {}).failed, "");
  // Nobody knows how much there is, or what the core holds, or the core is too small for draws to tell.
  EXPECT_EQ(seen(0, {}, {}).failed, "modes_mass");
  EXPECT_EQ(seen(1, {}, NAN).failed, "");
  one.library[0].core_log_mass = NAN;
  EXPECT_EQ(seen(0, {}, wide).failed, "");
  single[0].place = {1e9};
  one.library = ModeLibrary(1);
  one.library.add(single[0]);
  EXPECT_EQ(seen(0, {}, wide).failed, "");
}

// Nor is a mode visited by what lies between it and another.
TEST(ModeGate, AsksForTheCoresOfTwo) {
  SearchResult two = library_of_two(0.5);
  for (int k : {0, 1}) two.library[k].core_log_mass = two.library[k].log_mass;
  std::vector<float> x(1000, -6.0f);
  std::fill_n(x.begin(), 300, 16.0f);
  EXPECT_EQ(judge_modes(two, {x, {}}, kOne, {}, 1).failed, "modes");
  for (float& v : x) v = v < 0 ? 1.0f : 11.0f;
  EXPECT_EQ(judge_modes(two, {x, {}}, kOne, {}, 1).failed, "");
}

}  // namespace
}  // namespace lockstep
