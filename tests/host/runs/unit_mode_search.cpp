// SPDX-License-Identifier: Apache-2.0
// The search for modes: what it finds, what it says, and that no bit of it depends on the division of the work.
#include "host/runs/mode_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/runs/mode_forecast.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/mode_starts.hpp"
#include "host/runs/starts.hpp"
#include "host/util/errors.hpp"
#include "targets/banana.hpp"
#include "targets/eight_schools.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture.hpp"
#include "targets/mixture20.hpp"
#include "targets/sensors.hpp"
#include "tests/support/target_input.hpp"

namespace lockstep {
namespace {
using testing::MemoryInput;

template <class Definition>
struct Case {
  explicit Case(MemoryInput in = {}) : target(in) {
    context.target = &target;
    context.key = make_stream_key(5, "search");
  }
  TargetOf<Definition> target;
  RunContext context;
};

/// Two spherical modes in `dim` dimensions, at the origin and at (apart, 0, ..).
MemoryInput two(int dim, double apart, double sd) {
  MemoryInput in;
  std::vector<double> means(2 * dim, 0.0);
  means[dim] = apart;
  in.arrays["means"] = {means, {2, dim}};
  in.arrays["weights"] = {{0.7, 0.3}, {2}};
  in.arrays["sds"] = {{1, sd}, {2}};
  return in;
}

TEST(ModeSearch, FindsTwentyModesAndWhatEachHolds) {
  Case<Mixture20Target> c;
  const SearchResult r = search_modes(c.context, 0, {});
  ASSERT_EQ(r.library.size(), 20);
  EXPECT_EQ(r.stopped, kSearchHits);
  EXPECT_GE(r.least_hits(), 10);
  EXPECT_LT(r.gradients, kSearchShare * kPlannedGradients);
  for (int k = 0; k < 20; ++k) {
    const Mode& m = r.library[k];
    EXPECT_NEAR(std::exp(m.laplace_log_mass), 0.05, 0.003);
    // Of n effective draws the relative error is about 1 / sqrt(n).
    EXPECT_NEAR(std::exp(m.log_mass), 0.05, 4 * 0.05 / std::sqrt(256 * m.effective_share)) << k;
    EXPECT_GT(m.effective_share, 0.3);
  }
}

TEST(ModeSearch, NoBitDependsOnThreads) {
  Case<MixtureTarget> c(testing::full_mixture());
  const SearchPlan plan{.gradients = 2e4};
  const SearchResult one = search_modes(c.context, 3, plan);
  c.context.threads = 2;
  const SearchResult both = search_modes(c.context, 3, plan), other = search_modes(c.context, 4, plan);
  ASSERT_EQ(one.library.size(), both.library.size());
  EXPECT_EQ(one.gradients, both.gradients);
  for (int k = 0; k < one.library.size(); ++k) {
    EXPECT_EQ(one.library[k].place, both.library[k].place);
    EXPECT_EQ(one.library[k].factor, both.library[k].factor);
    EXPECT_EQ(one.library[k].log_mass, both.library[k].log_mass);
    EXPECT_EQ(one.library[k].hits, both.library[k].hits);
  }
  EXPECT_NE(one.library[0].log_mass, other.library[0].log_mass);  // a replicate of its own
}

TEST(ModeSearch, TakesTheCovarianceOfCorrelatedModes) {
  Case<MixtureTarget> c(testing::full_mixture());
  const SearchResult r = search_modes(c.context, 0, {.gradients = 2e4});
  int found = 0;
  for (int k = 0; k < r.library.size(); ++k) {
    const Mode& m = r.library[k];
    if (std::abs(m.place[0]) > 0.2 || std::abs(m.place[1]) > 0.2) continue;  // that at the origin
    using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
    const Eigen::Matrix3d l = Eigen::Map<const Rows>(m.factor.data()), s = l * l.transpose();
    EXPECT_NEAR(s(0, 0), 1, 0.1);
    EXPECT_NEAR(s(1, 1), 2, 0.2);
    EXPECT_NEAR(s(1, 2), -0.5, 0.1);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

TEST(ModeSearch, StopsAtItsBudgetAndSaysSo) {
  Case<Mixture20Target> c;
  const SearchResult r = search_modes(c.context, 0, {.gradients = 3000});
  EXPECT_EQ(r.stopped, kSearchBudget);
  EXPECT_LT(r.gradients, 2 * 3000 + 20 * 256);
}

TEST(ModeSearch, SurvivesWhatIsBentOrAFunnel) {
  Case<BananaTarget> bent;
  EXPECT_EQ(search_modes(bent.context, 0, {.gradients = 1e5}).library.size(), 1);
  Case<EightSchoolsTarget> funnel;
  EXPECT_EQ(search_modes(funnel.context, 0, {.gradients = 1e5}).library.size(), 1);
}

// Widths of .02 and 10: a descent that trusts its model of six pairs too early ends between the modes.
TEST(ModeSearch, GoesOnAlongAxesThatAreWiderThanItsSteps) {
  Case<SensorsTarget> c;
  const SearchResult r = search_modes(c.context, 0, {.gradients = 4e5});
  EXPECT_GE(r.library.size(), 3);
  EXPECT_GT(r.total_hits(), 0.5 * r.starts);
}

/// In twelve dimensions a Student t with 5 degrees of freedom (twelve normals of one shape), weight .75, at the origin, and a
/// normal of standard deviation .8 at (4, 4, ..).
MemoryInput in_a_heavy_tail() {
  constexpr int kDim = 12;
  // sqrt(5 / q), q quantiles of chi^2 with 5 degrees of freedom
  std::vector<double> sds = {2.24, 1.66, 1.43, 1.28, 1.17, 1.08, 1.0, 0.93, 0.86, 0.79, 0.71, 0.59, 0.8};
  std::vector<double> means(12 * kDim, 0.0), weights(12, 0.75 / 12);
  means.insert(means.end(), kDim, 4.0);
  weights.push_back(0.25);
  MemoryInput in;
  in.arrays["means"] = {means, {13, kDim}};
  in.arrays["weights"] = {weights, {13}};
  in.arrays["sds"] = {sds, {13}};
  return in;
}

// Seen from a few starts in 10^5 alone. Descents down a heavy tail are long, and there were too few of them.
TEST(ModeSearch, FindsWhatHidesInAHeavyTail) {
  Case<MixtureTarget> c(in_a_heavy_tail());
  const SearchResult r = search_modes(c.context, 0, {.gradients = 1e6});
  EXPECT_EQ(r.library.size(), 2);
  EXPECT_GT(r.foretold, 0.9 * r.starts);
  EXPECT_LT(r.gradients, 1e6);
}
// Ends that are no ellipse's are not foretold, and cost what they did but for the trial.
TEST(ModeSearch, ForetellsNothingOfWhatIsBent) {
  Case<BananaTarget> c;
  const SearchResult r = search_modes(c.context, 0, {.gradients = 1e5});
  EXPECT_LT(r.foretold, 0.1 * r.starts);
  Case<GaussianTarget> one;  // every gradient leads there: all but the first round
  EXPECT_GT(search_modes(one.context, 0, {.gradients = 1e5}).foretold, 0.5 * 2048);
}
// Starts are thousands of standard deviations away along the narrow axes: a small angle says nothing of the wide one.
TEST(ModeSearch, FindsAModeBesideAnotherAlongAnAxisThatIsWide) {
  MemoryInput in;
  std::vector<double> means(10, 0.0), covariances;
  means[5] = 50;
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 25; ++i) covariances.push_back(i == 0 ? 100 : i % 6 == 0 ? 1e-4 : 0);
  in.arrays["means"] = {means, {2, 5}};
  in.arrays["weights"] = {{0.5, 0.5}, {2}};
  in.arrays["covariances"] = {covariances, {2, 5, 5}};
  Case<MixtureTarget> c(in);
  for (const std::uint32_t unit : {0u, 1u, 2u, 3u, 4u, 5u})
    EXPECT_EQ(search_modes(c.context, unit, {.gradients = 1e6}).library.size(), 2) << unit;
}
TEST(ModeForecast, IsByTheGradientInTheModesMetricAndBelievedOnceItCameTrue) {
  ModeLibrary modes(2);
  for (const double at : {0.0, 10.0}) {
    Mode m;
    m.place = {at, 0};
    m.factor = {2, 0, 1, 0.5};
    modes.add(m);
  }
  const Eigen::Matrix2d l = (Eigen::Matrix2d() << 2, 0, 1, 0.5).finished();
  const Eigen::Vector2d from(3, 4), second(10, 0);
  PointEngine::Rows x(2, 3), gradient(2, 3);
  x << 3, 3, 3, 4, 4, 4;
  gradient.col(0) = -0.01 * (l * l.transpose()).inverse() * from;  // of any elliptical density, this flat
  gradient.col(1) = (l * l.transpose()).inverse() * (second - from);
  gradient.col(2) = -from;  // to the first in another metric
  // In the metric of a mode that is narrow along one axis, at a small angle to the way, but past the mode.
  ModeLibrary narrow(2);
  Mode thin;
  thin.place = {0, 0};
  thin.factor = {1, 0, 0, 1e-3};
  narrow.add(thin);
  const Eigen::Vector2d beside = -Eigen::Vector2d(3 - 40, 4 * 1e6);  // to a mode at (40, 0) of the same shape
  EXPECT_GT(narrow.aim(0, from.data(), beside.data()).cosine, 0.999);
  EXPECT_GT(narrow.aim(0, from.data(), beside.data()).miss, 30);
  ModeForecast forecast;
  EXPECT_THAT(forecast.of(modes, x, gradient, 1), ::testing::ElementsAre(0, 1, -1));
  EXPECT_EQ(forecast.share(), 0);  // nothing is believed yet
  for (int n = 0; n < 9; ++n) forecast.came(1, true);
  EXPECT_FALSE(forecast.believed(1));
  forecast.came(1, true);
  EXPECT_TRUE(forecast.believed(1));
  EXPECT_NEAR(forecast.share(), 1 / 3., 1e-12);
  EXPECT_FALSE(forecast.believed(0));
  forecast.came(1, false);
  EXPECT_TRUE(forecast.believed(1));
  forecast.came(1, false);
  EXPECT_FALSE(forecast.believed(1));
  forecast.keep({1});
  forecast.came(0, true);
  for (int n = 0; n < 8; ++n) forecast.came(0, true);
  EXPECT_TRUE(forecast.believed(0));
}

TEST(ModeSearch, AHintIsACandidate) {
  Case<MixtureTarget> c(two(10, 12, 0.05));  // narrow in ten dimensions: no search from gradients sees it
  SearchPlan plan{.gradients = 2e4};
  EXPECT_EQ(search_modes(c.context, 0, plan).library.size(), 1);
  Eigen::VectorXd hint = Eigen::VectorXd::Zero(10);
  hint[0] = 12.03;
  plan.known = {hint};
  const SearchResult r = search_modes(c.context, 0, plan);
  ASSERT_EQ(r.library.size(), 2);
  EXPECT_NEAR(std::exp(r.library[0].laplace_log_mass), 0.3, 1e-3);
  // Nobody met it: it keeps no search from ending, and is no sign of more.
  EXPECT_EQ(r.library[0].hits, 0);
  EXPECT_EQ(r.least_hits(), 0);
  plan.gradients = 1e6;
  EXPECT_EQ(search_modes(c.context, 0, plan).stopped, kSearchHits);
  plan.known[0][0] = 12.5;  // ten of its sds away, from where a descent finds it
  const SearchResult near = search_modes(c.context, 0, plan);
  ASSERT_EQ(near.library.size(), 2);
  EXPECT_EQ(near.library[0].hits, 0);
}

// Scales about a tenth to one of 1e6 see the wide mode alone.
TEST(ModeSearch, LooksWhereTheModesLieThoughTheScaleIsFarTooWide) {
  Case<MixtureTarget> c(two(2, 5, 0.2));
  const SearchResult r = search_modes(c.context, 0, {.init_scale = 1e6, .gradients = 2e5});
  ASSERT_EQ(r.library.size(), 2);
  EXPECT_NEAR(std::exp(r.library[1].laplace_log_mass), 0.3, 1e-3);
}

// But most of those that begin about 0 keep to the scale asked for: here the second mode is to be seen from there alone.
TEST(ModeSearch, ATightModeAtZeroDoesNotDrawAllStartsToIt) {
  MemoryInput in = two(12, 5, 0.47 * 3e-4);
  in.arrays["sds"] = {{3e-4, 0.47 * 3e-4}, {2}};
  Case<MixtureTarget> c(in);
  int complete = 0;
  for (std::uint32_t unit = 0; unit < 5; ++unit)
    complete += search_modes(c.context, unit, {.gradients = 1e6}).library.size() == 2;
  EXPECT_GE(complete, 3);
}

// 30 scales away.
TEST(ModeSearch, LooksFarOutsideTheScale) {
  Case<MixtureTarget> c(two(5, 300, 1));
  EXPECT_EQ(search_modes(c.context, 0, {.gradients = 2.5e5}).library.size(), 2);
}

TEST(ModeSearch, OfAShortRunMaySpendWhatTheScoutHas) {
  Case<MixtureTarget> c(two(2, 5, 0.2));
  SearchPlan plan{.gradients = 0, .iterations = 100};
  const double before = search_modes(c.context, 0, plan).gradients;
  plan.least = 1e6;
  const double after = search_modes(c.context, 0, plan).gradients;
  EXPECT_LT(before, 1e5);
  EXPECT_GT(after, 2e5);
  EXPECT_LT(after, 1e6);
}

TEST(ModesAt, MakeModesOfPlacesOrRefuseThem) {
  Case<MixtureTarget> c(two(3, 12, 0.05));
  const Eigen::Vector3d near(0.8, -0.5, 0.3), same(-1, 1, 0), other(12.02, 0.01, -0.01);
  const SearchResult r = modes_at(c.context, 0, {near, same, other});
  ASSERT_EQ(r.library.size(), 2);
  EXPECT_NEAR(r.library[0].place[0], 0, 1e-6);
  EXPECT_NEAR(r.library[1].place[0], 12, 1e-6);
  EXPECT_NEAR(std::exp(r.library[1].laplace_log_mass), 0.3, 1e-3);
  EXPECT_THROW(modes_at(c.context, 0, {Eigen::Vector3d::Constant(1e200)}), UserError);
}

// --- what a run's draws say of them --------------------------------------------------------------------------

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
  SearchResult r = library_of_two(0.5), one;
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

TEST(ModeSearch, TellsANarrowModeFromTheWideOneAroundIt) {
  Case<MixtureTarget> c(two(2, 0.6, 0.05));  // within one standard deviation of the other's mean
  for (const SearchResult& r : {search_modes(c.context, 0, {}),
                                modes_at(c.context, 0, {Eigen::Vector2d(0, 0), Eigen::Vector2d(0.6, 0)})}) {
    ASSERT_EQ(r.library.size(), 2) << r.stopped;
    const int narrow = r.library[0].factor[0] < r.library[1].factor[0] ? 0 : 1;
    EXPECT_NEAR(std::exp(r.library[narrow].laplace_log_mass), 0.3, 0.03);
    EXPECT_NEAR(r.library[narrow].factor[0], 0.05, 0.01);
    EXPECT_NEAR(r.library[1 - narrow].factor[0], 1, 0.05);
    EXPECT_GE(r.least_hits(), 1);
  }
}

TEST(ModeSearch, WeighsNarrowModesBesideWideOnesInManyDimensions) {
  Case<MixtureTarget> c(
      two(50, 6, 0.25));  // draws of the narrow one are nearer to the wide one by distance alone
  const SearchResult r =
      modes_at(c.context, 0, {Eigen::VectorXd::Zero(50), 6 * Eigen::VectorXd::Unit(50, 0)});
  ASSERT_EQ(r.library.size(), 2);
  for (int k = 0; k < 2; ++k) {
    const Mode& m = r.library[k];
    const double share = m.factor[0] < 0.5 ? 0.3 : 0.7;
    EXPECT_GT(m.effective_share, 0.05);
    EXPECT_NEAR(std::exp(m.log_mass), share, 4 * share / std::sqrt(256 * m.effective_share)) << k;
  }
  const std::vector<double> typical(50, 0.25);  // of the origin's mode by either measure
  EXPECT_EQ(r.library.home(typical.data()), r.library[0].factor[0] < 0.5 ? 1 : 0);
  std::vector<double> of_narrow = typical;
  of_narrow[0] += 6;
  EXPECT_NE(r.library.home(of_narrow.data()), r.library.nearest(of_narrow.data()));
}

TEST(ModeSearch, TakesAxesOfVeryDifferentScales) {
  MemoryInput in = two(4, 0, 1);
  in.arrays.erase("sds");
  std::vector<double> means(8, 0.0), covariances(32, 0.0);
  means[4] = 30;
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 4; ++i) covariances[16 * k + 5 * i] = std::pow(10.0, 4.0 * (i - 1.5));  // 1e-6 to 1e6
  in.arrays["means"] = {means, {2, 4}};
  in.arrays["covariances"] = {covariances, {2, 4, 4}};
  Case<MixtureTarget> c(in);
  const Eigen::Vector4d one(0, 0, 0, 0), other(30, 0, 0, 0);
  const SearchResult r = modes_at(c.context, 0, {one, other});
  ASSERT_EQ(r.library.size(), 2);
  EXPECT_NEAR(std::exp(r.library[1].laplace_log_mass), 0.3, 1e-3);
}

/// The mixture of a wide mode at (60, 60) and one half as wide at (-65, -68): 85 and 94 from the origin.
MemoryInput far_apart() {
  MemoryInput in;
  in.arrays["means"] = {{60, 60, -65, -68}, {2, 2}};
  in.arrays["weights"] = {{0.5, 0.5}, {2}};
  in.arrays["sds"] = {{2, 1}, {2}};
  return in;
}

// One of two modes lies where the starts that were asked for come down; the other is as far away on the other side.
TEST(ModeSearch, LooksAsFarAwayAsWhatItFinds) {
  Case<MixtureTarget> c(far_apart());
  const SearchResult first = search_modes(c.context, 0, {.gradients = 100});  // ends after its first round
  EXPECT_EQ(first.library.size(), 1);
  EXPECT_EQ(first.scale, 10);
  EXPECT_THAT(beyond_starts(first), ::testing::AllOf(::testing::HasSubstr("began within 10 on an axis"),
                                                     ::testing::HasSubstr("--init-scale 60")));
  for (const double scale : {10.0, 60.0, 90.0}) {
    const SearchResult all = search_modes(c.context, 0, {.init_scale = scale, .gradients = 2e4});
    EXPECT_EQ(all.library.size(), 2) << scale;
    EXPECT_NEAR(all.scale, std::max(scale, 60.0), 1e-2) << scale;
    EXPECT_EQ(beyond_starts(all), "");
  }
  const std::vector<float> x = {60, 60};  // whatever samples by that library says it
  EXPECT_THAT(judge_modes(first, {x, {}}, 0, {}, 1).warnings, ::testing::Contains(beyond_starts(first)));
}

TEST(ModeSearch, WidensByTheModesMeanBesideTheSpreadBetweenThem) {
  const auto scale = [](const std::vector<double>& places) {
    ModeLibrary modes(1);
    for (const double x : places) {
      Mode m;
      m.place = {x};
      m.factor = {1};
      modes.add(m);
    }
    return widened(modes, 10);
  };
  EXPECT_EQ(scale({}), 10);
  EXPECT_EQ(scale({37}), 10);  // 10 sqrt(2 log 1000) = 37.17
  EXPECT_EQ(scale({37.3}), 37.3);
  EXPECT_EQ(scale({84, 94}), 89);   // later starts are between them alone
  EXPECT_EQ(scale({-84, 94}), 10);  // and here on both sides
  EXPECT_EQ(scale({0, 94}), 10);
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
