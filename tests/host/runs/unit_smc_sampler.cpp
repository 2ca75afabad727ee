// SPDX-License-Identifier: Apache-2.0
#include "host/runs/smc_sampler.hpp"

#include <set>

#include "host/runs/base_rows.hpp"
#include "host/runs/scout.hpp"
#include "tests/support/resumed.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

TEST(SystematicResampling, TakesEachByItsShare) {
  const std::vector<double> weight = {0, 3, 0, 0.5, 2.5, 2, 0};
  constexpr int kCount = 10, kOffsets = 4000;
  std::vector<double> mean(weight.size(), 0.0);
  for (int k = 0; k < kOffsets; ++k) {
    const auto from = systematic_resampling(weight, kCount, (k + 0.5) / kOffsets);
    ASSERT_EQ(from.size(), std::size_t(kCount));
    EXPECT_TRUE(std::is_sorted(from.begin(), from.end()));
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const auto copies = double(std::count(from.begin(), from.end(), int(i)));
      EXPECT_LT(std::abs(copies - kCount * weight[i] / 8), 1) << i;
      mean[i] += copies / kOffsets;
    }
  }
  // Over offsets spread evenly the mean is exact but for one offset where a part begins and one where it ends.
  for (std::size_t i = 0; i < weight.size(); ++i)
    EXPECT_NEAR(mean[i], kCount * weight[i] / 8, 2.0 / kOffsets) << i;
  EXPECT_TRUE(systematic_resampling({}, 0, 0.5).empty());
}

using Levels = SmcOptions::Levels;

/// A population on the path from N(0, 5^2) in each axis to a target.
class Populations : public FolderTest, public ::testing::WithParamInterface<Levels> {
 protected:
  static constexpr int kUnits = 4, kParticles = 64;

  struct Stage {
    SmcSampler sampler;
    SmcState run(const std::function<void()>& between = [] {}) {
      sampler.run(between);
      return sampler.state();
    }
    template <class Archive>
    void fields(Archive& archive) {
      sampler.fields(archive);
    }
  };
  std::unique_ptr<Stage> make(int moves = 2) const {
    const int d = target_->dim();
    auto engine = target_->engine(engine_spec(context_, {.kind = ModelKind::path}, units_, kParticles));
    const double sd = 5;
    write_base(*engine, {std::vector<double>(d, 0.0),
                         std::vector<double>(d, sd),
                         {},
                         {-d * (0.5 * std::log(2 * kPi) + std::log(sd))}});
    set_per_unit(*engine, ParameterLayout::log_zeta, {0});
    set_axis(*engine, engine->layout().scale(), std::vector<double>(d, 1.0), d);
    SmcOptions options;
    options.levels = GetParam();
    options.ladder = engine->set_ladder({0, 0.01, 0.05, 0.2, 0.5, 1}, std::vector<double>(6, 0.0),
                                        std::vector<double>(6, 0.0));
    if (GetParam() == Levels::given) options.most_levels = 6;
    if (GetParam() == Levels::own) options.metric.assign(std::size_t(kUnits) * d, sd);
    options.moves = moves;
    options.first_moves = 1;
    options.launch.num_leapfrog = 3;
    options.launch.begin = 100;
    std::vector<double> x(std::size_t(d) * engine->chains());
    for (int c = 0; c < engine->chains(); ++c)
      Draw<double>{context_.key, 0, std::uint32_t(c % kParticles), units_[c / kParticles]}.normals(
          Purpose::base, d, [&](int i, double z) { x[std::size_t(i) * engine->chains() + c] = sd * z; });
    return std::unique_ptr<Stage>(new Stage{{context_, std::move(engine), units_, x, options}});
  }
  const RunOptions run_ = run_of({.target = "gaussian", .target_settings = {{"dim", 3}, {"ratio", 3}}});
  const std::unique_ptr<TargetInstance> target_ = build_target(run_);
  const RunContext context_ = make_context(run_, *target_, "smc");
  const std::vector<std::uint32_t> units_ = {3, 1, 8, 5};
};

