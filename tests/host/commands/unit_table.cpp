// SPDX-License-Identifier: Apache-2.0
#include "host/commands/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

using Ordered = nlohmann::ordered_json;

Ordered example() {
  return Ordered::parse(R"({
    "command": "sample",
    "target": {"name": "t", "dim": 2, "parameters": ["mu", "log_tau"]},
    "estimates": {"mean": [4.4721, -0.81234], "mean_se": [0.0123, 0.00456], "sd": [3.1234, 1.2345],
                  "quantiles": {"5%": [-0.6, -2.9], "50%": [4.4, -0.7], "95%": [9.8, 1.05]},
                  "quantities": {"tau": 3.6}, "quantities_se": {"tau": 0.02}, "quantities_sd": {"tau": 3.2},
                  "quantities_quantiles": {"5%": {"tau": 0.3}, "50%": {"tau": 2.8}, "95%": {"tau": 9.7}}},
    "diagnostics": {"rhat": [1.0004, 1.002], "ess_bulk": [25000.4, 24000], "ess_tail": [12000, 11000],
                    "quantities_rhat": {"tau": 1.001}, "quantities_ess_bulk": {"tau": 9000},
                    "quantities_ess_tail": {"tau": 8000}, "draws": {"of_each_chain": 500, "every": 2}},
    "log_z": {"estimate": -31.5, "se": 0.01}})");
}

std::string table(const Ordered& summary) {
  const auto result = from_json<SampleResult>(summary);
  return estimates_table(result, result.diagnostics.of_draws);
}

TEST(EstimatesTable, HasTheColumnsOfArviz) {
  EXPECT_EQ(table(example()),
            "            mean    sd     5%    50%   95%  mcse_mean  ess_bulk  ess_tail  r_hat\n"
            "mu         4.472  3.12  -0.60   4.40  9.80      0.012     25000     12000  1.000\n"
            "log_tau  -0.8123  1.23  -2.90  -0.70  1.05     0.0046     24000     11000  1.002\n"
            "tau        3.600  3.20   0.30   2.80  9.70      0.020      9000      8000  1.001\n"
            "log_z -31.500 +- 0.010\n"
            "quantiles, ess and r_hat are over every 2nd iteration of all chains\n");
}

TEST(EstimatesTable, ShowsATruthWhereThereIsOne) {
  Ordered s = example();
  s["truth"] = {{"mean", {4.5, -0.8}}, {"log_z", -31.49}};
  const std::string text = table(s);
  EXPECT_NE(text.find("r_hat  truth\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1.000    4.5\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(truth -31.49)\n"), std::string::npos) << text;
}

/// What is unknown is an empty cell, and what was never visited says so.
TEST(EstimatesTable, UnknownFiguresAreEmpty) {
  Ordered s = example();
  s["estimates"]["mean_se"] = {0.0123, nullptr};
  for (const char* part : {"quantities", "quantities_se"}) s["estimates"][part].erase("tau");
  s["estimates"]["quantities"]["probability_mode[0]"] = 1e-26;  // the far tail of a smooth indicator
  s["estimates"]["not_visited"] = {"probability_mode[0]", "mu"};
  s["diagnostics"]["rhat"] = {nullptr, 1.002};
  s["diagnostics"].erase("ess_tail");
  s["diagnostics"].erase("quantities_ess_tail");
  const std::string text = table(s);
  EXPECT_EQ(text.find("ess_tail"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  EXPECT_NE(text.find("not visited"), std::string::npos) << text;
  EXPECT_NE(text.find("4.4721 (never left)"), std::string::npos) << text;
  s["estimates"]["quantities"]["probability_mode[0]"] = 1;
  EXPECT_NE(table(s).find("1 (never left)"), std::string::npos) << table(s);
}

/// Of moments alone there are fewer columns, and a line says what is missing.
TEST(EstimatesTable, SaysWhatIsMissing) {
  Ordered s = example();
  s.erase("diagnostics");
  for (const char* key : {"quantiles", "quantities_quantiles", "quantities_sd"}) s["estimates"].erase(key);
  const std::string text = table(s);
  EXPECT_NE(text.find("mean    sd  mcse_mean\n"), std::string::npos) << text;
  EXPECT_NE(text.find("no quantiles, ess and r_hat"), std::string::npos) << text;
  s["command"] = "evidence";
  EXPECT_NE(table(s).find("sums over weighted states"), std::string::npos);
}

TEST(EstimatesTable, ShowsTenAndCountsTheRest) {
  Ordered s = example();
  s["target"]["parameters"] = std::vector<std::string>(12, "p");
  s["estimates"]["mean"] = std::vector<double>(12, 1.0);
  const std::string text = table(s);
  EXPECT_NE(text.find("... and 2 more parameters"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 10 + 1 + 1 + 1 + 1);
}

TEST(WithError, HasTheDigitsThatTheErrorLeaves) {
  EXPECT_EQ(with_error(1.23456, 0.0123), "1.235 +- 0.012");
  EXPECT_EQ(with_error(1.5, 0), "1.5");
  EXPECT_EQ(with_error(1.5, NAN), "1.5");
}

}  // namespace
}  // namespace lockstep
