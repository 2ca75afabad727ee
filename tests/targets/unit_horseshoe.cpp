// SPDX-License-Identifier: Apache-2.0
// The horseshoe regression: its density, its evaluation by matrix products over blocks of chains, its input.
#include "targets/horseshoe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "host/options/target_input.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/horseshoe.hpp"
#include "tests/support/points.hpp"
#include "tests/support/run_python.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using HorseshoeSubject = SubjectOf<HorseshoeTarget>;

/// Rows held out, by the names of the quantities, and those that are not.
struct Split {
  std::vector<int> held_out, training;
};
Split split_of(const TargetInstance& target, int count) {
  Split s;
  for (const std::string& name : target.quantities()) s.held_out.push_back(std::stoi(name.substr(9)));
  const std::set<int> out(s.held_out.begin(), s.held_out.end());
  for (int i = 0; i < count; ++i)
    if (!out.contains(i)) s.training.push_back(i);
  return s;
}

TEST(Horseshoe, ReferenceIsTheFormula) {
  const DataArray table = random_cases(12, 5, 3);
  for (const HorseshoePrior& prior :
       {HorseshoePrior{0}, HorseshoePrior{0, 4, 2.5}, HorseshoePrior{0, 1, 0.3}}) {
    MemoryInput in = horseshoe_as_given(table, 0.25);
    in.numbers["relevant"] = 2;
    in.numbers["slab_df"] = prior.slab_df;
    in.numbers["slab_scale"] = prior.slab_scale;
    const HorseshoeSubject s(in);
    ASSERT_EQ(s.dim(), 13);
    const Split split = split_of(*s.target, 12);
    ASSERT_EQ(split.held_out.size(), 3u);
    HorseshoePrior full = prior;
    full.tau0 = 2.0 / 3.0 * 2 / std::sqrt(9.0);
    ExactDraw random(5);
    for (int k = 0; k < 50; ++k) {
      Point x(13);
      for (double& v : x) v = (k < 40 ? 1 : 3) * random.normal();
      const double expected = horseshoe_by_case(table, split.training, full, x);
      EXPECT_NEAR(s.log_density(x), expected, 1e-11 * (1 + std::abs(expected)));
      const Point q = s.quantities(x);
      for (int i = 0; i < 3; ++i)
        EXPECT_NEAR(q[i], class_probability(table, split.held_out[i], x[0], coefficients(x, full)), 1e-13);
    }
  }
}

