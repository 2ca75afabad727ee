// SPDX-License-Identifier: Apache-2.0
#include "host/runs/path_profile.hpp"

#include "host/runs/starts.hpp"
#include "tests/support/function_target.hpp"
#include "tests/support/resumed.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep {
namespace {

using namespace testing;

double bent(const std::array<double, ParameterLayout::kBend>& bend, double beta) {
  double sum = 0;
  for (std::size_t k = 0; k < bend.size(); ++k) sum += bend[k] * std::pow(beta, 0.25 * double(k + 1));
  return sum;
}

/// From normals of given widths to a normal with other sds on each axis, both normalised, zeta e^-tilt too large.
class Profile : public FolderTest {
 protected:
  static constexpr int kUnits = 2;
  static constexpr double kWidth[kUnits] = {20, 5}, kTilt = 1;

  Profile() {
    const std::size_t d = std::size_t(target_->dim());
    frozen_.step_size.assign(kUnits, 0.1);
    frozen_.trajectory_time.assign(kUnits, 1.0);
    frozen_.log_zeta.assign(kUnits, kTilt);
    frozen_.base_mean.assign(kUnits * d, 0.0);
    for (double width : kWidth) frozen_.base_sd.insert(frozen_.base_sd.end(), d, width);
    frozen_.scale = frozen_.base_sd;
  }
  std::unique_ptr<ProfileRun> make() const {
    return std::make_unique<ProfileRun>(context_, config_, std::vector<std::uint32_t>{3, 1}, frozen_);
  }
  /// Each axis is normal all the way, of precision beta / sd^2 + (1 - beta) / width^2.
  double log_z(std::size_t unit, double beta) const {
    double sum = -kTilt * beta;
    for (int i = 0; i < target_->dim(); ++i) {
      const double sd = std::sqrt(target_->truth().variance(i)), width = kWidth[unit];
      sum -= beta * std::log(sd) + (1 - beta) * std::log(width) +
             0.5 * std::log(beta / (sd * sd) + (1 - beta) / (width * width));
    }
    return sum;
  }

