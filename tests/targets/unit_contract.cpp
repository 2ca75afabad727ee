// SPDX-License-Identifier: Apache-2.0
// What every registered target owes its samplers: a right gradient, the same numbers in every precision, no value
// where there is none, and a truth that exact draws and quadrature confirm.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/all_targets.hpp"
#include "tests/support/points.hpp"
#include "tests/support/quadrature.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

class TargetContract : public ::testing::TestWithParam<SubjectCase> {
 protected:
  void SetUp() override { subject_ = GetParam().make(); }
  const Subject& s() const { return *subject_; }
  const Truth& truth() const { return subject_->target->truth(); }
  /// Typical points, points near the centre (where a flower's angle turns fast) and points far away.
  std::vector<Point> points() const {
    auto all = typical_points(s(), 200, 11);
    for (double factor : {0.05, 5.0, 50.0})
      for (const Point& x : scaled_points(s(), 40, factor, 12)) all.push_back(x);
    return all;
  }

 private:
  std::unique_ptr<Subject> subject_;
};

/// The cases whose subject satisfies a condition.
std::vector<SubjectCase> cases(const std::function<bool(const Subject&)>& condition) {
  std::vector<SubjectCase> chosen;
  for (const SubjectCase& c : all_targets())
    if (condition(*c.make())) chosen.push_back(c);
  return chosen;
}

TEST(AllTargets, EveryRegisteredTargetIsListedOnceOrMore) {
  std::set<std::string> listed, registered;
  for (const SubjectCase& c : all_targets()) listed.insert(c.name);
  for (const TargetEntry& e : target_registry())
    EXPECT_TRUE(registered.insert(e.info().name).second) << e.info().name << " is registered twice";
  EXPECT_EQ(listed, registered) << "add a new target to tests/support/all_targets.hpp";
}

TEST_P(TargetContract, DescribesItself) {
  const TargetInfo info = find_target(GetParam().name)->info();
  EXPECT_EQ(info.name, GetParam().name);
  for (const std::string* text : {&info.name, &info.summary, &info.formula, &info.truth}) {
    EXPECT_FALSE(text->empty());
    EXPECT_EQ(text->find('\n'), std::string::npos);
  }
  std::set<std::string> described;
  for (const auto& [key, meaning] : info.settings) {
    described.insert(key);
    EXPECT_NE(meaning.find("default"), std::string::npos) << key << ": " << meaning;
  }
  EXPECT_EQ(described, s().input.asked) << "settings described, and settings read";
  EXPECT_EQ(info.data.empty(), s().input.arrays.empty());
  EXPECT_GE(s().dim(), 1);
  EXPECT_EQ(truth().mean.size(), std::size_t(s().dim()));
  EXPECT_EQ(truth().covariance.size(), std::size_t(s().dim() * s().dim()));
  EXPECT_EQ(s().target->quantities().size(), s().quantities(Point(s().dim(), 0.5)).size());
  EXPECT_TRUE(truth().quantities.empty() || truth().quantities.size() == s().target->quantities().size());
}

TEST_P(TargetContract, GradientEqualsFiniteDifferences) {
  for (const Point& x : points()) {
    Point g;
    s().log_density(x, &g);
    double largest = 0;
    for (double v : g) largest = std::max(largest, std::abs(v));
    for (int i = 0; i < s().dim(); ++i) {
      const Difference d = central_difference(s(), x, g, i);
      ASSERT_LE(std::abs(g[i] - d.value), d.error) << "coordinate " << i << ", x = " << ::testing::PrintToString(x);
      ASSERT_LT(d.error, 1e-5 * (1 + largest)) << "the difference is too coarse to say anything at x = "
                                               << ::testing::PrintToString(x);
    }
  }
}

TEST_P(TargetContract, GradientEqualsDualNumbers) {
  for (const Point& x : points()) {
    Point g;
    const double f = s().log_density(x, &g);
    const Point d = s().dual_gradient(x), condition = gradient_condition(s(), x);
    ASSERT_NEAR(f, s().value(x), 8e-16 * value_condition(f, g, x));
    for (int i = 0; i < s().dim(); ++i)
      ASSERT_NEAR(g[i], d[i], 16 * 2.2e-16 * condition[i]) << "coordinate " << i << ", x = "
                                                          << ::testing::PrintToString(x);
  }
}

// --- engines: packs of floats and doubles against the scalar reference in double -------------------