TEST_P(Populations, GoOnFromEveryLevel) {
  const SmcState end = expect_same_from_every_level(folder_, [&] { return make(); });
  EXPECT_EQ(end.beta, std::vector<double>(kUnits, 1));
  EXPECT_GT(end.divergences + 1, 0);  // counted, whatever there are
  if (GetParam() == Levels::own) {    // units came at different levels
    const auto waiting = std::count_if(end.arrived.begin(), end.arrived.end(),
                                       [](const auto& particles) { return !particles.empty(); });
    EXPECT_GT(waiting, 0);
    EXPECT_LT(waiting, kUnits);
  }
}

TEST_P(Populations, FindLogZAndCountGradients) {
  const auto stage = make(6);
  const SmcState end = stage->run();
  // log Z = 0. Within a level a particle's weight has a variance of about one: over the six levels and more of
  // one unit with 64 particles, log Z has a standard deviation of sqrt(6 / 64) = 0.3; of the mean of four, half.
  double mean = 0;
  for (double z : end.log_z) mean += z / kUnits;
  EXPECT_NEAR(mean, 0, 4 * 0.15);
  EXPECT_EQ(std::fmod(stage->sampler.total_gradients(), 1), 0);
  EXPECT_GT(stage->sampler.total_gradients(), double(end.levels) * kUnits * kParticles);
  // Particles come from the base: from few of it or from all.
  const std::set<int> ancestors(end.ancestor.begin(), end.ancestor.end());
  if (GetParam() == Levels::given)
    EXPECT_EQ(ancestors.size(), std::size_t(kUnits * kParticles));
  else
    EXPECT_LT(ancestors.size(), std::size_t(kUnits * kParticles));
  for (int c = 0; c < kUnits * kParticles; ++c) EXPECT_EQ(end.ancestor[c] / kParticles, c / kParticles);
}

TEST_P(Populations, UnitsOfTheirOwnDoNotSeeEachOther) {
  if (GetParam() != Levels::own) GTEST_SKIP() << "the others share their levels";
  const auto stage = make();
  const SmcState end = stage->run();
  EXPECT_EQ(stage->sampler.position().size(), std::size_t(3 * kUnits * kParticles));
  for (int u = 0; u < kUnits; ++u) {
    double square = 0;
    const auto x = stage->sampler.position();
    for (int p = 0; p < kParticles; ++p) square += std::pow(x[u * kParticles + p], 2) / kParticles;
    EXPECT_NEAR(std::log(square / target_->truth().variance(0)), 0, std::log(2)) << u;
    EXPECT_GT(end.variance[u], 0);
  }
}
std::string name_of(const ::testing::TestParamInfo<Levels>& info) {
  return info.param == Levels::own ? "own" : info.param == Levels::common ? "common" : "given";
}
INSTANTIATE_TEST_SUITE_P(Levels, Populations, ::testing::Values(Levels::own, Levels::common, Levels::given),
                         name_of);

class ScoutFiles : public FolderTest {};

TEST_F(ScoutFiles, GoesOnFromEveryLevelOfEveryRound) {
  // Banana: standard deviations 10 and 14, so that a start of 10 is widened.
  const RunOptions run = run_of({.target = "banana"});
  const auto target = build_target(run);
  const RunContext context = make_context(run, *target, "scout");
  const ScoutResult found = expect_same_from_every_level(folder_, [&] {
    return std::make_unique<Scout>(context, std::vector<std::uint32_t>{0, 1, 2, 3}, 64, 10);
  });
  const ScoutResult once = scout(context, {0, 1, 2, 3}, 64, 10);
  EXPECT_EQ(found.position, once.position);
  EXPECT_EQ(found.log_z, once.log_z);
  // Both rounds took place: more launches were paid for than the last round's levels have.
  for (int u = 0; u < 4; ++u) EXPECT_GT(found.gradients[u], 0);
}

}  // namespace
}  // namespace lockstep
