// SPDX-License-Identifier: Apache-2.0
// What the engines of every registered target owe: in packs of any precision the numbers of the scalar
// reference in double, and no move to where the density is not a number.
#include <gtest/gtest.h>

#include "tests/support/contract.hpp"

namespace lockstep::testing {
namespace {

class EngineContract : public ContractTest {};

EngineSpec engine_spec(Precision precision, bool blocks, std::size_t chains) {
  EngineSpec spec;
  spec.precision = precision;
  spec.blocks = blocks;
  for (std::uint32_t c = 0; c < chains; ++c) {
    spec.chain.push_back(c);
    spec.unit.push_back(0);
  }
  return spec;
}

/// All parameters zero, unit metric, one step size.
void set_parameters(Engine& e, double step_size) {
  for (int row = 0; row < e.layout().rows(); ++row) {
    const bool scale = row >= e.layout().scale() && row < e.layout().scale() + e.dim();
    const double value = row == ParameterLayout::step_size ? step_size : scale ? 1.0 : 0.0;
    e.set_parameters(row, std::vector<double>(e.chains(), value));
  }
}

constexpr double kFloatEps = std::numeric_limits<float>::epsilon(),
                 kEps = std::numeric_limits<double>::epsilon();
struct Variant {
  Precision precision;
  bool blocks;
  double state_eps, energy_eps;
};
constexpr Variant kVariants[] = {
    {Precision::single, false, kFloatEps, kFloatEps}, {Precision::mixed, false, kFloatEps, kEps},
    {Precision::double_, false, kEps, kEps},          {Precision::single, true, kFloatEps, kFloatEps},
    {Precision::mixed, true, kFloatEps, kEps},        {Precision::double_, true, kEps, kEps}};

TEST_P(EngineContract, PacksEqualTheScalarReference) {
  auto all = typical_points(s(), 101, 21);
  for (const Point& x : scaled_points(s(), 20, 4.0, 22)) all.push_back(x);
  all = as_float(all);
  const std::size_t n = all.size();
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.blocks, n));
    set_parameters(*e, 0);
    e->set_position(as_rows(all));
    e->initialize();
    const auto gradient = e->gradient(), cache = e->cache();
    for (std::size_t c = 0; c < n; ++c) {
      Point g;
      const double f = s().log_density(all[c], &g);
      const Point condition = gradient_condition(s(), all[c]);
      // Matrix products are in the precision of the state; their sums alone are in that of energies.
      const bool products = s().target->batched();
      const double lost = s().lost(all[c]);
      ASSERT_NEAR(cache[c], f,
                  4 * (products ? v.state_eps : v.energy_eps) * lost * value_condition(f, g, all[c]))
          << "chain " << c;
      for (int i = 0; i < s().dim(); ++i)
        ASSERT_NEAR(gradient[i * n + c], g[i], 8 * v.state_eps * lost * condition[i])
            << "chain " << c << ", coordinate " << i << ", x = " << ::testing::PrintToString(all[c]);
    }
  }
}