/// Scales stay finite and monotonous however far out, and have the limits tau lambda and c.
TEST(Horseshoe, ScalesHaveTheirLimits) {
  for (const float far : {-300.f, -90.f, -60.f, 60.f, 90.f, 300.f}) {
    const HorseshoeScale<float> s(far, -1.f, 1.f);
    EXPECT_NEAR(s.scale, far < 0 ? 0 : std::exp(1.0), 1e-6) << far;
    EXPECT_NEAR(s.of_tau, far < 0 ? 1 : 0, 1e-6) << far;
    EXPECT_NEAR(s.of_slab, far < 0 ? 0 : 1, 1e-6) << far;
  }
  const HorseshoeScale<double> near(-12, -1, 1), level(2, -1, 1);
  EXPECT_NEAR(near.scale, std::exp(-13.0), 1e-10 * std::exp(-13.0));
  EXPECT_NEAR(near.of_slab, std::exp(-28.0), 1e-10 * std::exp(-28.0));
  EXPECT_NEAR(level.scale, std::exp(1.0) / std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(level.of_tau, 0.5, 1e-15);
  EXPECT_NEAR(level.of_slab, 0.5, 1e-15);
}

/// Chains at sines of their number and row, in an engine.
std::unique_ptr<Engine> engine_at_sines(const Subject& s, int chains, Precision precision, int threads,
                                        ModelKind kind = ModelKind::plain, bool together = false) {
  EngineSpec spec;
  spec.precision = precision;
  spec.threads = threads;
  spec.model.kind = kind;
  spec.model.pseudo_samples = kind == ModelKind::pseudo_extended ? 3 : 1;
  for (int c = 0; c < chains; ++c) spec.chain.push_back(c), spec.unit.push_back(0);
  auto e = s.target->engine(spec);
  const auto set = [&](int row, double v) { e->set_parameters(row, std::vector<double>(chains, v)); };
  for (int i = 0; i < s.dim(); ++i) {
    set(e->layout().scale() + i, 1);
    set(e->layout().base_inv_sd() + i, 1);
  }
  set(ParameterLayout::scale_u, 1);
  set(ParameterLayout::step_size, 0.02);
  std::vector<double> x(std::size_t(e->rows()) * chains);
  for (int i = 0; i < e->rows(); ++i)
    for (int c = 0; c < chains; ++c)
      x[i * chains + c] = float(2 * std::sin(double((together ? 0 : c) + 7 * i + 1)));
  e->set_position(x);
  e->initialize();
  return e;
}
LaunchSpec some_iterations() {
  LaunchSpec launch;
  launch.key = make_stream_key(4, "horseshoe");
  launch.end = 4;
  launch.num_leapfrog = 3;
  return launch;
}

/// More coefficients and cases than are summed together, more chains than a block has, the last block short.
TEST(Horseshoe, ProductsAgreeWithChainByChain) {
  const HorseshoeSubject s(horseshoe_input(random_cases(50, 71, 4), 0.2));
  constexpr int kChains = 131;
  for (auto [precision, eps] : {std::pair{Precision::single, 6e-8}, std::pair{Precision::mixed, 6e-8},
                                std::pair{Precision::double_, 1.2e-16}}) {
    const auto e = engine_at_sines(s, kChains, precision, 1);
    e->advance(some_iterations());
    EXPECT_GT(e->take_stats()[stat_accepted * kChains], 0);
    e->initialize();
    const auto x = e->position(), g = e->gradient(), cache = e->cache();
    for (int c = 0; c < kChains; c += 13) {
      Point at(s.dim()), expected;
      for (int i = 0; i < s.dim(); ++i) at[i] = x[i * kChains + c];
      const double f = s.log_density(at, &expected);
      EXPECT_NEAR(cache[c], f, 4 * eps * value_condition(f, expected, at)) << c;
      const Point condition = gradient_condition(s, at);
      for (int i = 0; i < s.dim(); ++i)
        ASSERT_NEAR(g[i * kChains + c], expected[i], 8 * eps * condition[i]) << c << ", coordinate " << i;
    }
  }
}

/// Bits depend neither on who else is in the batch, nor on the place in a block, nor on threads.
TEST(Horseshoe, BitsDoNotDependOnTheCompany) {
  const HorseshoeSubject s(horseshoe_input(random_cases(50, 71, 4), 0.2));
  for (const Precision precision : {Precision::mixed, Precision::double_})
    for (const ModelKind kind : {ModelKind::plain, ModelKind::pseudo_extended}) {
      const auto run = [&](int chains, int threads) {
        const auto e = engine_at_sines(s, chains, precision, threads, kind);
        e->advance(some_iterations());
        return e->position();
      };
      const auto whole = run(131, 1);
      EXPECT_EQ(run(131, 3), whole);
      for (int n : {1, 17, 48, 49}) {
        const auto some = run(n, 1);
        for (std::size_t i = 0; i < some.size() / n; ++i)
          for (int c = 0; c < n; ++c) ASSERT_EQ(some[i * n + c], whole[i * 131 + c]) << n;
      }
      const auto same = engine_at_sines(s, 100, precision, 1, kind, true)->gradient();
      for (std::size_t i = 0; i < same.size(); ++i) ASSERT_EQ(same[i], same[i / 100 * 100]);
    }
}

TEST(HorseshoeInput, SplitsAreDrawnByTheirNumber) {
  const DataArray table = random_cases(20, 3, 6);
  MemoryInput in = horseshoe_input(table, 0.3);
  std::set<std::vector<std::string>> seen;
  for (int split = 1; split <= 10; ++split) {
    in.numbers["split"] = split;
    const auto names = HorseshoeTarget::build(in).quantities;
    EXPECT_EQ(names.size(), 6u);
    EXPECT_EQ(names, HorseshoeTarget::build(in).quantities);
    seen.insert(names);
  }
  EXPECT_EQ(seen.size(), 10u);
}

/// By the cases trained on; a feature that is constant there is 0.
TEST(HorseshoeInput, FeaturesAreStandardised) {
  DataArray table = random_cases(20, 3, 6);
  const MemoryInput in = horseshoe_input(table, 0.25);
  const Split split = split_of(*HorseshoeSubject(in).target, 20);
  DataArray scaled = table;
  for (int j = 1; j <= 3; ++j) {
    std::vector<double> column;
    for (int i : split.training) {
      if (j == 3) table.values[i * 4 + 3] = 0.7;
      column.push_back(table.values[i * 4 + j]);
    }
    const double mean = std::accumulate(column.begin(), column.end(), 0.0) / 15;
    double square = 0;
    for (double v : column) square += (v - mean) * (v - mean) / 15;
    for (int i = 0; i < 20; ++i)
      scaled.values[i * 4 + j] = j == 3 ? 0 : (table.values[i * 4 + j] - mean) / std::sqrt(square);
  }
  const HorseshoeSubject a(horseshoe_input(table, 0.25)), b(horseshoe_as_given(scaled, 0.25));
  const Point x = {0.3, -0.4, 0.1, 1.2, -0.8, 0.5, 0.2, 0.9, -0.3};
  EXPECT_NEAR(a.log_density(x), b.log_density(x), 1e-12);
  EXPECT_NEAR(a.quantities(x)[0], b.quantities(x)[0], 1e-13);
}

TEST(HorseshoeInput, SettingsSimulateCases) {
  MemoryInput in;
  const Built<Horseshoe> standard = HorseshoeTarget::build(in);
  EXPECT_EQ(standard.density.dim, 403);
  EXPECT_EQ(standard.density.training, 48);
  EXPECT_EQ(standard.density.held_out, 12);
  in.numbers = {{"cases", 30}, {"features", 8}, {"held_out", 0}, {"seed", 4}};
  const Built<Horseshoe> small = HorseshoeTarget::build(in);
  EXPECT_EQ(small.density.dim, 19);
  EXPECT_EQ(small.density.quantities(), 0);
}

TEST(HorseshoeInput, EveryMistakeIsNamed) {
  const auto complaint = [](const MemoryInput& in) { return build_complaint<HorseshoeTarget>(in); };
  const MemoryInput good = horseshoe_input(random_cases(10, 3, 1), 0.2);
  MemoryInput in = good;
  in.arrays["table"].values[8] = 2;
  EXPECT_THAT(complaint(in), HasSubstr("row 3 of table begins with 2 (there a case has its class, 0 or 1)"));
  in = good;
  in.arrays["table"] = {{1, 2, 3}, {3}};
  EXPECT_THAT(complaint(in), HasSubstr("table is no matrix of two rows"));
  in = good;
  in.numbers["held_out"] = 0.85;
  EXPECT_THAT(complaint(in), HasSubstr("target.held_out leaves 1 of 10 cases"));
  in = good;
  in.numbers["relevant"] = 3;
  EXPECT_THAT(complaint(in), HasSubstr("target.relevant is not below the 3 features"));
  for (const char* key : {"cases", "features", "seed"}) {
    in = good;
    in.numbers[key] = 20;
    EXPECT_THAT(complaint(in), HasSubstr("target." + std::string(key) + " is given beside data"));
  }
}

class GeneExpression : public FolderTest {
 protected:
  /// The target of a set below $LOCKSTEP_DATA, unpacked; null, with the test skipped, where it is not there.
  std::unique_ptr<TargetInstance> load(const std::string& name) {
    const char* folder = std::getenv("LOCKSTEP_DATA");
    const std::string packed = std::string(folder != nullptr ? folder : "") + "/gene-expression/" + name +
                               ".csv.gz",
                      file = (folder_ / (name + ".csv")).string();
    if (folder == nullptr || !std::filesystem::exists(packed) ||
        std::system(("gzip -dc '" + packed + "' > '" + file + "'").c_str()) != 0)
      return nullptr;
    RunOptions run;
    run.target = "horseshoe";
    run.data = file;
    return build_target(run);
  }
};

TEST_F(GeneExpression, IsReadAsPublished) {
  struct Set {
    const char* name;
    int cases, features;
  };
  for (const Set& set : {Set{"colon_discretised", 62, 2000}, Set{"leukemia_discretised", 72, 7070},
                         Set{"prostate", 102, 5966}}) {
    const auto target = load(set.name);
    if (target == nullptr) GTEST_SKIP() << "no gene-expression below $LOCKSTEP_DATA";
    EXPECT_EQ(target->dim(), 2 * set.features + 3);
    EXPECT_EQ(int(target->quantities().size()), int(std::lround(0.2 * set.cases)));
    Point x(target->dim(), 0.01), g(target->dim());
    EXPECT_TRUE(std::isfinite(target->log_density(x.data(), g.data())));
    // Along the gradient the density rises by its square.
    double square = 0;
    for (double v : g) square += v * v;
    const double h = 1e-5 / std::sqrt(square);
    Point up = x, down = x;
    for (std::size_t i = 0; i < x.size(); ++i) up[i] += h * g[i], down[i] -= h * g[i];
    EXPECT_NEAR(
        (target->log_density(up.data(), nullptr) - target->log_density(down.data(), nullptr)) / (2 * h),
        square, 1e-4 * square);
  }
}

}  // namespace
}  // namespace lockstep::testing
