// SPDX-License-Identifier: Apache-2.0
// The suite of engines for pseudo-extended targets, with and without a box.
#define ENGINE_SUITE PseudoExtendedEngines
#include "tests/support/engine_suite.hpp"

namespace {

std::unique_ptr<Engine> make_test_engine(const TestDensity& density, const EngineSpec& spec) {
  return engine_of_any_width<PseudoExtended<TestDensity, 0, 0>>(density, spec);
}

std::vector<Named> cases() {
  std::vector<Named> all;
  auto add = [&](const char* name, auto change) {
    BatchCase c;
    c.chains = 75;
    c.model.kind = ModelKind::pseudo_extended;
    c.model.pseudo_samples = 2;
    change(c);
    all.push_back({name, c});
  };
  add("pseudo-extended", [](BatchCase& c) { c.model.pseudo_samples = 3, c.model.g_exponent = 0.5; });
  add("pseudo-extended with box", [](BatchCase& c) { c.model.box = 1.3, c.model.low = 0.1; });
  add("pseudo-extended in a box shorter than a step", [](BatchCase& c) {
    c.model.box = 1.05, c.step_size = 1.6;
    c.trajectory_time = 4;
  });
  add("fixed beta", [](BatchCase& c) {
    c.model.learned = false;
    c.model.fixed_beta = 0.3;
  });
  add("dense base and metric", [](BatchCase& c) { c.model.dense_metric = true, c.model.base = 1; });
  for (const TransitionInfo* t : transition_registry())
    if (t != transition_registry().front())
      add(t->name.c_str(), [&](BatchCase& c) { c.transition = t, c.model.box = 1.3, c.model.low = 0.1; });
  return all;
}

TEST(PseudoExtendedEngines, BoxIsNeverLeft) {
  const Fixture f;
  for (double step : {0.3, 1.6, 5.0}) {
    BatchCase c;
    c.model = {.kind = ModelKind::pseudo_extended, .pseudo_samples = 2, .box = 1.05};
    c.step_size = step;
    c.trajectory_time = 3 * step;
    c.iterations = 50;
    const BatchResult r = run_batch(f.factory(), c);
    for (int j = 0; j < 2 * 3; ++j)
      for (int i = 0; i < c.chains; ++i) ASSERT_LE(std::abs(r.position[j * c.chains + i]), 1.05f);
  }
}

}  // namespace
