// SPDX-License-Identifier: Apache-2.0
// Whole runs on targets whose parts lie within each other at several scales: no trajectory leads from one to the next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/evidence.hpp"
#include "tests/support/nested.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep::mode_halos_test {
namespace {

using namespace testing;
using ::testing::Contains;

EvidenceResult of(const std::string& data, const char* method, const char* base = "auto") {
  RunOptions r;
  r.command = "evidence";
  r.target = "mixture";
  r.data = run_of({.target = "mixture", .data = data}).data;
  r.sampler = method;
  r.device = "cpu";
  r.seed = 1;
  r.sampler_settings = {{"exact_draws", "none"}, {"base", base}};
  r.chains = 0;
  r.gradients = 4e6;
  r.quiet = true;
  return std::get<EvidenceResult>(evidence(r));
}

TEST(ModeHalos, EveryMethodMeetsThemAndFromTheScoutsBaseSaysThatItDoesNot) {
  for (const std::string& data : {nested(10, {0.1, 1, 10}, {0.3, 0.3, 0.4}), spikes_in_bumps()}) {
    for (const char* method : {"st", "pt", "smc", "ais"}) {
      const EvidenceResult result = of(data, method);
      EXPECT_EQ(result.verdict, "pass") << method;
      EXPECT_LT(std::abs(result.log_z.estimate), 4 * result.log_z.se) << method;
      EXPECT_LT(result.log_z.se, 0.03) << method;
    }
    EXPECT_THAT(of(data, "st", "scout").failed_gates, Contains("modes"));
  }
}

TEST(ModeHalos, PseudoExtendedChainsMeetThem) {
  const Outcome result =
      run({.target = "mixture", .iterations = 4000, .data = nested(3, {0.1, 1, 10}, {0.3, 0.3, 0.4})});
  const auto& z = result.result.log_z;
  ASSERT_FALSE(z.empty());
  EXPECT_LT(std::abs(z[0].estimate), 4 * z[0].se);
  EXPECT_LT(z[0].se, 0.1);
  EXPECT_TRUE(result.failed(0).empty());
}

}  // namespace
}  // namespace lockstep::mode_halos_test