EngineSpec engine_spec(Precision precision, Driver driver, std::size_t chains) {
  EngineSpec spec;
  spec.precision = precision;
  spec.driver = driver;
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
    e.set_parameter(row, std::vector<double>(e.chains(), value));
  }
}

constexpr double kFloatEps = std::numeric_limits<float>::epsilon(), kEps = std::numeric_limits<double>::epsilon();
struct Variant {
  Precision precision;
  Driver driver;  // the fused driver runs the specialised dimension, the staged one the general one
  double state_eps, energy_eps;
};
constexpr Variant kVariants[] = {{Precision::single, Driver::fused, kFloatEps, kFloatEps},
                                 {Precision::mixed, Driver::fused, kFloatEps, kEps},
                                 {Precision::full, Driver::fused, kEps, kEps},
                                 {Precision::single, Driver::staged, kFloatEps, kFloatEps},
                                 {Precision::mixed, Driver::staged, kFloatEps, kEps},
                                 {Precision::full, Driver::staged, kEps, kEps}};

TEST_P(TargetContract, PacksEqualTheScalarReference) {
  auto all = typical_points(s(), 101, 21);
  for (const Point& x : scaled_points(s(), 20, 4.0, 22)) all.push_back(x);
  all = as_float(all);
  const std::size_t n = all.size();
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.driver, n));
    set_parameters(*e, 0);
    e->set_position(as_rows(all));
    e->initialize();
    const auto gradient = e->gradient(), cache = e->cache();
    for (std::size_t c = 0; c < n; ++c) {
      Point g;
      const double f = s().log_density(all[c], &g);
      const Point condition = gradient_condition(s(), all[c]);
      ASSERT_NEAR(cache[c], f, 4 * v.energy_eps * value_condition(f, g, all[c])) << "chain " << c;
      for (int i = 0; i < s().dim(); ++i)
        ASSERT_NEAR(gradient[i * n + c], g[i], 8 * v.state_eps * condition[i])
            << "chain " << c << ", coordinate " << i << ", x = " << ::testing::PrintToString(all[c]);
    }
  }
}

TEST_P(TargetContract, RecordedMomentsAreThoseOfThePosition) {
  const auto all = as_float(typical_points(s(), 70, 31));
  const std::size_t n = all.size();
  for (const Variant& v : kVariants) {
    EngineSpec spec = engine_spec(v.precision, v.driver, n);
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
          ASSERT_NEAR(row(m.cross() + i * (i - 1) / 2 + j, c), x[i] * x[j], v.energy_eps * std::abs(x[i] * x[j]));
      }
      Point g;
      const double f = s().log_density(x, &g);
      const Point q = s().quantities(x);
      for (std::size_t k = 0; k < q.size(); ++k)
        ASSERT_NEAR(row(m.quantity() + int(k), c), q[k], 4 * v.energy_eps * value_condition(f, g, x));
    }
  }
}

// --- no value where there is none -------------------------------------------------------------------

TEST_P(TargetContract, NanPositionHasNoFiniteDensity) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto all = as_float(typical_points(s(), std::max(40, s().dim()), 41));
  for (std::size_t c = 0; c < all.size(); ++c) all[c][c % s().dim()] = nan;
  for (const Point& x : all) {
    EXPECT_FALSE(s().log_density(x) > -std::numeric_limits<double>::infinity());
    EXPECT_FALSE(s().value(x) > -std::numeric_limits<double>::infinity());
  }
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.driver, all.size()));
    set_parameters(*e, 0);
    e->set_position(as_rows(all));
    e->initialize();
    for (std::size_t c = 0; c < all.size(); ++c)
      EXPECT_FALSE(e->cache()[c] > -std::numeric_limits<double>::infinity()) << "chain " << c;
  }
}

