// SPDX-License-Identifier: Apache-2.0
// Whole runs on more modes than chains jump between.
#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/sampler_run.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::many_modes_test {
namespace {

using namespace testing;

constexpr int kDim = 6;
constexpr double kRare = 0.15;  // of each axis, on its own

/// The 2^6 corners of a cube of side 10 about `centre`: .85 of each axis below, .15 above. The 32 largest hold all but 2.7 % of it.
std::string corners(double centre) {
  nlohmann::json means, weights, sds;
  for (int corner = 0; corner < 1 << kDim; ++corner) {
    double weight = 1;
    nlohmann::json mean;
    for (int i = 0; i < kDim; ++i) {
      const bool above = (corner >> i & 1) != 0;
      weight *= above ? kRare : 1 - kRare;
      mean.push_back(centre + (above ? 5 : -5));
    }
    means.push_back(mean);
    weights.push_back(weight);
    sds.push_back(1);
  }
  return nlohmann::json{{"means", means}, {"weights", weights}, {"sds", sds}}.dump();
}

/// Chains never visit the others, and agree: of passing runs of so many gradients means were up to seven of their errors off. The
/// search knows what these modes hold.
TEST(ManyModes, ErrorsHoldThoseThatChainsDoNotJumpTo) {
  constexpr int kSeeds = 4;
  const double limit = family_quantile(1e-4, 2 * 2 * kDim * kSeeds);
  int passed = 0;
  for (const double centre : {0.0, 20.0}) {
    const double mean = centre - 5 * (1 - 2 * kRare), second = mean * mean + 1 + 100 * kRare * (1 - kRare);
    for (const SampleResult& r :
         runs_of({.target = "mixture", .sampler = "hmc", .data = corners(centre)}, 1e6, kSeeds)) {
      if (r.verdict != "pass") continue;
      ++passed;
      for (int i = 0; i < kDim; ++i) {
        EXPECT_LT(std::abs(r.estimates.mean[i] - mean), limit * r.estimates.mean_se[i]);
        EXPECT_LT(r.estimates.mean_se[i], 0.027 * 10) << "what is not visited, as far away as it may lie";
        EXPECT_LT(std::abs(r.estimates.second[i] - second), limit * r.estimates.second_se[i]);
      }
    }
  }
  EXPECT_GE(passed, 4) << "else chains that began in one of the others never leave, and the run fails";
}

}  // namespace
}  // namespace lockstep::many_modes_test
