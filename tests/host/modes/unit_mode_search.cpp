// SPDX-License-Identifier: Apache-2.0
// The search for modes: what it finds, what it says, and that no bit of it depends on the division of the work.
#include "host/modes/mode_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/modes/mode_halos.hpp"
#include "host/modes/mode_mass.hpp"
#include "host/modes/mode_shape.hpp"
#include "host/modes/mode_starts.hpp"
#include "host/runs/mode_gate.hpp"
#include "host/runs/starts.hpp"
#include "host/util/errors.hpp"
#include "targets/banana.hpp"
#include "targets/eight_schools.hpp"
#include "targets/gaussian.hpp"
#include "targets/mixture.hpp"
#include "targets/mixture20.hpp"
#include "targets/sensors.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {
using testing::MemoryInput;
template <class Definition>
using Case = testing::SearchCase<Definition>;

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

TEST(ModeSearch, SaysWhatManyModesHoldOfSecondMoments) {
  constexpr int kSide = 10;
  MemoryInput in;
  std::vector<double> means, weights, sds;
  double exact[2] = {0, 0}, total = 0;
  for (int n = 0; n < kSide * kSide; ++n) {
    const double place[2] = {8.0 * (n % kSide) - 30, 8.0 * (n / kSide) - 20}, sd = 0.5 + 0.01 * n;
    const double weight = n % 7 == 0 ? 20 : 1;
    for (int i = 0; i < 2; ++i) {
      means.push_back(place[i]);
      exact[i] += weight * (place[i] * place[i] + sd * sd);
    }
    weights.push_back(weight);
    sds.push_back(sd);
    total += weight;
  }
  for (double& w : weights) w /= total;
  in.arrays["means"] = {means, {kSide * kSide, 2}};
  in.arrays["weights"] = {weights, {kSide * kSide}};
  in.arrays["sds"] = {sds, {kSide * kSide}};
  Case<MixtureTarget> c(in);
  const SearchResult r = search_modes(c.context, 0, {.init_scale = 60});
  ASSERT_EQ(r.library.size(), kSide * kSide);
  const double scale = std::exp(r.held.log_scale);
  const std::size_t rows = r.held.part.size() / (kSide * kSide);
  for (int i = 0; i < 2; ++i) {
    double held = 0, variance = 0;
    for (int k = 0; k < r.library.size(); ++k) {
      held += r.held.part[rows * k + 2 + i] * scale;
      variance += r.held.variance[rows * k + 2 + i] * scale * scale;
    }
    const double error = std::sqrt(variance);
    EXPECT_LT(error, 0.02 * held);
    EXPECT_NEAR(held, exact[i] / total, 4 * error + 0.002 * held) << "draws between modes have one home";
  }
  EXPECT_FALSE(r.full());
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
  EXPECT_LT(r.gradients, 2 * 3000 + 20 * (kMassDraws + kRayPoints));
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

// Descents along axes from 1e-3 to 1e3 stop up to a few hundred nats before the mode.
TEST(ModeSearch, GoesOnWhereDescentsStopBeforeTheMode) {
  Case<MixtureTarget> c(testing::six_decades());
  for (std::uint32_t unit = 0; unit < 10; ++unit) {
    const SearchResult r = search_modes(c.context, unit, {.init_scale = 1000, .gradients = 1e6});
    ASSERT_EQ(r.library.size(), 2) << unit;
    EXPECT_LT(r.rejected, 0.01 * r.total_hits());
    for (int k = 0; k < 2; ++k)
      EXPECT_NEAR(std::exp(r.library[k].laplace_log_mass), r.library[k].place[0] > 1 ? 0.4 : 0.6, 1e-3);
  }
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
  Eigen::VectorXd x = Eigen::VectorXd::Constant(50, 0.25);  // of the origin's mode by either measure
  const auto home = [&] { return r.library.of_points(x, ModeLibrary::By::density, 1)[0]; };
  EXPECT_EQ(home(), r.library[0].factor[0] < 0.5 ? 1 : 0);
  x[0] += 6;  // of the narrow one
  EXPECT_NE(home(), r.library.nearest(x.data()));
  EXPECT_EQ(r.library.of_points(x, ModeLibrary::By::distance, 1)[0], r.library.nearest(x.data()));
}

// Of a core in the midst of something ten times as wide, which draws from far out would carry.
TEST(ModeSearch, WeighsTheCoreOfSomethingWider) {
  for (const int d : {1, 5, 20}) {
    MemoryInput in = two(d, 0, 10);
    Case<MixtureTarget> c(in);
    for (std::uint32_t unit = 0; unit < 8; ++unit) {
      const SearchResult r = modes_at(c.context, unit, {Eigen::VectorXd::Zero(d)});
      ASSERT_EQ(r.library.size(), 1);
      const Mode& m = r.library[0];
      EXPECT_GE(m.effective_share, kResembles * usual_effective_share(d)) << d;
      const double error = 4 / std::sqrt(256 * m.effective_share);
      EXPECT_GT(std::exp(m.log_mass), 0.7 * (1 - error)) << d;
      EXPECT_LT(std::exp(m.log_mass), (d == 20 ? 0.7 : 1.0) * (1 + error))
          << d;                                 // of all, where draws reach it
      const double core = d == 1 ? 0.79 : 0.7;  // with what of the wide part lies there
      EXPECT_NEAR(std::exp(m.core_log_mass), core, core * error) << d;
    }
  }
}

// So narrow a core that the first differences of gradients see what is wide alone.
TEST(ModeSearch, SeesPeaksThatAreNarrowerThanItsDifferences) {
  for (const int d : {1, 2}) {
    MemoryInput in = two(d, 0, 1e-5);
    Case<MixtureTarget> c(in);
    const SearchResult r = modes_at(c.context, 0, {Eigen::VectorXd::Zero(d)});
    ASSERT_EQ(r.library.size(), 1);
    EXPECT_NEAR(r.library[0].factor[0], 1e-5, 1e-8);
    EXPECT_NEAR(std::exp(r.library[0].core_log_mass), 0.3, 0.1);
  }
}

// A flat top that then falls steeply is as wide as the usual differences see it.
TEST(ModeSearch, TakesFlatTopsAsTheyAre) {
  MemoryInput in;
  in.arrays["means"] = {{-0.1, 0.1}, {2, 1}};
  in.arrays["weights"] = {{0.5, 0.5}, {2}};
  in.arrays["sds"] = {{0.100001, 0.100001}, {2}};
  Case<MixtureTarget> c(in);
  const SearchResult r = modes_at(c.context, 0, {Eigen::VectorXd::Zero(1)});
  ASSERT_EQ(r.library.size(), 1);
  EXPECT_NEAR(std::exp(r.library[0].log_mass), 1, 0.3);
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
  EXPECT_THAT(judge_modes(first, {x, {}}, LogZ{0, 0}, {}, 1).warnings,
              ::testing::Contains(beyond_starts(first)));
}

// All starts lie within the first of two modes, and so do those from a hundred times as far.
TEST(ModeSearch, LooksOutsideAModeThatIsWiderThanTheScale) {
  Case<MixtureTarget> c(two(5, 12, 0.5));
  const SearchResult r = search_modes(c.context, 0, {.init_scale = 1e-4, .gradients = 2e5});
  EXPECT_EQ(r.library.size(), 2);
  EXPECT_NEAR(r.scale, 10, 1e-2);
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

}  // namespace
}  // namespace lockstep
