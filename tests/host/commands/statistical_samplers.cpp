// SPDX-License-Identifier: Apache-2.0
// Whole runs (scout, warm-up, recording, estimates) against exact truths, with fixed seeds.
//
// Sixteen replicates of 64 chains: a moment's mean over replicates must lie within 4.5 of its own standard
// errors of the truth. Under Student's t with 15 degrees of freedom that has probability 4e-4, so that the
// hundred moments below would raise an alarm in one choice of seeds in 25. A claimed standard error is judged
// by z = error / se over replicates and moments: the rms of 16 independent normals lies in [0.7, 1.4] with
// probability 0.94 and that of 64 with 0.9998; the moments of a replicate are somewhere between one and four
// independent ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/sampler_run.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::samplers_test {
namespace {

using namespace testing;

constexpr int kReplicates = 16;

/// Every mean and second moment over the replicates, as (value - truth) and its claimed standard error.
struct Moment {
  std::string name;
  std::vector<double> error, se;
};
std::vector<Moment> errors(const Outcome& o) {
  std::vector<Moment> all;
  const Truth& truth = o.target->truth();
  for (int i = 0; i < o.target->dim(); ++i) {
    Moment mean{"mean " + std::to_string(i), {}, {}}, second{"second moment " + std::to_string(i), {}, {}};
    for (const Estimates& e : o.units) {
      mean.error.push_back(e.mean[i] - truth.mean[i]);
      mean.se.push_back(e.mean_se[i]);
      second.error.push_back(e.second[i] - truth.second_moment(i));
      second.se.push_back(e.second_se[i]);
    }
    all.push_back(mean);
    all.push_back(second);
  }
  return all;
}

double rms_z(const std::vector<Moment>& moments) {
  double sum = 0, count = 0;
  for (const Moment& m : moments)
    for (std::size_t r = 0; r < m.error.size(); ++r, ++count)
      sum += m.error[r] * m.error[r] / (m.se[r] * m.se[r]);
  return std::sqrt(sum / count);
}

/// By the claimed errors, whose size expect_honest_errors looks at: the scatter of 16 replicates alone has Student's heavy
/// tails, where 4.5 is no rarity among many moments.
void expect_unbiased(const Outcome& o) {
  for (const Moment& m : errors(o)) {
    double sum = 0, square = 0;
    for (std::size_t r = 0; r < m.error.size(); ++r) {
      sum += m.error[r];
      square += m.se[r] * m.se[r];
    }
    EXPECT_LT(std::abs(sum) / std::sqrt(square), 4.5) << m.name << ": " << sum / double(m.error.size());
  }
}
void expect_honest_errors(const Outcome& o) {
  const double rms = rms_z(errors(o));
  EXPECT_GT(rms, 0.7);
  EXPECT_LT(rms, 1.4);
}
void expect_gates_pass(const Outcome& o) {
  for (std::size_t u = 0; u < o.units.size(); ++u)
    for (const auto& gate : o.failed(u))
      ADD_FAILURE() << "unit " << u << " fails gate " << gate << ", R-hat " << o.units[u].rhat_max;
}

struct Case {
  std::string label;
  Job job;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.label; }
const auto label_of = [](const auto& info) { return info.param.label; };

class PseudoExtendedDefault : public ::testing::TestWithParam<Case> {};

TEST_P(PseudoExtendedDefault, MomentsErrorsAndLogZ) {
  const Outcome o = run(GetParam().job);
  expect_unbiased(o);
  expect_honest_errors(o);
  ASSERT_EQ(o.result.log_z.size(), std::size_t(kReplicates));
  RunningMean estimate, z;
  const double truth = o.target->truth().log_z;
  for (const LogZ& v : o.result.log_z) {
    ASSERT_GT(v.se, 0);
    estimate.add(v.estimate);
    z.add((v.estimate - truth) / v.se);
  }
  EXPECT_LT(std::abs(estimate.z(truth)), 4) << estimate.mean() << " +- " << estimate.standard_error();
  // 16 normals have an sd within [0.55, 1.55] of theirs with probability 0.996.
  EXPECT_GT(std::sqrt(z.variance()), 0.55);
  EXPECT_LT(std::sqrt(z.variance()), 1.55);
  EXPECT_LT(estimate.standard_error() * std::sqrt(kReplicates), 0.3);  // and it says something
}
INSTANTIATE_TEST_SUITE_P(
    Targets, PseudoExtendedDefault,
    ::testing::Values(Case{"mixture20a", {.target = "mixture20", .iterations = 2000}},
                      Case{"mixture20b", {.target = "mixture20", .target_settings = {{"scenario", "b"}}}},
                      Case{"bimodal", {.target = "bimodal"}},
                      Case{"two_modes10",
                           {.target = "two_modes", .target_settings = {{"dim", 10}}, .iterations = 2000}},
                      Case{"gaussian5", {.target = "gaussian", .target_settings = {{"dim", 5}}}},
                      Case{"flower", {.target = "flower"}}),
    label_of);

/// Two modes whose axes are correlated, .9 within each: a diagonal base would lie across them.
const std::string kCorrelated = R"({"means": [[0, 0, 0], [6, 5, -4]], "weights": [0.4, 0.6],
  "covariances": [[[1, 0.9, 0], [0.9, 1, 0], [0, 0, 0.5]], [[2, 1.8, -0.5], [1.8, 2, -0.4], [-0.5, -0.4, 1]]]})";

