// SPDX-License-Identifier: Apache-2.0
// The pseudo-extended chain of `lockstep evidence` within its budget of gradients.
#include <gtest/gtest.h>

#include "host/commands/evidence.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep::pe_budget_test {
namespace {

EvidenceResult of(const std::string& target, double gradients, std::uint64_t seed, Settings settings = {}) {
  RunOptions r = testing::run_of({.target = target, .sampler = "pe"});
  r.command = "evidence";
  r.sampler_settings = std::move(settings);
  r.gradients = gradients;
  r.chains = 0;
  r.quiet = true;
  r.warmup = RunOptions().warmup, r.iterations = RunOptions().iterations;
  r.seed = seed;
  return std::get<EvidenceResult>(evidence(r));
}

// Trajectories of the usual time would take all of it, and twice that, before anything is recorded.
TEST(PseudoExtendedBudget, LeavesHalfToWhatIsRecorded) {
  double z = 0;
  int runs = 0;
  for (const std::string target : {"mixture20", "banana", "flower"})
    for (const std::uint64_t seed : {1, 2, 3}) {
      const EvidenceResult e = of(target, 4e6, seed);
      EXPECT_LT(e.cost.gradients, 1.02 * 4e6) << target << seed;
      EXPECT_LT(e.cost.warmup_gradients, 0.55 * 4e6) << target << seed;
      EXPECT_GE(e.iterations, 100) << target << seed;
      z += std::pow((e.log_z.estimate - e.truth.log_z) / e.log_z.se, 2);
      ++runs;
    }
  EXPECT_LT(z / runs, 1 + 4 * std::sqrt(2.0 / runs));  // a mean of squares of normals
}

TEST(PseudoExtendedBudget, ThatPaysForUsualTrajectoriesShortensNone) {
  const EvidenceResult e = of("gaussian", 2e7, 1), given = of("gaussian", 2e7, 1, {{"num_leapfrog", 6}});
  EXPECT_NEAR(e.diagnostics.step_size * e.diagnostics.num_leapfrog, 0.8, 0.2);
  EXPECT_NEAR(given.diagnostics.num_leapfrog, 6, 1);
}

}  // namespace
}  // namespace lockstep::pe_budget_test
