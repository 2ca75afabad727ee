// SPDX-License-Identifier: Apache-2.0
#include "host/commands/summary.hpp"

#include <gtest/gtest.h>

#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(Summary, HasFiguresOfDrawsByName) {
  const auto target = build_target(run_of({.target = "eight_schools", .sampler = "hmc"}));
  DrawFigures f;  // rhat, ess_bulk, ess_tail, ess_mean, mcse_mean, sd, q5, q50, q95 of each
  f.draws = 256;
  f.every = 4;
  for (int i = 0; i < 19; ++i)
    f.of.push_back({1.0 + i, 100.0 + i, 50.0 + i, 70.0 + i, 0.1, 1, -1.0 - i, 0, 1.0 + i});
  f.of[3].rhat = NAN;
  Estimates e;
  e.rhat.assign(10, 1.5);
  SampleResult r;
  r.diagnostics.of_draws = add_figures(r.estimates, *target, e, f);
  const auto s = to_json(r);
  EXPECT_EQ(s["estimates"]["quantiles"]["5%"][0], f.of[0].q5);
  EXPECT_EQ(s["estimates"]["quantities_quantiles"]["95%"]["tau"], f.of[10].q95);
  EXPECT_EQ(s["diagnostics"]["quantities_ess_bulk"]["theta[7]"], f.of[18].ess_bulk);
  EXPECT_EQ(s["diagnostics"]["rhat"][2], f.of[2].rhat);
  EXPECT_EQ(s["diagnostics"]["rhat"][3], 1.5);  // of batches, where ranks give none
  EXPECT_EQ(s["diagnostics"]["draws"]["every"], 4);
}

TEST(Summary, ComparesWithWhatIsKnown) {
  EXPECT_EQ(far_from_truth("log_z", {1, 0.1}, 0, 5, "run longer"),
            "log_z is 10.0 standard errors from the truth: run longer");
  EXPECT_EQ(far_from_truth("log_z", {1, 0.1}, 0, 10.5, "run longer"), "");
  EXPECT_EQ(far_from_truth("log_z", {1, 0.1}, NAN, 5, "run longer"), "");
  EXPECT_EQ(far_from_truth("log_z", {1, NAN}, 0, 5, "run longer"), "");
}

TEST(Summary, SaysWhatIsLeftOut) {
  std::vector<std::string> warnings;
  warn_unless_finite(warnings, "estimates.mean", {1, 2});
  EXPECT_TRUE(warnings.empty());
  warn_unless_finite(warnings, "estimates.mean", {1, NAN});
  EXPECT_EQ(warnings, std::vector<std::string>{"estimates.mean is not finite and left out"});
}

}  // namespace
}  // namespace lockstep
