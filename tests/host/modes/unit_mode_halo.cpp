// SPDX-License-Identifier: Apache-2.0
// What lies about a mode at another scale.
#include <gtest/gtest.h>

#include <cmath>

#include "host/modes/given_points.hpp"
#include "host/modes/mode_base.hpp"
#include "host/modes/mode_search.hpp"
#include "tests/support/nested.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

ModeLibrary library_of(const Job& job) {
  const RunOptions run = run_of(job);
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "halos");
  return search_modes(context, 0, {.known = usable_starts(run.init, *target), .gradients = 1e6}).library;
}

TEST(ModeHalos, AreFoundWithWhatTheyHold) {
  for (const int d : {3, 10, 20}) {
    const ModeLibrary library =
        library_of({.target = "mixture", .data = nested(d, {0.1, 1, 10}, {0.3, 0.3, 0.4})});
    ASSERT_EQ(library.size(), 1) << d;
    const auto& halos = library[0].halos;
    ASSERT_EQ(halos.size(), 2u) << d;
    for (const Halo& h : halos) {
      const bool middle = h.factor[0] < 5;
      for (int i = 0; i < d; ++i) {
        EXPECT_NEAR(h.place[i], 0, middle ? 1e-2 : 1e-1)
            << d;  // a hundredth of its sd: the next part is met too
        EXPECT_NEAR(h.factor[i * d + i], middle ? 1 : 10, 1e-2) << d;
      }
      EXPECT_NEAR(h.log_mass, std::log(middle ? 0.3 : 0.4), 1e-2) << d;
    }
    EXPECT_NEAR(library.log_total(), 0, 0.2) << d;
    EXPECT_EQ(library.parts(), 3);
    const auto normals = mode_normals(library);
    ASSERT_EQ(normals.size(), 3u);
    EXPECT_NEAR(normals[1].factor(0, 0) * normals[2].factor(0, 0), 10, 1);
  }
}

/// Of two spikes within bumps on something wide each has a bump, and nobody has what another holds.
TEST(ModeHalos, OfSeveralModesAreEachItsOwn) {
  Job job{.target = "mixture", .data = spikes_in_bumps()};
  job.init = run_of(job).data.string();
  const ModeLibrary library = library_of(job);
  ASSERT_EQ(library.size(), 3);
  EXPECT_EQ(library.parts(), 5);
  for (int k = 0; k < 3; ++k) {
    const Mode& m = library[k];
    const bool wide = m.laplace_log_mass > std::log(0.2);
    ASSERT_EQ(m.halos.size(), wide ? 0u : 1u);
    if (!wide) {
      EXPECT_NEAR(m.halos[0].factor[0], 1, 1e-2);
    }
  }
  EXPECT_NEAR(library.log_total(), 0, 0.2);
}

/// Of shapes and centres that are not the mode's.
TEST(ModeHalos, MayBeOfOtherShapes) {
  const ModeLibrary library = library_of(
      {.target = "mixture", .data = R"({"means": [[0, 0, 0], [0.01, -0.005, 0.002], [0.03, 0.01, -0.02]],
      "weights": [0.2, 0.5, 0.3], "covariances": [[[1e-4, 0, 0], [0, 4e-4, 0], [0, 0, 1e-4]],
      [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 0.05]], [[400, 0, -150], [0, 100, 0], [-150, 0, 200]]]})"});
  ASSERT_EQ(library.size(), 1);
  EXPECT_EQ(library.parts(), 3);
  for (const Halo& h : library[0].halos) {
    const bool middle = h.factor[0] < 5;
    EXPECT_NEAR(h.place[2], middle ? 0.002 : -0.02, middle ? 1e-3 : 0.02);
    EXPECT_NEAR(h.factor[3], middle ? 0.9 : 0, 0.01);  // L(1, 0): covariance over sd
    EXPECT_NEAR(h.log_mass, std::log(middle ? 0.5 : 0.3), 0.02);
  }
}

/// Where a part's ridge crosses the peak of another there is a mode that holds next to nothing; what it is on
/// takes its place.
TEST(ModeHalos, TakeThePlaceOfSpecks) {
  nlohmann::json data{{"means", {std::vector<double>(7, 0.0), {3000, 0, 0, 0, 0, 0, 0}}},
                      {"weights", {0.8, 0.2}}};
  for (int k = 0; k < 2; ++k)
    for (int i = 0; i < 7; ++i)
      for (int j = 0; j < 7; ++j)
        data["covariances"][k][i][j] = i == j ? std::pow(10.0, k == 0 ? 2 * i - 6 : 6 - 2 * i) : 0.0;
  const RunOptions run = run_of({.target = "mixture", .data = data.dump()});
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "specks");
  Eigen::VectorXd far = Eigen::VectorXd::Zero(7);
  far[0] = 3000;
  const ModeLibrary library = modes_at(context, 0, {Eigen::VectorXd::Zero(7), far}).library;
  ASSERT_EQ(library.size(), 2);
  EXPECT_EQ(library.parts(), 2);
  for (int k = 0; k < 2; ++k) {
    const bool first = library[k].place[0] < 1000;
    EXPECT_TRUE(library[k].mass_known());
    EXPECT_NEAR(library[k].log_mass, std::log(first ? 0.8 : 0.2), 0.3);
    for (int i = 0; i < 7; ++i)
      EXPECT_NEAR(std::log10(library[k].factor[i * 7 + i]), first ? i - 3 : 3 - i, 0.02) << k << " " << i;
  }
}

/// A thousandth of sd 10 has a twelfth of a second moment, and chains meet it a few times, each for long: what they have of it
/// is told beside what it holds, and the difference is in the errors (mean squares of z were 186 of those by chains alone).
TEST(ModeHalos, ErrorsOfChainsHoldWhatTheyLackOfThem) {
  const auto runs =
      runs_of({.target = "mixture",
               .sampler = "hmc",
               .data = R"({"means": [[0, 0], [5, 0]], "weights": [0.999, 0.001], "sds": [1, 10]})"},
              1e6, 8);
  double square = 0;
  for (const SampleResult& r : runs)
    square += mean_square_z(r.estimates.second, r.estimates.second_se, r.truth.second) / double(runs.size());
  EXPECT_LT(square, 1 + 4 * std::sqrt(2.0 / (2.0 * double(runs.size()))));
}

TEST(ModeHalos, NormalModesHaveNone) {
  for (const char* target : {"mixture20", "two_modes", "gaussian", "scattered"}) {
    const ModeLibrary library = library_of({.target = target});
    EXPECT_EQ(library.parts(), library.size()) << target;
    EXPECT_GE(library.size(), 1) << target;
  }
}

}  // namespace
}  // namespace lockstep