  const RunOptions run_ = run_of({.target = "gaussian", .target_settings = {{"dim", 6}, {"ratio", 3}}});
  const std::unique_ptr<TargetInstance> target_ = build_target(run_);
  const RunContext context_ = make_context(run_, *target_, "profile");
  const SamplerConfig config_ = sampler_config(run_, target_->dim(), target_->tails());
  Frozen frozen_;
};

TEST_F(Profile, GoesOnFromEveryLevel) {
  const PathProfile profile = expect_same_from_every_level(folder_, [&] { return make(); });
  for (std::size_t u = 0; u < kUnits; ++u) {
    EXPECT_EQ(profile.beta[u].back(), 1);
    EXPECT_GT(profile.gradients[u], 512.0 * double(profile.beta[u].size()));
  }
  EXPECT_LT(profile.beta[1].size(), profile.beta[0].size())
      << "it began closer, and does not wait in the profile";
}

TEST_F(Profile, IsThatOfAPathOfNormals) {
  const auto run = make();
  while (run->step()) continue;
  const PathProfile profile = run->finish();
  for (std::size_t u = 0; u < kUnits; ++u) {
    // From level to level half of 512 particles are effective: each adds 1 / 512 to the variance.
    for (std::size_t k = 0; k < profile.beta[u].size(); ++k)
      EXPECT_NEAR(profile.log_z[u][k], log_z(u, profile.beta[u][k]), 4 * std::sqrt(double(k) / 512) + 1e-6)
          << u << ", level " << k;
    EXPECT_LT(log_z(u, 0.1), -0.5) << "there is something to flatten";
    const double error = 4 * std::sqrt(double(profile.beta[u].size()) / 512);
    const auto bend = profile.bend(u, kTilt, -0.5, -0.5);
    for (double beta = 0; beta <= 1; beta += 1.0 / 64)
      EXPECT_NEAR(log_z(u, beta) + bent(bend, beta), -kTilt * beta, error) << u << ", beta " << beta;
  }
}

TEST(PathProfile, KeepsTheEndThatIsSafe) {
  const auto profile = [](double end) {
    PathProfile p;
    p.gradients = {0};
    p.beta = {{}};
    p.log_z = {{}};
    for (int k = 0; k <= 20; ++k) {
      const double beta = std::pow(k / 20.0, 4);
      p.beta[0].push_back(beta);
      p.log_z[0].push_back(-6 * std::sqrt(beta) + (6 + end) * beta);
    }
    return p;
  };
  for (double end : {-4.0, -1.0, 0.5}) {  // of particles; what log zeta says is -1
    const auto bend = profile(end).bend(0, 1, -0.5, -0.5);
    EXPECT_NEAR(bent(bend, 1) + end, std::min(end, -1.0), 1e-3) << end;
    EXPECT_NEAR(bent(bend, 0.25) - 3 + (6 + end) / 4, std::min(end, -1.0) / 4, 1e-2) << end;
  }
  const auto steeper = profile(-3).bend(0, 3, -0.5, -0.5);
  EXPECT_NEAR(bent(steeper, 1) - 3, -1, 1e-3) << "a tilt of 3 is more than a flat path needs";
  PathProfile broken = profile(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(broken.bend(0, 1, 0, 0), (std::array<double, ParameterLayout::kBend>{}));
  PathProfile lost = profile(0);
  lost.beta[0].pop_back();
  lost.log_z[0].pop_back();
  EXPECT_EQ(lost.bend(0, 1, 0, 0), (std::array<double, ParameterLayout::kBend>{}))
      << "particles did not arrive";
}

TEST(PathProfile, TakesWhatIsDeep) {
  PathProfile p;
  p.beta = {{0, 0.5, 1}};
  for (const auto& [middle, end, share] : std::vector<std::array<double, 3>>{
           {-2, 0, 0}, {-2.7, 0, 0.5}, {-5, 0, 1}, {-3.5, -3, 0}, {-4.2, -3, 0.5}, {1, 0, 0}}) {
    p.log_z = {{0, middle, end}};
    EXPECT_NEAR(p.share(0), share, 1e-12) << middle << ", " << end;
  }
}

// Where a base is close the first level is far from 0, and nobody has seen what lies before it.
TEST(PathProfile, IsFlatBeforeTheFirstLevelToo) {
  for (int dim : {5, 100, 300}) {
    // From N(0, 1.2^2) to N(0, 1) on each axis, with levels at which half of the particles are effective.
    const auto log_z = [&](double beta) {
      const double hot = (1 - beta) / 1.44;
      return dim * (-(1 - beta) * std::log(1.2) - 0.5 * std::log(beta + hot));
    };
    PathProfile p;
    p.beta = {{}};
    p.log_z = {{}};
    for (double beta = 0; beta < 1; beta += 1.6 / std::sqrt(dim)) {
      p.beta[0].push_back(beta);
      p.log_z[0].push_back(log_z(beta));
    }
    p.beta[0].push_back(1);
    p.log_z[0].push_back(0);
    const auto bend = p.bend(0, 1, -0.5, -0.5);
    for (int k = 1; k <= 256; ++k) {
      const double beta = std::pow(k / 256.0, 4);
      EXPECT_NEAR(log_z(beta) + bent(bend, beta), -beta, 0.6) << dim << " dimensions, beta " << beta;
    }
  }
}

TEST(PathProfile, GoesWhereThePathIsLong) {
  PathProfile p;
  p.beta = {{0}, {0, 1}};
  p.log_z = {{0}, {0, 0}};
  for (int k = 1; k <= 40; ++k) {  // quantiles of a density ~ beta^-0.8
    p.beta[0].push_back(std::pow(k / 40.0, 1 / 0.2));
    p.log_z[0].push_back(0);
  }
  EXPECT_NEAR(p.exponent(0), -0.8, 0.02);
  EXPECT_EQ(p.exponent(1), -0.5) << "one step says nothing";
  // From beta^-1/2 to beta^-0.8: a factor of beta^-0.3 beyond the first level, as a polynomial has it.
  const auto bend = p.bend(0, 0, -0.5, -0.8);
  EXPECT_NEAR(bent(bend, 0.9) - bent(bend, 0.01), -0.3 * std::log(90), 0.4);
}

TEST(ReachModes, WidensAxesUpToWhereModesLie) {
  SearchResult found;
  found.library = ModeLibrary(2);
  const auto add = [&](double x, double y, double log_mass) {
    Mode mode;
    mode.place = {x, y};
    mode.factor = {1, 0, 0, 1};
    mode.laplace_log_mass = log_mass;
    found.library.add(mode);
  };
  add(1, 2, 0);
  add(7, 1, -9);     // reached from sd 2
  add(1, 100, -13);  // five times as wide, no more
  add(500, 1, -15);  // less than a millionth
  Frozen frozen;
  frozen.base_mean = {1, 2};
  frozen.base_sd = {1, 1};
  reach_modes({found}, frozen);
  EXPECT_NEAR(frozen.base_sd[0], 2, 1e-12);
  EXPECT_NEAR(frozen.base_sd[1], 5, 1e-12);
  frozen.base_sd = {3, 7};
  reach_modes({found}, frozen);
  EXPECT_EQ(frozen.base_sd[0], 3);
  EXPECT_NEAR(frozen.base_sd[1], 98.0 / 3, 1e-12);
  reach_modes({}, frozen);
  EXPECT_EQ(frozen.base_sd[0], 3);
}

/// log Gamma(a) on two axes: a tail of e^(a x), and a wall of exp(-e^x) in the midst of every normal base, behind which no
/// inverse temperature but 0 would lead.
TEST(Bridge, CountsWhatLiesBehindAWall) {
  constexpr double kShape = 0.02;
  const FunctionTarget target(2, [](const double* x, double* gradient) {
    double sum = -2 * std::lgamma(kShape);
    for (int i = 0; i < 2; ++i) {
      sum += kShape * x[i] - std::exp(x[i]);
      gradient[i] = kShape - std::exp(x[i]);
    }
    return sum;
  });
  constexpr int kUnits = 2;
  const ChainRunResult r = run_on(target, {.iterations = 300, .precision = "double"}, {0, 1});
  for (int u = 0; u < kUnits; ++u) {
    EXPECT_LT(std::abs(r.log_z[u].estimate), family_quantile(1e-4, kUnits) * r.log_z[u].se);
    EXPECT_LT(r.log_z[u].se, 0.1);
    EXPECT_LT(r.frozen.bridge[u].log_share, -0.2);  // log Z would be as much too large
  }
}

}  // namespace
}  // namespace lockstep
