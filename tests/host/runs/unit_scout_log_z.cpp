// SPDX-License-Identifier: Apache-2.0
// A scout's log Z, held against the modes where its particles lie.
#include <gtest/gtest.h>

#include <random>

#include "host/modes/mode_search.hpp"
#include "host/runs/starts.hpp"
#include "targets/mixture.hpp"
#include "tests/support/search_case.hpp"

namespace lockstep {
namespace {

/// Three modes in 4 dimensions, of which two are known, and particles half in each of these but for some in the third.
struct ScoutLogZ : ::testing::Test {
  static constexpr int kAxes = 4, kParticles = 512;
  static testing::MemoryInput three() {
    testing::MemoryInput in;
    in.arrays["means"] = {{0, 0, 0, 0, 9, 9, 9, 9, -20, 0, 0, 0}, {3, kAxes}};
    in.arrays["weights"] = {{0.45, 0.45, 0.1}, {3}};
    in.arrays["sds"] = {{1, 2, 1}, {3}};
    return in;
  }
  static ModeLibrary two_of(const ModeLibrary& all) {
    ModeLibrary some(kAxes);
    for (int k = 0; k < all.size(); ++k)
      if (all[k].place[0] > -10) some.add(all[k]);
    return some;
  }
  /// What becomes of log Z = `log_z` where this share of the particles lies in the third mode.
  double corrected(double log_z, double share = 0) const {
    ScoutResult found;
    found.particles = kParticles;
    found.dim = kAxes;
    found.log_z = {0, log_z};  // of the second unit
    found.gradients = {0, 0};
    found.position.assign(2 * kParticles * kAxes, 1e3);
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (int p = 0; p < kParticles; ++p)
      for (int i = 0; i < kAxes; ++i) {
        double& x = found.position[std::size_t(kParticles + p) * kAxes + i];
        x = p < share * kParticles ? (i == 0 ? -20 : 0) + normal(random)
            : p % 2                ? normal(random)
                                   : 9 + 2 * normal(random);
      }
    correct_log_z(found, 1, library, c.target);
    EXPECT_EQ(found.log_z[0], 0);
    return found.log_z[1];
  }
  testing::SearchCase<MixtureTarget> c{three()};
  const ModeLibrary library = two_of(search_modes(c.context, 0, {.gradients = 1e5}).library);
};

TEST_F(ScoutLogZ, GivesWayToModesThatAccountForAllItsParticles) {
  ASSERT_EQ(library.size(), 2);
  EXPECT_EQ(corrected(1.5), library.log_total());
  EXPECT_EQ(corrected(20), library.log_total());
  EXPECT_EQ(corrected(0.6), 0.6) << "not twice as much";
  EXPECT_EQ(corrected(-5), -5) << "it may have lost what the modes hold";
}

// Where a fifth of the particles have seen something else, there is something else.
TEST_F(ScoutLogZ, StandsWhereParticlesLieElsewhere) {
  EXPECT_EQ(corrected(1.5, 0.05), library.log_total());
  EXPECT_EQ(corrected(1.5, 0.2), 1.5);
}

// A library whose modes hold a tenth of the density where the particles are.
TEST_F(ScoutLogZ, StandsWhereTheDensityIsHigherThanModesHave) {
  ModeLibrary faint = library;
  for (int k = 0; k < 2; ++k) faint[k].log_mass -= std::log(10);
  ScoutResult found;
  found.particles = 1;
  found.dim = kAxes;
  found.log_z = {0};
  found.gradients = {0};
  found.position.assign(kAxes, 0.1);
  correct_log_z(found, 0, faint, c.target);
  EXPECT_EQ(found.log_z[0], 0);
  EXPECT_EQ(found.gradients[0], 1);
}

}  // namespace
}  // namespace lockstep