TEST_P(EngineContract, RecordedMomentsAreThoseOfThePosition) {
  const auto all = as_float(typical_points(s(), 70, 31));
  const std::size_t n = all.size();
  for (const Variant& v : kVariants) {
    EngineSpec spec = engine_spec(v.precision, v.blocks, n);
    spec.covariance = true;
    auto e = s().target->engine(spec);
    set_parameters(*e, 0);  // a step size of zero: the chain stays, and its position is recorded
    e->set_position(as_rows(all));
    e->initialize();
    LaunchSpec launch;
    launch.key = make_stream_key(1, "contract");
    launch.end = 1;
    launch.num_leapfrog = 1;
    launch.record = true;
    e->advance(launch);
    const auto moments = e->take_moments();
    const MomentLayout m = e->moment_layout();
    auto row = [&](int r, std::size_t c) { return moments[r * n + c]; };
    for (std::size_t c = 0; c < n; ++c) {
      const Point& x = all[c];
      ASSERT_EQ(row(MomentLayout::count, c), 1);
      for (int i = 0; i < s().dim(); ++i) {
        ASSERT_EQ(row(m.mean() + i, c), x[i]);
        ASSERT_NEAR(row(m.second() + i, c), x[i] * x[i], v.energy_eps * x[i] * x[i]);
        for (int j = 0; j < i; ++j)
          ASSERT_NEAR(row(m.cross() + i * (i - 1) / 2 + j, c), x[i] * x[j],
                      v.energy_eps * std::abs(x[i] * x[j]));
      }
      Point g;
      const double f = s().log_density(x, &g);
      const Point q = s().quantities(x);
      for (std::size_t k = 0; k < q.size(); ++k)
        ASSERT_NEAR(row(m.quantity() + int(k), c), q[k], 4 * v.energy_eps * value_condition(f, g, x));
    }
  }
}

TEST_P(EngineContract, NanPositionHasNoFiniteDensity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto all = as_float(typical_points(s(), std::max(40, s().dim()), 41));
  for (std::size_t c = 0; c < all.size(); ++c) all[c][c % s().dim()] = nan;
  for (const Point& x : all) {
    EXPECT_FALSE(s().log_density(x) > -std::numeric_limits<double>::infinity());
    EXPECT_FALSE(s().value(x) > -std::numeric_limits<double>::infinity());
  }
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.blocks, all.size()));
    set_parameters(*e, 0);
    e->set_position(as_rows(all));
    e->initialize();
    for (std::size_t c = 0; c < all.size(); ++c)
      EXPECT_FALSE(e->cache()[c] > -std::numeric_limits<double>::infinity()) << "chain " << c;
  }
}

TEST_P(EngineContract, EnginesNeverMoveWhereTheDensityIsNoNumber) {
  const auto all = as_float(typical_points(s(), 64, 51));
  LaunchSpec launch;
  launch.key = make_stream_key(2, "contract");
  launch.end = 10;
  launch.num_leapfrog = 3;
  for (const Variant& v : kVariants)
    for (double step_size : {1e6, 1e19, 1e37}) {  // proposals whose squares, or which themselves, overflow
      auto e = s().target->engine(engine_spec(v.precision, v.blocks, all.size()));
      set_parameters(*e, step_size);
      e->set_position(as_rows(all));
      e->initialize();
      e->advance(launch);
      EXPECT_EQ(e->position(), as_rows(all)) << "step size " << step_size;
      const auto stats = e->take_stats();
      for (std::size_t c = 0; c < all.size(); ++c) {
        EXPECT_EQ(stats[stat_accepted * all.size() + c], 0);
        EXPECT_EQ(stats[stat_divergences * all.size() + c], 10);
      }
    }
}

TEST_P(EngineContract, EnginesMoveAndStayFinite) {
  const auto all = as_float(typical_points(s(), 64, 61));
  LaunchSpec launch;
  launch.key = make_stream_key(3, "contract");
  launch.end = 50;
  launch.num_leapfrog = 3;
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.blocks, all.size()));
    set_parameters(*e, 0.02);
    e->set_position(as_rows(all));
    e->initialize();
    e->advance(launch);
    const auto stats = e->take_stats(), position = e->position(), cache = e->cache();
    double accepted = 0;
    for (std::size_t c = 0; c < all.size(); ++c) {
      accepted += stats[stat_accepted * all.size() + c];
      ASSERT_TRUE(std::isfinite(cache[c]));
      for (int i = 0; i < s().dim(); ++i) ASSERT_TRUE(std::isfinite(position[i * all.size() + c]));
    }
    EXPECT_GT(accepted, 0.5 * 50 * all.size());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineContract, ::testing::ValuesIn(all_targets()), kLabel);

}  // namespace
}  // namespace lockstep::testing
