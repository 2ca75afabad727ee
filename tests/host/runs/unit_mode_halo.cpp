// SPDX-License-Identifier: Apache-2.0
// What lies about a mode at another scale.
#include <gtest/gtest.h>

#include <cmath>

#include "host/runs/mode_base.hpp"
#include "tests/support/nested.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

ModeLibrary library_of(const Job& job) {
  const RunOptions run = run_of(job);
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "halos");
  return search_modes(context, 0, {.gradients = 1e6}).library;
}

TEST(ModeHalos, AreFoundAtTheirScalesWithWhatTheyHold) {
  for (const int d : {3, 10, 20}) {
    const ModeLibrary library =
        library_of({.target = "mixture", .data = nested(d, {0.1, 1, 10}, {0.3, 0.3, 0.4})});
    ASSERT_EQ(library.size(), 1) << d;
    const auto& halos = library[0].halos;
    ASSERT_EQ(halos.size(), 2u) << d;
    for (int h = 0; h < 2; ++h) {
      EXPECT_NEAR(halos[h].scale, h == 0 ? 10 : 100, h == 0 ? 0.5 : 5) << d;
      // Shells are 1.3 apart: in 20 dimensions a peak is of two or three.
      EXPECT_NEAR(halos[h].log_mass, std::log(h == 0 ? 0.3 : 0.4), 0.2) << d;
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
  const ModeLibrary library = library_of({.target = "mixture", .data = spikes_in_bumps()});
  ASSERT_EQ(library.size(), 3);
  EXPECT_EQ(library.parts(), 5);
  for (int k = 0; k < 3; ++k) {
    const Mode& m = library[k];
    const bool wide = m.laplace_log_mass > std::log(0.2);
    ASSERT_EQ(m.halos.size(), wide ? 0u : 1u);
    if (!wide) EXPECT_NEAR(m.halos[0].scale, 20, 1);
  }
  EXPECT_NEAR(library.log_total(), 0, 0.2);
}

TEST(ModeHalos, NormalModesAndHeavyTailsHaveNone) {
  // One place at scales that overlap: its radius has one peak, with a tail.
  for (const std::string& data : {nested(5, {1, 1.5, 2.2, 3.3}, {0.4, 0.3, 0.2, 0.1}), std::string()})
    for (const char* target : {"mixture", "mixture20", "two_modes", "gaussian", "scattered"}) {
      if (data.empty() == (target == std::string("mixture"))) continue;
      const ModeLibrary library = library_of({.target = target, .data = data});
      EXPECT_EQ(library.parts(), library.size()) << target;
      EXPECT_GE(library.size(), 1) << target;
    }
}

}  // namespace
}  // namespace lockstep
