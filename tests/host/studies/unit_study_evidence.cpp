// SPDX-License-Identifier: Apache-2.0
// Rows of results.csv that a setting of `evidence` leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/run_program.hpp"

namespace lockstep {
namespace {

using testing::contents;

class StudyEvidence : public testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    setenv("LOCKSTEP_PLOT_DIR", folder_.c_str(), 1);  // without pictures, which take longer than the runs
  }
  void TearDown() override {
    unsetenv("LOCKSTEP_PLOT_DIR");
    ProgramTest::TearDown();
  }
};

TEST_F(StudyEvidence, OfATargetWhoseTruthIsUnknownNothingIsComparedWithIt) {
  put("study.toml", R"(
replicates = 1
[[setting]]
label = "sensors"
command = "evidence"
target = "sensors"
method = "st"
gradients = 20000
)");
  const auto study = run({"study", "study.toml", "--out", "out", "--quiet", "--threads", "1"});
  ASSERT_EQ(study.status, 0) << study.err;
  const std::string rows = contents(folder_ / "out/results.csv");
  EXPECT_THAT(rows, ::testing::HasSubstr("mean[0]"));
  for (const char* quantity : {"covariance_error", "base_covariance_error", "base_mean_error"})
    EXPECT_THAT(rows, ::testing::Not(::testing::HasSubstr(quantity)));
  const auto one =
      run({"evidence", "--target", "sensors", "--method", "st", "--gradients", "2e4", "--json", "--quiet"});
  EXPECT_FALSE(nlohmann::json::parse(one.out).contains("truth")) << one.out;
}

TEST_F(StudyEvidence, QuantitiesOfTheTargetAndLogZOfTheBaseStandBesideLogZ) {
  put("study.toml", R"(
replicates = 2
[[setting]]
label = "{method} {gradients}"
command = "evidence"
target = "bimodal_ct"
method = ["st", "ais"]
gradients = [20000, 1e5]
)");
  const auto result = run({"study", "study.toml", "--out", "out", "--quiet", "--threads", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::map<std::string, std::map<std::string, std::vector<double>>> estimates;  // label, quantity
  std::istringstream lines(contents(folder_ / "out/results.csv"));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string label, replicate, quantity, estimate;
    for (auto* cell : {&label, &replicate, &quantity, &estimate}) std::getline(cells, *cell, ',');
    ASSERT_FALSE(estimate.empty()) << line;
    estimates[label][quantity].push_back(std::stod(estimate));
  }
  ASSERT_EQ(estimates.size(), 4u);
  for (const char* label : {"st 2e4", "st 1e5", "ais 2e4", "ais 1e5"})
    for (const char* quantity : {"mean[0]", "second_moment[0]", "covariance_error", "log_z", "base_log_z",
                                 "base_mean_error", "base_covariance_error"})
      EXPECT_EQ(estimates[label][quantity].size(), 2u) << label << quantity;
  const auto& positive = estimates["st 1e5"]["probability_positive"];
  ASSERT_EQ(positive.size(), 2u);
  EXPECT_NEAR(positive[0], 0.4, 0.15);
  EXPECT_NE(positive[0], positive[1]);  // each replicate has random numbers of its own
}

}  // namespace
}  // namespace lockstep