TEST(FullBase, IsChosenForCorrelatedAxesAndCostsFewerGradients) {
  Job job{.target = "mixture", .iterations = 2000, .data = kCorrelated};
  const Outcome full = run(job);
  EXPECT_FALSE(full.result.frozen.full_base.empty());
  expect_unbiased(full);
  expect_honest_errors(full);
  expect_gates_pass(full);
  RunningMean log_z, z;
  for (const LogZ& v : full.result.log_z) {
    log_z.add(v.estimate);
    z.add(v.estimate / v.se);
  }
  EXPECT_LT(std::abs(log_z.z(0)), 4) << log_z.mean() << " +- " << log_z.standard_error();
  EXPECT_GT(std::sqrt(z.variance()), 0.55);
  EXPECT_LT(std::sqrt(z.variance()), 1.55);

  job.sampler_settings = {{"base_covariance", "diagonal"}};
  const Outcome diagonal = run(job);
  EXPECT_TRUE(diagonal.result.frozen.full_base.empty());
  // Gradients x squared error of the means, the cost of an effective draw, is lower with the full base: an
  // error's square averages 96 terms, so that its ratio has a standard error of about a fifth.
  const auto cost = [](const Outcome& o) {
    double squares = 0, gradients = 0;
    for (const Moment& m : errors(o))
      for (double e : m.error) squares += e * e;
    for (const Estimates& e : o.units) gradients += e.gradients;
    return squares * gradients;
  };
  EXPECT_LT(cost(full), cost(diagonal));
}

class OtherSamplers : public ::testing::TestWithParam<Case> {};

TEST_P(OtherSamplers, MomentsAndErrors) {
  const Outcome o = run(GetParam().job);
  expect_unbiased(o);
  expect_honest_errors(o);
  expect_gates_pass(o);
}
const Settings kNarrow = {{"dim", 6}, {"ratio", 30}};
INSTANTIATE_TEST_SUITE_P(
    Jobs, OtherSamplers,
    ::testing::Values(
        Case{"hmc_diagonal", {.target = "gaussian", .sampler = "hmc", .target_settings = kNarrow}},
        Case{"hmc_dense",
             {.target = "gaussian",
              .sampler = "hmc",
              .target_settings = kNarrow,
              .sampler_settings = {{"metric", "dense"}}}},
        Case{"hmc_without_scout",
             {.target = "gaussian",
              .sampler = "hmc",
              .target_settings = kNarrow,
              .warmup = 800,
              .init = "uniform:10"}},
        Case{"rwm",
             {.target = "gaussian", .sampler = "rwm", .target_settings = {{"dim", 2}}, .iterations = 2000}},
        Case{"nuts",
             {.target = "gaussian",
              .sampler = "nuts",
              .target_settings = kNarrow,
              .chains = 16,
              .warmup = 1000}},
        Case{"nuts_dense",
             {.target = "ark",
              .sampler = "nuts",
              .sampler_settings = {{"metric", "dense"}},
              .chains = 16,
              .warmup = 1000}},
        Case{"nuts_on_a_process",
             {.target = "gp_regr", .sampler = "nuts", .chains = 16, .warmup = 1000, .init = "uniform:2"}},
        Case{"fixed_instrument",
             {.target = "bimodal",
              .sampler_settings = {{"instrument", "fixed"}, {"base_sd", Settings::array({2})}},
              .iterations = 1000}},
        Case{"fixed_beta", {.target = "bimodal", .sampler_settings = {{"beta", 0.3}}, .iterations = 1000}},
        Case{"tempered_in_a_box",
             {.target = "mixture20",
              .target_settings = {{"scenario", "b"}},
              .sampler_settings = {{"instrument", "tempered"}, {"box", 15}},
              .iterations = 600}},
        Case{"pooled", {.target = "mixture20", .target_settings = {{"scenario", "b"}}, .pooled = true}},
        Case{"short_chains", {.target = "bimodal", .iterations = 400, .chains = 100}}),
    label_of);

