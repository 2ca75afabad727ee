// SPDX-License-Identifier: Apache-2.0
// Samplers on a small horseshoe regression against importance sampling from the prior, which shares no code with them.
//
// What is compared: the predictive probabilities of the cases held out, and intercept and z, whose prior is light. The
// error of a difference is the root of the sum of squares of the importance sampler's and of that over 16 replicates,
// of Student's t with 15 degrees of freedom: beyond 5 with probability 2e-4, for 2 x 8 comparisons 3e-3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/horseshoe.hpp"
#include "tests/support/sampler_run.hpp"
#include "tests/support/statistics.hpp"

namespace lockstep::testing {
namespace {

constexpr int kCases = 14, kFeatures = 3, kHeldOut = 4;

Job horseshoe_job(const DataArray& table, const std::string& sampler) {
  nlohmann::json rows = nlohmann::json::array();
  for (int i = 0; i < kCases; ++i)
    rows.push_back(std::vector<double>(table.values.begin() + i * (kFeatures + 1),
                                       table.values.begin() + (i + 1) * (kFeatures + 1)));
  Job job;
  job.target = "horseshoe";
  job.target_settings = {{"standardise", "no"}, {"held_out", 0.3}, {"relevant", 1}};
  job.sampler = sampler;
  job.iterations = 1000;
  job.data = nlohmann::json{{"table", rows}}.dump();
  return job;
}

struct Expectation {
  double value = 0, se = 0;
};

/// sum w f / sum w over draws from the prior, w the likelihood of the cases `training`; errors by the delta method.
std::vector<Expectation> by_importance(const DataArray& table, const std::vector<int>& training,
                                       const std::vector<int>& held_out, const HorseshoePrior& prior) {
  ExactDraw random(17);
  constexpr int kDraws = 2000000, kNumbers = kHeldOut + 1 + kFeatures;
  double sum = 0, square = 0;
  std::vector<double> f(kNumbers), wf(kNumbers), w2f(kNumbers), w2f2(kNumbers);
  std::vector<double> x(3 + 2 * kFeatures);
  const auto log_half_cauchy = [&] { return std::log(std::tan(0.5 * kPi * random.uniform())); };
  for (int n = 0; n < kDraws; ++n) {
    x[0] = 10 * random.normal();
    x[1] = std::log(prior.tau0) + log_half_cauchy();
    double chi2 = 0;  // v ~ inverse-gamma(3/2, 3/2) is 3 / chi^2 of 3 degrees
    for (int k = 0; k < 3; ++k) {
      const double z = random.normal();
      chi2 += z * z;
    }
    x[2] = std::log(3 / chi2);
    for (int j = 0; j < kFeatures; ++j) {
      x[3 + j] = random.normal();
      x[3 + kFeatures + j] = log_half_cauchy();
    }
    const std::vector<double> b = coefficients(x, prior);
    double w = 1;
    for (int i : training) w *= class_probability(table, i, x[0], b);
    for (int i = 0; i < kHeldOut; ++i) f[i] = class_probability(table, held_out[i], x[0], b);
    f[kHeldOut] = x[0];
    for (int j = 0; j < kFeatures; ++j) f[kHeldOut + 1 + j] = x[3 + j];
    sum += w;
    square += w * w;
    for (int k = 0; k < kNumbers; ++k) {
      wf[k] += w * f[k];
      w2f[k] += w * w * f[k];
      w2f2[k] += w * w * f[k] * f[k];
    }
  }
  std::vector<Expectation> all;
  for (int k = 0; k < kNumbers; ++k) {
    const double m = wf[k] / sum;
    all.push_back({m, std::sqrt(w2f2[k] - 2 * m * w2f[k] + m * m * square) / sum});
  }
  return all;
}

TEST(HorseshoeSamplers, AgreeWithImportanceSampling) {
  const DataArray table = random_cases(kCases, kFeatures, 8);
  std::vector<Expectation> expected;
  for (const char* sampler : {"hmc", "pe"}) {
    const Outcome o = run(horseshoe_job(table, sampler));
    if (expected.empty()) {
      std::vector<int> held_out, training;
      for (const std::string& name : o.target->quantities()) held_out.push_back(std::stoi(name.substr(9)));
      ASSERT_EQ(held_out.size(), std::size_t(kHeldOut));
      for (int i = 0; i < kCases; ++i)
        if (std::find(held_out.begin(), held_out.end(), i) == held_out.end()) training.push_back(i);
      expected = by_importance(table, training, held_out, {1 / 2.0 * 2 / std::sqrt(kCases - kHeldOut)});
    }
    for (std::size_t k = 0; k < expected.size(); ++k) {
      RunningMean found;
      for (const Estimates& e : o.units)
        found.add(k < kHeldOut ? e.quantity[k] : e.mean[k == kHeldOut ? 0 : 2 + k - kHeldOut]);
      const double error = std::hypot(found.standard_error(), expected[k].se);
      EXPECT_LT(std::abs(found.mean() - expected[k].value) / error, 5)
          << sampler << " " << k << ": " << found.mean() << " for " << expected[k].value;
      // Power: what is compared is known to a hundredth of a probability, to .15 of an intercept.
      EXPECT_LT(error, k < kHeldOut ? 0.01 : k == kHeldOut ? 0.15 : 0.02) << sampler << " " << k;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
