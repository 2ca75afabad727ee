// SPDX-License-Identifier: Apache-2.0
#include "targets/mixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "targets/mixture20.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/subject.hpp"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;

// Exact moments, computed apart from the table of means of Kou, Zhou & Wong (2006).
struct Scenario {
  std::string name;
  double mean[2], second[2], cross;
};

TEST(Mixture20, HasTheExactMomentsOfBothScenarios) {
  for (const Scenario& e :
       {Scenario{"a", {4.478, 4.905}, {25.60468, 33.91964}, 24.5697},
        Scenario{"b", {4.6876141535, 5.0302353383}, {25.6677153427, 31.4876688644}, 24.7397300514}}) {
    MemoryInput in;
    in.choices["scenario"] = e.name;
    const SubjectOf<Mixture20Target> s(in);
    const Truth& t = s.target->truth();
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(t.mean[i], e.mean[i], 1e-9) << e.name;
      EXPECT_NEAR(t.second_moment(i), e.second[i], 1e-9) << e.name;
    }
    EXPECT_NEAR(t.covariance[1], e.cross - e.mean[0] * e.mean[1], 1e-9) << e.name;
    EXPECT_EQ(t.covariance[1], t.covariance[2]);
    EXPECT_EQ(t.log_z, 0);
    EXPECT_TRUE(s.target->quantities().empty()) << "20 probabilities would cost more than the gradient";
  }
  MemoryInput in;
  in.choices["scenario"] = "c";
  EXPECT_THROW(Mixture20Target::build(in), UserError);
}

TEST(Mixture, EqualsTheSumOfItsComponents) {
  const SubjectOf<MixtureTarget> s(spherical_mixture());
  const MemoryInput in = spherical_mixture();
  const auto& m = in.arrays.at("means").values;
  const double weight[] = {0.5, 0.25, 0.25}, sd[] = {1, 0.5, 1.5};
  for (const std::vector<double>& x : {std::vector<double>{0, 0, 0}, {2, -1, 1.5}, {-1, 2, 3}}) {
    double sum = 0;
    for (int k = 0; k < 3; ++k) {
      double q = 0;
      for (int i = 0; i < 3; ++i) q += std::pow((x[i] - m[3 * k + i]) / sd[k], 2);
      sum += weight[k] * std::exp(-0.5 * q) / std::pow(std::sqrt(2 * kPi) * sd[k], 3);
    }
    EXPECT_NEAR(s.value(x), std::log(sum), 1e-12);
  }
}

TEST(Mixture, EqualCovariancesAndStandardDeviationsAreOneTarget) {
  MemoryInput in = spherical_mixture();
  const auto sds = in.arrays.at("sds").values;
  in.arrays.erase("sds");
  DataArray s{std::vector<double>(27, 0.0), {3, 3, 3}};
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < 3; ++i) s.values[9 * k + 4 * i] = sds[k] * sds[k];
  in.arrays["covariances"] = s;
  const SubjectOf<MixtureTarget> spherical(spherical_mixture()), full(in);
  EXPECT_NEAR(spherical.value({1, 0.5, -2}), full.value({1, 0.5, -2}), 1e-12);
  for (int i = 0; i < 9; ++i)
    EXPECT_NEAR(spherical.target->truth().covariance[i], full.target->truth().covariance[i], 1e-12);
}

TEST(Mixture, KnowsTheComponentAPositionBelongsTo) {
  MemoryInput in = full_mixture();
  const auto b = MixtureTarget::build(in);
  const auto& m = in.arrays.at("means").values;
  for (int k = 0; k < 3; ++k) {
    double x[3] = {m[3 * k], m[3 * k + 1], m[3 * k + 2]};
    EXPECT_EQ((b.density.mode<0, double>(Rows<double>{x, 1})), k);
  }
  EXPECT_EQ(b.quantities, (std::vector<std::string>{"probability_mode[0]", "probability_mode[1]",
                                                    "probability_mode[2]", "probability_positive"}));
  EXPECT_NEAR(b.truth.quantities[0], 0.5, 1e-15);
}

std::string mixture_complaint(const MemoryInput& in) { return build_complaint<MixtureTarget>(in); }

TEST(MixtureData, EveryMistakeIsNamed) {
  EXPECT_THAT(mixture_complaint({}), HasSubstr("no data"));
  auto with = [](MemoryInput in, const std::string& name, DataArray array) {
    in.arrays[name] = std::move(array);
    return in;
  };
  MemoryInput good = spherical_mixture(), full = full_mixture();
  EXPECT_THAT(mixture_complaint(with(good, "means", {{1, 2, 3}, {3}})), HasSubstr("means is not a table"));
  EXPECT_THAT(mixture_complaint(with(good, "means", {{}, {0, 0}})), HasSubstr("means is not a table"));
  EXPECT_THAT(
      mixture_complaint(with(good, "weights", {{1, 1}, {2}})),
      HasSubstr(
          "weights has shape [2] (means has 3 components in 3 dimensions). Give weights the shape [3]"));
  EXPECT_THAT(mixture_complaint(with(good, "weights", {{1, 1, 1}, {1, 3}})),
              HasSubstr("weights has shape [1][3]"));
  EXPECT_THAT(mixture_complaint(with(good, "weights", {{1, 0, 1}, {3}})),
              HasSubstr("entry 2 of weights is not positive"));
  EXPECT_THAT(mixture_complaint(with(good, "sds", {{1, 1, 1, 1}, {4}})), HasSubstr("sds has shape [4]"));
  EXPECT_THAT(mixture_complaint(with(good, "sds", {{1, -1, 1}, {3}})),
              HasSubstr("entry 2 of sds is not positive"));
  EXPECT_THAT(mixture_complaint(with(good, "sds", {{1, 1e300, 1}, {3}})),
              HasSubstr("sds has an entry beyond 1e15"));
  EXPECT_THAT(mixture_complaint(with(good, "sds", {{1, 1e-20, 1}, {3}})),
              HasSubstr("sds has a standard deviation below 1e-15"));
  EXPECT_THAT(mixture_complaint(with(good, "covariances", full.arrays.at("covariances"))),
              HasSubstr("give both of sds and covariances"));
  MemoryInput neither = good;
  neither.arrays.erase("sds");
  EXPECT_THAT(mixture_complaint(neither), HasSubstr("give neither of sds and covariances"));
  DataArray s = full.arrays.at("covariances");
  DataArray narrow = s;
  for (int j = 0; j < 3; ++j) narrow.values[9 + j] = narrow.values[9 + 3 * j] = j == 0 ? 1e-32 : 0;
  EXPECT_THAT(mixture_complaint(with(full, "covariances", narrow)),
              HasSubstr("covariances[1] has a standard deviation below 1e-15"));
  s.shape = {9, 3};
  EXPECT_THAT(mixture_complaint(with(full, "covariances", s)),
              HasSubstr("covariances has shape [9][3] (means has 3 components in 3 dimensions). "
                        "Give covariances the shape [3][3][3]"));
  s = full.arrays.at("covariances");
  s.values[9 + 1] += 0.1;  // the second component, no longer symmetric
  EXPECT_THAT(mixture_complaint(with(full, "covariances", s)),
              HasSubstr("covariances[1] is not symmetric positive definite"));
  s = full.arrays.at("covariances");
  s.values[18] = -2;
  EXPECT_THAT(mixture_complaint(with(full, "covariances", s)),
              HasSubstr("covariances[2] is not symmetric positive definite"));
  MixtureTarget::build(good);  // and the data they were made from are fine
  MixtureTarget::build(full);
}

}  // namespace
}  // namespace lockstep::testing
