// SPDX-License-Identifier: Apache-2.0
#include "host/runs/base_rows.hpp"

#include "host/runs/units.hpp"
#include "tests/support/sampler_run.hpp"

namespace lockstep {
namespace {

using namespace testing;

constexpr int kPer = 40;  // more than one tile of 32

/// log base at x of the first and the second unit, read off the cached log density at beta = 0.
std::vector<double> log_base(const BaseRows& base, const std::vector<double>& x, bool dense) {
  const auto target = build_target(run_of({.target = "gaussian", .target_settings = {{"dim", 2}}}));
  EngineSpec spec;
  spec.model.kind = ModelKind::path;
  spec.model.dense_base = dense;
  spec.precision = Precision::full;
  number_chains(spec, {0, 1}, kPer);
  const auto engine = target->engine(spec);
  set_per_unit(*engine, ParameterLayout::beta, {0});
  write_base(*engine, base);
  std::vector<double> rows;
  for (double v : x) rows.insert(rows.end(), 2 * kPer, v);
  engine->set_position(rows);
  engine->initialize();
  const auto cache = engine->cache();
  for (int c = 0; c < 2 * kPer; ++c) EXPECT_EQ(cache[c], cache[c / kPer * kPer]) << c;
  return {cache[0], cache[kPer]};
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  for (int u = 0; u < 2; ++u) EXPECT_NEAR(a[u], b[u], 1e-12) << u;
}

TEST(BaseRows, ReachTheirUnits) {
  const std::vector<double> x = {0.5, -1};
  expect_near(log_base({{1, 2, 3, 4}, {1, 2, 1, 0.5}, {}, {0.75, 0}}, x, false),
              {0.75 - 0.5 * (0.25 + 2.25), -0.5 * (6.25 + 100)});
  // One for all.
  const double one = -3 - 0.5 * (0.25 + 2.25);
  expect_near(log_base({{1, 2}, {1, 2}, {}, {-3}}, x, false), {one, one});
  // By precision matrices, [2, 0.5; 0.5, 1] and the identity.
  expect_near(log_base({{1, 2, 3, 4}, {1, 2, 1, 0.5}, {2, 0.5, 1, 1, 0, 1}, {0.75, 0}}, x, true),
              {0.75 - 0.5 * (2 * 0.25 + 2 * 0.5 * 0.5 * 3 + 9), -0.5 * (6.25 + 25)});
  // None at all.
  expect_near(log_base({{}, {}, {}, {0, 0}}, x, false), {0, 0});
}

}  // namespace
}  // namespace lockstep
