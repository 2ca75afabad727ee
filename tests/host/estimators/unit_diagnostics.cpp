// SPDX-License-Identifier: Apache-2.0
#include "host/estimators/diagnostics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Json = nlohmann::json;
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// SplitMix64, as in make_arviz_fixtures.py.
struct SplitMix {
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
};

struct Case {
  Json fields;  // of make_arviz_fixtures.py, where make_draws explains them
  std::int64_t chains = 0, draws = 0, superchains = 0;
  std::vector<double> values;  // [chain][draw]
  double expected(const std::string& name) const {
    const Json& value = fields.at("expected").at(name);
    if (value.is_number()) return value;
    return value == "nan" ? nan_value : INFINITY;
  }
};

std::int64_t integer(const Json& fields, const char* name) { return fields.at(name).get<std::int64_t>(); }

std::vector<double> make_draws(const Json& f) {
  const std::int64_t chains = integer(f, "chains"), draws = integer(f, "draws"), ar = integer(f, "ar");
  const std::int64_t shift = integer(f, "shift"), coarse = integer(f, "coarse"),
                     offset = integer(f, "offset");
  const auto denominator = f.at("denominator").get<double>();
  if (!f.at("constant").is_null()) return std::vector<double>(chains * draws, f.at("constant").get<double>());
  std::vector<double> out;
  for (std::int64_t chain = 0; chain < chains; ++chain) {
    SplitMix random{static_cast<std::uint64_t>(1000 * integer(f, "seed") + chain)};
    std::int64_t state = 0;
    for (std::int64_t draw = 0; draw < draws; ++draw) {
      const std::uint64_t bits = random();
      std::int64_t innovation = -131070;
      for (int i = 0; i < 4; ++i) innovation += static_cast<std::int64_t>((bits >> (16 * i)) & 0xFFFF);
      state = ((ar * state) >> 8) + innovation;
      const std::int64_t value = ((state + shift * chain) >> coarse) + offset;
      const auto uniform = static_cast<double>((random() >> 44) + 1);
      out.push_back(static_cast<double>(value) / (f.at("heavy").get<bool>() ? uniform : denominator));
    }
    if (chain < integer(f, "frozen")) std::fill(out.end() - draws, out.end(), out[chain * draws]);
  }
  return out;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::ifstream file(LOCKSTEP_SOURCE_DIR "/tests/support/arviz_fixtures.json");
    const Json fixtures = Json::parse(file);
    std::vector<Case> out;
    for (const Json& entry : fixtures.at("cases")) {
      Case c;
      c.fields = fixtures.at("defaults");
      c.fields.update(entry);
      c.chains = integer(c.fields, "chains");
      c.draws = integer(c.fields, "draws");
      c.superchains = integer(c.fields, "superchains");
      c.values = make_draws(c.fields);
      out.push_back(std::move(c));
    }
    return out;
  }();
  return all;
}

/// The same kind of number, and finite ones within a relative 1e-10 (absolute 1e-17 about zero).
void expect_same(double actual, double expected, const std::string& what) {
  SCOPED_TRACE(what);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << actual;
  } else if (expected > 1e6 && what.ends_with("rhat")) {  // chains frozen at different values, up to rounding
    EXPECT_GT(actual, 1e6);
  } else {
    EXPECT_NEAR(actual, expected, 1e-10 * std::fabs(expected) + 1e-17);
  }
}

/// Mean and variance (denominator n - 1) of n values.
std::pair<double, double> moments(const double* x, std::int64_t n) {
  const double mean = std::accumulate(x, x + n, 0.0) / static_cast<double>(n);
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, squares / static_cast<double>(n - 1)};
}

TEST(Diagnostics, FixturesAreThereAndDrawsAreTheSameAsInPython) {
  ASSERT_GT(cases().size(), 50U);
  for (const Case& c : cases()) {
    ASSERT_EQ(c.values.size(), static_cast<std::size_t>(c.chains * c.draws));
    EXPECT_EQ(c.values.back(), c.fields.at("last_draw").get<double>()) << c.fields.at("name");
  }
}

TEST(Diagnostics, AgreesWithArviz) {
  for (const Case& c : cases()) {
    const std::string name = c.fields.at("name").get<std::string>() + ": ";
    const DrawDiagnostics d = diagnose(c.values, c.chains, c.draws);
    expect_same(d.rhat, c.expected("rhat"), name + "rhat");
    expect_same(d.ess_bulk, c.expected("ess_bulk"), name + "ess_bulk");
    expect_same(d.ess_tail, c.expected("ess_tail"), name + "ess_tail");
    expect_same(d.ess_mean, c.expected("ess_mean"), name + "ess_mean");
    expect_same(d.mcse_mean, c.expected("mcse_mean"), name + "mcse_mean");
  }
}