TEST_P(TargetContract, EnginesNeverMoveWhereTheDensityIsNoNumber) {
  const auto all = as_float(typical_points(s(), 64, 51));
  LaunchSpec launch;
  launch.key = make_stream_key(2, "contract");
  launch.end = 10;
  launch.num_leapfrog = 3;
  for (const Variant& v : kVariants)
    for (double step_size : {1e6, 1e19, 1e37}) {  // proposals whose squares, or which themselves, overflow
      auto e = s().target->engine(engine_spec(v.precision, v.driver, all.size()));
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

TEST_P(TargetContract, EnginesMoveAndStayFinite) {
  const auto all = as_float(typical_points(s(), 64, 61));
  LaunchSpec launch;
  launch.key = make_stream_key(3, "contract");
  launch.end = 50;
  launch.num_leapfrog = 3;
  for (const Variant& v : kVariants) {
    auto e = s().target->engine(engine_spec(v.precision, v.driver, all.size()));
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

// --- the truth --------------------------------------------------------------------------------------

/// Largest |z| of mean, covariance and quantities of exact draws against a truth, and how many there are.
struct DrawCheck {
  double largest = 0;
  std::size_t tests = 0;
};
DrawCheck check_draws(const Subject& s, const Truth& truth, int draws) {
  const int d = s.dim();
  std::vector<RunningMean> mean(d), covariance(d * d), quantity(truth.quantities.size());
  ExactDraw random(71);
  Point x(d);
  for (int n = 0; n < draws; ++n) {
    s.target->draw(random, x.data());
    for (int i = 0; i < d; ++i) {
      mean[i].add(x[i]);
      for (int j = 0; j <= i; ++j) covariance[i * d + j].add((x[i] - truth.mean[i]) * (x[j] - truth.mean[j]));
    }
    if (quantity.empty()) continue;
    const Point q = s.quantities(x);
    for (std::size_t k = 0; k < quantity.size(); ++k) quantity[k].add(q[k]);
  }
  DrawCheck r;
  auto compare = [&](const RunningMean& m, double expected) {
    r.largest = std::max(r.largest, std::abs(m.z(expected)));
    ++r.tests;
  };
  for (int i = 0; i < d; ++i) compare(mean[i], truth.mean[i]);
  for (int i = 0; i < d; ++i)
    for (int j = 0; j <= i; ++j) compare(covariance[i * d + j], truth.covariance[i * d + j]);
  for (std::size_t k = 0; k < quantity.size(); ++k) compare(quantity[k], truth.quantities[k]);
  return r;
}

/// Rate of false alarms of one target's family, if its seed were drawn anew.
constexpr double kAlarmRate = 1e-5;

class TruthByDraws : public TargetContract {};
class TruthByQuadrature : public TargetContract {};

TEST_P(TruthByDraws, ExactDrawsConfirmTheTruth) {
  const DrawCheck r = check_draws(s(), truth(), 200000);
  EXPECT_LT(r.largest, family_quantile(kAlarmRate, r.tests));
  // Power: a mean wrong by 3 % of its standard deviation is seen, and so is a variance wrong by 5 %.
  Truth wrong = truth();
  wrong.mean[0] += 0.03 * std::sqrt(wrong.covariance[0]);
  EXPECT_GT(check_draws(s(), wrong, 200000).largest, family_quantile(kAlarmRate, r.tests));
  wrong = truth();
  wrong.covariance[0] *= 1.05;
  EXPECT_GT(check_draws(s(), wrong, 200000).largest, family_quantile(kAlarmRate, r.tests));
}

TEST_P(TruthByQuadrature, QuadratureConfirmsTheTruth) {
  const Truth found = integrate(s());
  EXPECT_NEAR(found.log_z, truth().log_z, 1e-6);
  for (int i = 0; i < s().dim(); ++i) {
    const double sd = std::sqrt(truth().covariance[i * s().dim() + i]);
    EXPECT_NEAR(found.mean[i], truth().mean[i], 1e-6 * sd);
    for (int j = 0; j < s().dim(); ++j)
      EXPECT_NEAR(found.covariance[i * s().dim() + j], truth().covariance[i * s().dim() + j],
                  2e-6 * sd * std::sqrt(truth().covariance[j * s().dim() + j]));
  }
  for (std::size_t k = 0; k < truth().quantities.size(); ++k)
    EXPECT_NEAR(found.quantities[k], truth().quantities[k], 1e-5) << s().target->quantities()[k];
}

constexpr auto kLabel = [](const auto& info) { return info.param.label; };
INSTANTIATE_TEST_SUITE_P(All, TargetContract, ::testing::ValuesIn(all_targets()), kLabel);
INSTANTIATE_TEST_SUITE_P(All, TruthByDraws, ::testing::ValuesIn(cases([](const Subject& s) {
                           return s.target->can_draw() && std::isfinite(s.target->truth().mean[0]);
                         })), kLabel);
// At most two dimensions, and exact draws to say where the mass is.
INSTANTIATE_TEST_SUITE_P(All, TruthByQuadrature, ::testing::ValuesIn(cases([](const Subject& s) {
                           return s.dim() <= 2 && s.target->can_draw() && std::isfinite(s.target->truth().log_z);
                         })), kLabel);

}  // namespace
}  // namespace lockstep::testing
