// SPDX-License-Identifier: Apache-2.0
#include "host/runs/smc_sampler.hpp"

#include <set>

#include "host/engines/base_density.hpp"
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

TEST(LargestStep, HalvesItsWay) {
  const auto below = [](double limit) { return [limit](double step) { return step <= limit; }; };
  EXPECT_EQ(largest_step(0.7, 1e-9, 50, below(0.7)), 0.7);
  EXPECT_NEAR(largest_step(0.7, 1e-9, 50, below(0.3)), 0.3, 1e-15);
  EXPECT_EQ(largest_step(1, 1e-9, 3, below(0.3)), 0.25);  // 1/2 no, 1/4 yes, 3/8 no
  EXPECT_EQ(largest_step(1, 1e-9, 50, below(-1)), 1e-9);
}

using Levels = SmcOptions::Levels;

/// A population on the path from N(0, 20^2) in each axis to a target, but for one unit, which begins closer.
class Populations : public FolderTest, public ::testing::WithParamInterface<Levels> {
 protected:
  static constexpr int kUnits = 4, kParticles = 64, kSteps = 40;
  static constexpr double kSd[kUnits] = {20, 5, 20, 20};
  static constexpr std::uint32_t kNumbers[kUnits] = {3, 1, 8, 5};

  struct Stage {
    SmcSampler sampler;
    bool step() { return sampler.step(); }
    SmcState finish() const { return sampler.state(); }
    SmcState run() {
      while (step()) {
      }
      return finish();
    }
    template <class Archive>
    void fields(Archive& archive) {
      sampler.fields(archive);
    }
  };
  std::unique_ptr<Stage> make(int moves = 2, const std::vector<int>& which = {0, 1, 2, 3}) const {
    std::vector<std::uint32_t> units;
    BaseAxes base;
    const int d = target_->dim();
    for (int u : which) {
      units.push_back(kNumbers[u]);
      base.mean.insert(base.mean.end(), d, 0.0);
      base.sd.insert(base.sd.end(), d, kSd[u]);
      base.log_norm.push_back(-d * (0.5 * std::log(2 * kPi) + std::log(kSd[u])));
    }
    auto engine = target_->engine(engine_spec(context_, {.kind = ModelKind::path}, units, kParticles));
    write_bases(*engine, base);
    set_per_unit(*engine, ParameterLayout::log_zeta, {0});
    set_axis(*engine, engine->layout().scale(), std::vector<double>(d, 1.0), d);
    SmcOptions options;
    options.levels = GetParam();
    for (int k = 0; k <= kSteps; ++k) options.ladder.push_back(std::pow(double(k) / kSteps, 4));
    options.ladder = engine->set_ladder(options.ladder, options.ladder, options.ladder);
    if (GetParam() == Levels::given) options.most_levels = kSteps + 1;
    if (GetParam() == Levels::own) options.metric = base.sd;
    options.moves = moves;
    options.first_moves = 1;
    options.launch.num_leapfrog = 3;
    options.launch.begin = 100;
    std::vector<double> x(std::size_t(d) * engine->chains());
    for (int c = 0; c < engine->chains(); ++c)
      Draw<double>{context_.key, 0, std::uint32_t(c % kParticles), units[c / kParticles]}.normals(
          Purpose::base, d, [&](int i, double z) {
            x[std::size_t(i) * engine->chains() + c] = kSd[which[c / kParticles]] * z;
          });
    return std::unique_ptr<Stage>(new Stage{{context_, std::move(engine), units, x, options}});
  }
  const RunOptions run_ = run_of({.target = "gaussian", .target_settings = {{"dim", 3}, {"ratio", 3}}});
  const std::unique_ptr<TargetInstance> target_ = build_target(run_);
  const RunContext context_ = make_context(run_, *target_, "smc");
};

TEST_P(Populations, GoOnFromEveryLevel) {
  const SmcState end = expect_same_from_every_level(folder_, [&] { return make(); });
  EXPECT_EQ(end.beta, std::vector<double>(kUnits, 1));
  if (GetParam() == Levels::own) {  // units came at different levels
    const auto waiting = std::count_if(end.arrived.begin(), end.arrived.end(),
                                       [](const auto& particles) { return !particles.empty(); });
    EXPECT_GT(waiting, 0);
    EXPECT_LT(waiting, kUnits);
  }
}

TEST_P(Populations, FindLogZAndCountGradients) {
  const auto stage = make(6);
  const SmcState end = stage->run();
  // log Z = 0. Own levels add 1 / 64 each to its variance, and there are some ten, common ones less each, and
  // are more. Annealed over betas (k / 40)^4, three axes add 3/2 (step / beta)^2 = 24 / k^2 each from k = 9 on,
  // where beta is the base's precision, in all 2, and the relative variance of the mean weight is (e^2 - 1) /
  // 64. All give a standard deviation of 0.3 to 0.4, and the mean of four units half of that.
  double mean = 0;
  for (double z : end.log_z) mean += z / kUnits;
  EXPECT_NEAR(mean, 0, 4 * 0.2);
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

TEST_P(Populations, OnlyUnitsOfTheirOwnLevelsGoTheirOwnWay) {
  const auto together = make(), alone = make(2, {1});
  together->run();
  alone->run();
  const auto all = together->sampler.position(), one = alone->sampler.position();
  bool same = true;
  for (int i = 0; i < 3; ++i)
    for (int p = 0; p < kParticles; ++p)
      same &= one[i * kParticles + p] == all[(i * kUnits + 1) * kParticles + p];
  EXPECT_EQ(same, GetParam() == Levels::own);
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
