// SPDX-License-Identifier: Apache-2.0
// The library's own engines, by target and precision: threads, drivers and launches change no bit; precisions agree as
// they should.
#include <gtest/gtest.h>

#include <map>

#include "targets/registry.hpp"
#include "tests/support/engines.hpp"

namespace {
using namespace lockstep;
using namespace lockstep::testing;

/// Standard settings of a target, and no data.
class NoInput : public TargetInput {
 public:
  double number(const std::string&, double standard, double, double) override { return standard; }
  int integer(const std::string&, int standard, int, int) override { return standard; }
  std::string choice(const std::string&, const std::string& standard,
                     const std::vector<std::string>&) override {
    return standard;
  }
  std::string text(const std::string&, const std::string& standard) override { return standard; }
  std::map<std::string, DataArray> tensors(const std::string&) override { return {}; }
  DataArray images(const std::string&) override { return {}; }
  bool has_data() override { return false; }
  bool has(const std::string&) override { return false; }
  DataArray array(const std::string&) override { return {}; }
  void fail(const std::string& message) override { throw std::runtime_error(message); }
};

const std::vector<std::pair<std::string, ModelSpec>>& models() {
  static const std::vector<std::pair<std::string, ModelSpec>> all = [] {
    std::vector<std::pair<std::string, ModelSpec>> m(4);
    m[0].first = "plain";
    m[1].first = "path";
    m[1].second.kind = ModelKind::path;
    m[2].first = "pseudo-extended";
    m[2].second.kind = ModelKind::pseudo_extended;
    m[2].second.pseudo_samples = 5;
    m[3].first = "fixed beta in a box";
    m[3].second.kind = ModelKind::pseudo_extended;
    m[3].second.pseudo_samples = 2;
    m[3].second.learned = false;
    m[3].second.fixed_beta = 0.25;
    m[3].second.box = 1.5;
    return m;
  }();
  return all;
}

class LibraryEngines : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    NoInput input;
    target_ = find_target(GetParam())->make(input);
  }
  EngineFactory factory() const {
    return [this](const EngineSpec& spec) { return target_->engine(spec); };
  }
  BatchCase make_case(const ModelSpec& model, Precision precision) const {
    BatchCase c;
    c.model = model;
    c.precision = precision;
    c.chains = 45;
    c.iterations = 4;
    c.covariance = target_->dim() < 5;
    return c;
  }
  std::unique_ptr<TargetInstance> target_;
};

TEST_P(LibraryEngines, NoBitDependsOnTheDivisionOfTheWork) {
  for (const auto& [name, model] : models())
    for (Precision precision : {Precision::single, Precision::mixed, Precision::double_}) {
      const BatchCase c = make_case(model, precision);
      const BatchResult whole = run_batch(factory(), c);
      EXPECT_EQ(run_batch(factory(), c, {.threads = 3}), whole) << name;
      EXPECT_EQ(run_batch(factory(), c, {.blocks = true}), whole) << name;
      EXPECT_EQ(run_batch(factory(), c, {.threads = 2, .launches = {1}, .engines = {33}}), whole) << name;
    }
}

/// One short iteration in float, mixed and double, each from the same start: the same to their own rounding,
/// and not the same bits (a precision that is silently ignored would pass otherwise).
TEST_P(LibraryEngines, PrecisionsAgreeToRounding) {
  for (const auto& [name, model] : models()) {
    BatchCase c = make_case(model, Precision::double_);
    c.iterations = 1;
    c.num_leapfrog = 2;
    c.step_size = 0.02;
    const BatchResult full = run_batch(factory(), c);
    c.precision = Precision::mixed;
    const BatchResult mixed = run_batch(factory(), c);
    c.precision = Precision::single;
    const BatchResult single = run_batch(factory(), c);
    EXPECT_NE(full.position, mixed.position) << name;
    EXPECT_NE(single.cache, mixed.cache) << name;
    std::size_t apart = 0;  // an acceptance may fall on either side of its uniform
    for (std::size_t i = 0; i < full.position.size(); ++i) {
      apart += std::abs(full.position[i] - mixed.position[i]) > 1e-4 * (1 + std::abs(full.position[i]));
      apart += std::abs(single.position[i] - mixed.position[i]) > 1e-4 * (1 + std::abs(full.position[i]));
    }
    EXPECT_LE(apart, full.position.size() / 100) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LibraryEngines,
                         ::testing::Values("gaussian", "mixture20", "bimodal", "two_modes"),
                         [](const auto& info) { return info.param; });

}  // namespace
