// SPDX-License-Identifier: Apache-2.0
// What particles of sequential Monte Carlo miss, and say: a hierarchical regression whose narrow part few of them reach.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/evidence.hpp"

namespace lockstep::particle_drift_test {
namespace {

/// Groups agree, for all lack the same; particles that go on at beta = 1 leave for it, and with them moments.
TEST(ParticleDrift, WidensWhatGroupsSay) {
  constexpr int kRuns = 20;
  double square = 0, of_groups = 0, of_moments = 0, moments = 0;
  int by_moments = 0;
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
    for (const char* moment : {"mean", "second_moment"}) {
      const auto found = summary["estimates"][moment],
                 se = summary["estimates"][fmt::format("{}_se", moment)], truth = summary["truth"][moment];
      for (std::size_t i = 0; i < found.size(); ++i, ++moments)
        of_moments += std::pow((found[i].get<double>() - truth[i].get<double>()) / se[i].get<double>(), 2);
    }
    for (const std::string warning : summary["warnings"])
      by_moments +=
          warning.find("of the particles changes") != std::string::npos && !warning.starts_with("log(");
  }
  // Mean square of 20 standard normal numbers: below 2.27 in 999 of 1,000.
  EXPECT_LT(square, 2.27);
  EXPECT_GT(of_groups, 2.27);
  // Of 600 moments, of which at least 200 are independent: below 1.35. By groups alone it was 3.7.
  EXPECT_LT(of_moments / moments, 1.35);
  EXPECT_GT(by_moments, 0);
}

}  // namespace
}  // namespace lockstep::particle_drift_test
