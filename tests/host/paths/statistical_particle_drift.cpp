// SPDX-License-Identifier: Apache-2.0
// What particles of sequential Monte Carlo miss, and say: a hierarchical regression whose narrow part few of them reach.
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/evidence.hpp"

namespace lockstep::particle_drift_test {
namespace {

/// Groups agree, for all lack the same; particles that go on at beta = 1 leave for it.
TEST(ParticleDrift, WidensWhatGroupsSay) {
  constexpr int kRuns = 20;
  double square = 0, of_groups = 0;
  for (int seed = 1; seed <= kRuns; ++seed) {
    RunOptions r;
    r.command = "evidence";
    r.target = "radon";
    r.sampler = "smc";
    r.gradients = 4e6;
    r.chains = 0;
    r.seed = 9000 + seed;
    r.device = "cpu";
    r.quiet = true;
    const auto summary = to_json(std::get<EvidenceResult>(evidence(r)));
    const double error = summary["log_z"]["estimate"].get<double>() - summary["truth"]["log_z"].get<double>();
    square += std::pow(error / summary["log_z"]["se"].get<double>(), 2) / kRuns;
    of_groups += std::pow(error / summary["diagnostics"]["of_groups"]["se"].get<double>(), 2) / kRuns;
  }
  // Mean square of 20 standard normal numbers: below 2.27 in 999 of 1,000.
  EXPECT_LT(square, 2.27);
  EXPECT_GT(of_groups, 2.27);
}

}  // namespace
}  // namespace lockstep::particle_drift_test