TEST(Gates, PlainHmcOnSeparatedModesFailsRhat) {
  const Outcome o = run(
      {.target = "mixture20", .sampler = "hmc", .iterations = 1000, .init = "uniform:10", .replicates = 2});
  for (std::size_t u = 0; u < o.units.size(); ++u) {
    const auto failed = o.failed(u);
    EXPECT_NE(std::find(failed.begin(), failed.end(), "rhat"), failed.end()) << o.units[u].rhat_max;
    EXPECT_GT(o.units[u].rhat_max, 1.5);
  }
}

/// The summary of a default run that begins in both of two modes, (0, 0) and (40, 40).
nlohmann::ordered_json from_both(const std::string& weights, const std::string& sds, Job job = {}) {
  job.target = "mixture";
  job.init = ::testing::TempDir() + "known-narrow-starts.json";
  write_atomically(job.init, "{\"x\": [[0, 0], [40, 40]]}");
  job.data = "{\"means\": [[0, 0], [40, 40]], \"weights\": [" + weights + "], \"sds\": [" + sds + "]}";
  RunOptions options = run_of(job);
  options.quiet = true;
  options.usual_length = job.iterations == 1000;
  return to_json(sample(options));
}

TEST(KnownStarts, OfNarrowModesInTwoDimensionsGiveARightAnswerThatPasses) {
  const auto s = from_both("0.6, 0.4", "0.05, 0.05", {.iterations = 1000, .chains = 128, .warmup = 500});
  EXPECT_EQ(s["verdict"], "pass") << s["failed_gates"];
  EXPECT_EQ(s["iterations"], 2000);
  EXPECT_LE(s["diagnostics"]["rhat_max"], 1.05);  // what the reader sees is what the gate saw
  const auto& e = s["estimates"];
  EXPECT_NEAR(e["mean"][0].get<double>(), 16, 5 * e["mean_se"][0].get<double>());
  EXPECT_LT(e["mean_se"][0], 1);
  EXPECT_NEAR(s["log_z"]["estimate"].get<double>(), 0, 5 * s["log_z"]["se"].get<double>());
}

TEST(KnownStarts, ChainsThatSeldomChangeModesFailEvenInRanks) {
  const Settings slow = {{"mode_jumps", false}};  // with them they pass, and are right
  // Ranks spread a narrow mode out, so that R-hat by ranks alone let such runs pass, five errors off.
  for (const char* weights : {"0.98, 0.02", "0.5, 0.5"}) {
    const auto s = from_both(weights, "0.03, 0.03",
                             {.sampler_settings = slow, .iterations = 500, .chains = 128, .warmup = 100});
    EXPECT_THAT(s["failed_gates"].get<std::vector<std::string>>(), ::testing::Contains("rhat")) << weights;
    EXPECT_GT(s["diagnostics"].value("rhat_max", INFINITY), 1.05);  // left out where it is infinite
  }
  // Nor do short ones whose groups agree.
  const auto s = from_both("0.98, 0.02", "0.03, 0.03",
                           {.sampler_settings = slow, .iterations = 200, .chains = 128, .warmup = 100});
  EXPECT_THAT(s["failed_gates"].get<std::vector<std::string>>(), ::testing::Contains("rhat"));
  const auto right = from_both("0.98, 0.02", "0.03, 0.03", {.iterations = 500, .chains = 128, .warmup = 100});
  EXPECT_EQ(right["verdict"], "pass") << right["failed_gates"];
  EXPECT_NEAR(right["estimates"]["mean"][0].get<double>(), 0.8,
              5 * right["estimates"]["mean_se"][0].get<double>());
}

TEST(Precision, AllThreeAgree) {
  std::vector<Outcome> runs;
  for (const char* precision : {"single", "mixed", "double"}) {
    Job job{.target = "mixture20", .target_settings = {{"scenario", "b"}}};
    job.precision = precision;
    runs.push_back(run(job));
    expect_unbiased(runs.back());
  }
  for (int other : {0, 1}) {
    const auto a = errors(runs[other]), b = errors(runs[2]);
    for (std::size_t k = 0; k < a.size(); ++k)
      EXPECT_LT(std::abs(two_sample_z(a[k].error, b[k].error)), 4.5) << a[k].name;
    double x = 0, y = 0;
    for (int u = 0; u < kReplicates; ++u) {
      x += runs[other].result.log_z[u].estimate / kReplicates;
      y += runs[2].result.log_z[u].estimate / kReplicates;
    }
    EXPECT_NEAR(x, y, 0.1);
  }
}

}  // namespace
}  // namespace lockstep::samplers_test
