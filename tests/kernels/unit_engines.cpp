// SPDX-License-Identifier: Apache-2.0
// The suite of engines for a target and for the path to it; moments, jitter and resetting besides.
#define ENGINE_SUITE PathEngines
#include "tests/support/engine_suite.hpp"

namespace {

std::unique_ptr<Engine> make_test_engine(const TestDensity& density, const EngineSpec& spec) {
  return spec.model.kind == ModelKind::plain ? engine_of_any_width<Path<TestDensity, 0, false>>(density, spec)
                                             : engine_of_any_width<Path<TestDensity, 0, true>>(density, spec);
}

std::vector<Named> cases() {
  std::vector<Named> all;
  auto add = [&](const char* name, auto change) {
    BatchCase c;
    c.chains = 75;
    change(c);
    all.push_back({name, c});
  };
  add("plain", [](BatchCase&) {});
  add("path", [](BatchCase& c) { c.model.kind = ModelKind::path; });
  add("chees", [](BatchCase& c) { c.chees = true; });
  add("steps", [](BatchCase& c) { c.num_leapfrog = 4; });
  add("dense",
      [](BatchCase& c) { c.model.kind = ModelKind::path, c.model.dense_metric = true, c.model.base = 1; });
  for (auto [name, tempering] : {std::pair{"gibbs", Tempering::gibbs}, std::pair{"levels", Tempering::levels},
                                 std::pair{"anneal", Tempering::anneal}})
    add(name, [t = tempering](BatchCase& c) { c.model.kind = ModelKind::path, c.tempering = t; });
  for (auto [name, control] :
       {std::pair{"joint", Control::logistic}, std::pair{"joint with plateaus", Control::plateaus}})
    add(name, [u = control](BatchCase& c) {
      c.model.kind = ModelKind::path, c.tempering = Tempering::joint, c.model.control = u;
    });
  for (const TransitionInfo* t : transition_registry()) {
    if (t == transition_registry().front()) continue;
    add(t->name.c_str(), [&](BatchCase& c) { c.transition = t; });
    add(t->summary.c_str(), [&](BatchCase& c) {
      c.transition = t, c.model.kind = ModelKind::path, c.tempering = Tempering::gibbs;
      c.model.dense_metric = true, c.model.base = 1;
    });
  }
  return all;
}

/// With jitter, one number of steps for all chains of an iteration, spread over 1 .. 2 n - 1 with mean n.
TEST(PathEngines, JitterIsOneDrawForAllChains) {
  const Fixture f;
  BatchCase c;
  c.num_leapfrog = 4;
  c.iterations = 400;
  c.chains = 33;
  const BatchResult r = run_batch(f.factory(), c);
  const int draw_rows = 3 + kDrawExtraRows;
  std::vector<int> count(8);
  for (std::uint32_t k = 0; k < c.iterations; ++k) {
    const float* steps = &r.draws[(std::size_t(k) * draw_rows + 3 + draw_steps) * c.chains];
    for (int i = 1; i < c.chains; ++i) ASSERT_EQ(steps[i], steps[0]);
    ++count[static_cast<int>(steps[0])];
  }
  EXPECT_EQ(count[0], 0);
  for (int s = 1; s <= 7; ++s) EXPECT_NEAR(count[s], 400.0 / 7, 4.5 * std::sqrt(400.0 / 7)) << s;
}

/// Moments are the sums over draws: with one sample per chain, weights are one and every sum can be repeated.
TEST(PathEngines, MomentsAreSumsOverTheDraws) {
  const Fixture f;
  BatchCase c;
  c.chains = 33;
  c.iterations = 20;
  const BatchResult r = run_batch(f.factory(), c);
  const MomentLayout m{3, 2, true};
  ASSERT_EQ(r.moments.size(), std::size_t(m.rows()) * c.chains);
  for (int i = 0; i < c.chains; ++i) {
    std::vector<double> sum(m.rows());
    double switches = 0, last = -1;
    for (std::uint32_t k = 0; k < c.iterations; ++k) {
      double x[3];
      for (int j = 0; j < 3; ++j) x[j] = r.draws[(std::size_t(k) * (3 + kDrawExtraRows) + j) * c.chains + i];
      sum[MomentLayout::count] += 1;
      sum[MomentLayout::weight_square] += 1;
      sum[MomentLayout::beta_mean] += 1;
      for (int j = 0; j < 3; ++j) {
        sum[m.mean() + j] += x[j];
        sum[m.second() + j] += x[j] * x[j];
        for (int l = 0; l < j; ++l) sum[m.cross() + j * (j - 1) / 2 + l] += x[j] * x[l];
      }
      sum[m.quantity()] += x[0] > 0;
      sum[m.quantity() + 1] += x[0] * x[1];
      switches += last >= 0 && (x[0] > 0) != (last > 0);
      last = x[0] > 0;
    }
    for (int q = 0; q < m.rows(); ++q) EXPECT_NEAR(r.moments[q * c.chains + i], sum[q], 1e-9) << q;
    EXPECT_EQ(r.stats[stat_switches * c.chains + i], switches);
  }
}

TEST(PathEngines, TakingResets) {
  const Fixture f;
  EngineSpec spec;
  for (int i = 0; i < 5; ++i) spec.chain.push_back(i), spec.unit.push_back(0);
  const auto e = f.factory()(spec);
  set_parameters(*e, {}, 0);
  e->set_position(std::vector<double>(15, 0.1));
  e->initialize();
  LaunchSpec launch;
  launch.end = 3;
  launch.record = true;
  e->advance(launch);
  EXPECT_EQ(e->take_moments()[0], 3);
  EXPECT_EQ(e->take_moments()[0], 0);
  EXPECT_GT(e->take_stats()[stat_gradients * 5], 0);
  EXPECT_EQ(e->take_stats()[stat_gradients * 5], 0);
}

}  // namespace