TEST(Diagnostics, ComponentsAreIndependentOfEachOther) {
  const std::int64_t chains = 4, draws = 101, dim = 3;
  std::vector<double> values(chains * draws * dim);
  SplitMix random{7};
  for (double& x : values) x = static_cast<double>(random() >> 11);
  for (std::int64_t i = 0; i < chains * draws; ++i)
    values[i * dim + 1] += 1e15 * static_cast<double>(i % draws);
  values[5 * dim + 2] = nan_value;
  const auto all = diagnose_all(values, chains, draws, dim);
  ASSERT_EQ(all.size(), 3U);
  for (std::int64_t component = 0; component < 2; ++component) {
    std::vector<double> one;
    for (std::int64_t i = 0; i < chains * draws; ++i) one.push_back(values[i * dim + component]);
    const DrawDiagnostics d = diagnose(one, chains, draws);
    EXPECT_EQ(d.rhat, all[component].rhat);
    EXPECT_EQ(d.ess_bulk, all[component].ess_bulk);
    EXPECT_EQ(d.ess_tail, all[component].ess_tail);
    EXPECT_EQ(d.mcse_mean, all[component].mcse_mean);
  }
  EXPECT_GT(all[1].rhat, 1.5);  // a common trend: halves disagree
  EXPECT_TRUE(std::isnan(all[2].rhat) && std::isnan(all[2].ess_mean));
}

TEST(Diagnostics, RankStatisticsIgnoreMonotoneTransformsAndTheOrderOfChains) {
  const std::int64_t chains = 4, draws = 200;
  std::vector<double> x(chains * draws), y, z(x.size());
  SplitMix random{11};
  for (double& value : x) value = static_cast<double>(random() >> 12) * 0x1p-52 * 3;
  for (const double value : x) y.push_back(std::exp(value));
  for (std::int64_t i = 0; i < chains * draws; ++i) z[(i + draws) % (chains * draws)] = x[i];
  const DrawDiagnostics dx = diagnose(x, chains, draws), dy = diagnose(y, chains, draws);
  const DrawDiagnostics dz = diagnose(z, chains, draws);
  EXPECT_EQ(dx.ess_bulk, dy.ess_bulk);
  EXPECT_NE(dx.ess_mean, dy.ess_mean);
  EXPECT_NEAR(dx.rhat, dz.rhat, 1e-12);
  EXPECT_NEAR(dx.ess_tail, dz.ess_tail, 1e-9 * dx.ess_tail);
}

