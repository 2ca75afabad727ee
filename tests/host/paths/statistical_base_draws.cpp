// SPDX-License-Identifier: Apache-2.0
// What draws of the base claim of themselves, over many seeds: on modes that are not normal, and on tails that no base has.
#include <gtest/gtest.h>

#include <cmath>

#include "host/commands/evidence.hpp"
#include "host/util/files.hpp"

namespace lockstep::base_draws_test {
namespace {

RunOptions options(const std::string& target, std::uint64_t seed) {
  RunOptions r;
  r.command = "evidence";
  r.target = target;
  r.sampler = "st";
  r.gradients = 2e6;
  r.chains = 0;
  r.seed = seed;
  r.device = "cpu";
  r.quiet = true;
  return r;
}

/// Three modes in five dimensions, each of three scales about one centre, like a Student t.
std::string heavy_modes() {
  nlohmann::json data;
  for (int mode = 0; mode < 3; ++mode)
    for (int scale = 0; scale < 3; ++scale) {
      std::vector<double> mean(5);
      for (int i = 0; i < 5; ++i) mean[i] = 7 * std::sin(1.0 + 2.0 * mode + 1.7 * i);
      data["means"].push_back(mean);
      data["sds"].push_back(0.8 * std::pow(1.6, scale));
      data["weights"].push_back((1 + mode) * std::vector{0.4, 0.45, 0.15}[scale]);
    }
  const std::string name = ::testing::TempDir() + "lockstep-heavy-modes.json";
  write_atomically(name, data.dump());
  return name;
}

/// Sums of squares over seeds: of errors over what is claimed of them, and of errors.
struct Squares {
  double z = 0, means = 0, seconds = 0, log_z = 0, error = 0;
};
Squares squares(RunOptions r, int seeds) {
  Squares s;
  for (int seed = 1; seed <= seeds; ++seed) {
    r.seed = 7000 + std::uint64_t(seed);
    const auto found = std::get<EvidenceResult>(evidence(r));
    const Estimate log_z = {found.log_z.estimate, found.log_z.se};
    const double off = log_z.estimate - found.truth.log_z;
    s.log_z += off * off / seeds;
    s.z += off * off / (log_z.se * log_z.se) / seeds;
    const std::size_t d = found.estimates.mean.size();
    for (std::size_t i = 0; i < d; ++i) {
      const double apart = found.estimates.mean[i] - found.truth.mean[i];
      s.error += apart * apart / double(d) / seeds;
      s.means += apart * apart / std::pow(found.estimates.mean_se[i], 2) / double(d) / seeds;
      const double of_square = found.estimates.second[i] - found.truth.second[i];
      s.seconds += of_square * of_square / std::pow(found.estimates.second_se[i], 2) / double(d) / seeds;
    }
  }
  return s;
}

// Squares of errors over claims have mean one and, of eight groups, variance four: of 24 seeds four standard errors above it
// are 2.6. Means of one run go together: as if there were one.
constexpr int kSeeds = 24;
const double kMost = 1 + 4 * 2 / std::sqrt(double(kSeeds));

TEST(BaseDraws, ErrorsHoldAndAreSmallerOnHeavyModes) {
  RunOptions r = options("mixture", 1);
  r.data = heavy_modes();
  const Squares with = squares(r, kSeeds);
  r.sampler_settings = {{"base_draws", false}};
  const Squares without = squares(r, kSeeds);
  EXPECT_LT(with.z, kMost);
  EXPECT_LT(with.means, kMost);
  EXPECT_LT(without.z, kMost);
  EXPECT_LT(without.means, kMost);
  // Two such sums are in the ratio of 4 once in a thousand where errors are alike (24 and 24).
  EXPECT_LT(with.log_z, without.log_z / 4);
  EXPECT_LT(with.error, without.error);
}

TEST(BaseDraws, ErrorsHoldOnTailsThatNoBaseHas) {
  RunOptions gp =
      options("gp_regr", 1);  // log alpha has a tail of exp(x), which neither draws nor chains often meet
  gp.target_settings["seed"] = 3;
  gp.gradients = 1e6;
  for (const RunOptions& r : {options("eight_schools", 1), gp}) {
    const Squares with = squares(r, kSeeds);
    EXPECT_LT(with.z, kMost) << r.target;
    EXPECT_LT(with.means, kMost) << r.target;
    EXPECT_LT(with.seconds, kMost) << r.target;
  }
}

/// Means of a mixture are sums of its normals' too, and control variates of them are not too many.
TEST(BaseDraws, MeansOfNormalModesAreExactInManyDimensions) {
  RunOptions r = options("scattered", 1);
  r.target_settings = {{"modes", 10}, {"dim", 20}};
  r.gradients = 3e6;
  EXPECT_LT(squares(r, 1).error, 1e-8);
}

}  // namespace
}  // namespace lockstep::base_draws_test