TEST(Diagnostics, FoldingFindsChainsThatDifferInScaleOnly) {
  std::vector<double> draws;
  SplitMix random{3};
  for (int chain = 0; chain < 4; ++chain)
    for (int t = 0; t < 400; ++t)
      draws.push_back((static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * (chain == 0 ? 10 : 1));
  std::vector<double> batch_mean(draws), batch_variance(draws.size(), 0.0);
  EXPECT_LT(split_rhat_from_batches(batch_mean, batch_variance, 4, 400, 1), 1.02);
  EXPECT_GT(diagnose(draws, 4, 400).rhat, 1.1);
}

TEST(Diagnostics, NonFiniteAndTooFewDrawsGiveNan) {
  std::vector<double> draws(4 * 10);
  std::iota(draws.begin(), draws.end(), 0.0);
  EXPECT_TRUE(std::isfinite(diagnose(draws, 4, 10).ess_bulk));
  for (const double bad : {nan_value, double(INFINITY), -double(INFINITY)}) {
    std::vector<double> spoilt = draws;
    spoilt[17] = bad;
    const DrawDiagnostics d = diagnose(spoilt, 4, 10);
    for (const double value : {d.rhat, d.ess_bulk, d.ess_tail, d.ess_mean, d.mcse_mean})
      EXPECT_TRUE(std::isnan(value)) << bad;
    EXPECT_TRUE(std::isnan(nested_rhat(spoilt, 4, 10, 2)));
    EXPECT_TRUE(std::isnan(nested_rhat(spoilt, 40, 1, 4)));
    EXPECT_TRUE(std::isnan(split_rhat_from_batches(spoilt, draws, 4, 10, 5)));
    EXPECT_TRUE(std::isnan(split_rhat_from_batches(draws, spoilt, 4, 10, 5)));
  }
  EXPECT_TRUE(std::isnan(diagnose(std::span(draws).first(12), 4, 3).ess_bulk));
  EXPECT_TRUE(std::isnan(diagnose({}, 0, 10).ess_bulk));
  EXPECT_TRUE(std::isnan(diagnose({}, 4, 0).rhat));
  EXPECT_TRUE(std::isnan(nested_rhat(draws, 4, 10, 1)));
  EXPECT_TRUE(std::isnan(nested_rhat({}, {}, {}, 2)));
  EXPECT_TRUE(std::isnan(split_rhat_from_batches(draws, draws, 40, 1, 5)));
  EXPECT_TRUE(std::isnan(split_rhat_from_batches(draws, draws, 10, 4, 0)));
  for (double& x : draws) x *= 1e307;  // finite, but variances overflow
  EXPECT_TRUE(std::isnan(diagnose(draws, 4, 10).ess_mean));
}

TEST(NestedRhat, AgreesWithArvizAndFromMoments) {
  int checked = 0;
  for (const Case& c : cases()) {
    const std::string name = c.fields.at("name").get<std::string>() + ": ";
    const double expected = c.expected("nested_rhat");
    expect_same(nested_rhat(c.values, c.chains, c.draws, c.superchains), expected, name + "nested_rhat");
    std::vector<double> count, mean, variance;
    for (std::int64_t chain = 0; chain < c.chains; ++chain) {
      const auto [m, v] = moments(&c.values[chain * c.draws], c.draws);
      count.push_back(static_cast<double>(c.draws));
      mean.push_back(m);
      variance.push_back(v);
    }
    if (!std::isfinite(expected) || expected > 1e6) continue;
    EXPECT_NEAR(nested_rhat(count, mean, variance, c.superchains), expected, 1e-9 * expected) << name;
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

TEST(NestedRhat, OneDrawPerChainByHand) {
  // Superchain means 1 and 5: B = 8. Within: variances of {0, 2} and {4, 6}, 2 each: W = 2.
  const std::vector<double> draws{0, 2, 4, 6}, one(4, 1.0), unread(4, nan_value);
  EXPECT_NEAR(nested_rhat(draws, 4, 1, 2), std::sqrt(5.0), 1e-14);
  EXPECT_NEAR(nested_rhat(one, draws, unread, 2), std::sqrt(5.0), 1e-14);
  // One chain per superchain: W is the mean of the chain variances alone. B = var{0, 2, 4, 6} = 20 / 3.
  const std::vector<double> ten(4, 10.0), variance{1, 2, 3, 4};
  EXPECT_NEAR(nested_rhat(ten, draws, variance, 4), std::sqrt(1 + 20.0 / 3 / 2.5), 1e-14);
  const std::vector<double> empty_chain{10, 10, 0, 10};
  EXPECT_TRUE(std::isnan(nested_rhat(empty_chain, draws, variance, 2)));
  EXPECT_TRUE(std::isnan(nested_rhat(ten, draws, unread, 2)));
  const std::vector<double> same(4, 0.1), zero(4, 0.0);
  EXPECT_TRUE(std::isnan(nested_rhat(ten, same, zero, 2)));
  const std::vector<double> apart{0.1, 0.1, 0.7, 0.7};
  EXPECT_EQ(nested_rhat(ten, apart, zero, 2), INFINITY);
}

TEST(SplitRhatFromBatches, AgreesWithTheSplitRhatOfTheDraws) {
  int checked = 0;
  for (const Case& c : cases()) {
    const double expected = c.expected("split_rhat");  // ArviZ has none for one chain
    for (const std::int64_t batch_size : {1, 2, 5, 25}) {
      const std::int64_t batches = c.draws / batch_size;
      if (batches * batch_size != c.draws || (batches % 2 == 1 && batch_size > 1)) continue;
      if (!std::isfinite(expected) || expected > 1e6) continue;
      std::vector<double> mean, variance;
      for (std::int64_t b = 0; b < c.chains * batches; ++b) {
        const auto [m, v] = moments(&c.values[b * batch_size], batch_size);
        mean.push_back(m);
        variance.push_back(v);  // NaN for one draw, and must not be read
      }
      EXPECT_NEAR(split_rhat_from_batches(mean, variance, c.chains, batches, batch_size), expected,
                  1e-8 * expected)
          << c.fields.at("name") << " in batches of " << batch_size;
      ++checked;
    }
  }
  EXPECT_GT(checked, 50);
}

TEST(SplitRhatFromBatches, OneChainAndAnOddNumberOfBatches) {
  // Halves {0, 2} and {4, 6} of one draw per batch; the middle batch is dropped. B = 2 * 8, W = 2, n = 2.
  const std::vector<double> mean{0, 2, 1000, 4, 6}, unread(5, nan_value);
  EXPECT_NEAR(split_rhat_from_batches(mean, unread, 1, 5, 1), std::sqrt((16.0 / 2 + 1) / 2), 1e-14);
}

TEST(Diagnostics, IsFastEnough) {
  // 256 chains x 1000 draws x 3 components; unoptimised builds and busy machines get a wide margin.
  const std::int64_t chains = 256, draws = 1000, dim = 3;
  std::vector<double> values(chains * draws * dim);
  SplitMix random{5};
  for (double& x : values) x = static_cast<double>(random() >> 11) * 0x1p-53;
  const auto start = std::chrono::steady_clock::now();
  const auto all = diagnose_all(values, chains, draws, dim);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const DrawDiagnostics& d : all) {
    EXPECT_NEAR(d.ess_bulk, 256e3, 10e3);
    EXPECT_NEAR(d.rhat, 1, 1e-3);
  }
  EXPECT_LT(seconds, 20);
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace lockstep
